"""The files of a model as stages see them: looked for while planning, fetched once on each machine, opened in workers.

A hub token is kept by `models/weights.py` and never with a stage: stages are pickled, compared and written down.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from gristmill.errors import ConfigError, MissingDependency
from gristmill.models.known_configs import max_length, read_config, takes_longer
from gristmill.models.runtime import ModelSource, choose_runtime, locate_tokenizer
from gristmill.models.weights import Presence, check, is_hub_id
from gristmill.stages.base import AnyStage

# How a model is fetched and run, not which: a run may be resumed with other values.
NOT_CONTENT = {
    "cache_dir",
    "device",
    "max_batch_tokens",
    "model_inference_batch_size",
    "offline",
    "owner",
    "unpack_inference_batch",  # a name users know; how outputs come is up to the runtime
    "who",
}

# Parameters of stages that may hold the path of a directory.
_PLACES = (
    "model_identifier",
    "model_name",
    "cache_dir",
    "tokenizer_identifier",
    "base_identifier",
    "adapter_identifier",
)


def check_positive(stage: AnyStage, names: Sequence[str]) -> None:
    """Raise ConfigError unless these parameters are None or whole numbers ≥ 1."""
    for name in names:
        value = getattr(stage, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigError(f"{stage.stage_name()}: expected {name} to be a whole number ≥ 1; got {value!r}")


def model_ready(source: ModelSource, max_seq_length: int | None) -> Presence:
    """Raise if the model cannot be loaded: no library, no files, files of the wrong kind, rows too long for it.

    Workers take the revision that was found, whatever is published while the run goes on.
    """
    found = check(source)
    if found.directory is None:
        return found  # to be downloaded: the rest is checked then
    choose_runtime(source, found.directory)
    config = read_config(locate_tokenizer(source), elsewhere=found.directory)
    if max_seq_length is not None and max_seq_length > max_length(config) and not takes_longer(config):
        raise ConfigError(
            f"{source.who}: expected max_seq_length ≤ {max_length(config)}, the positions of the model in "
            f"{found.directory}; got {max_seq_length}"
        )
    return found


def tokenizer_ready(source: ModelSource) -> Presence:
    """Raise if the tokenizer cannot be loaded."""
    if find_spec("tokenizers") is None:
        raise MissingDependency(f"{source.who} needs tokenizers. Install: pip install 'gristmill[models]'")
    found = check(source)
    if found.directory is not None and not (locate_tokenizer(source) / "tokenizer.json").is_file():
        raise ConfigError(f"{source.who}: expected a tokenizer.json in {locate_tokenizer(source)}; it has none")
    return found


def is_from_hub(source: ModelSource) -> bool:
    """Whether some machine may have to download it: it is neither a directory nor a package."""
    return any(is_hub_id(part.model_identifier) and not Path(part.model_identifier).is_dir() for part in source.parts())


def download(source: ModelSource) -> None:
    """Download what is not on this machine. Looks for it first, and touches no network if all is there."""
    if is_from_hub(source):
        from gristmill.models.hub import fetch

        fetch(source, is_main=True)  # the revision was looked up while planning


def download_note(found: Presence, source: ModelSource) -> str:
    """Return what a plan says of a model that is not here yet."""
    if not found.download_bytes:
        return ""
    return f"downloads {found.download_bytes / 1e6:,.1f} MB of {source.model_identifier} to each machine"


def make_absolute(stage: AnyStage) -> None:
    """Make the model's directory absolute, in the copy a plan is made of."""
    for name in _PLACES:
        given = getattr(stage, name, None)
        if isinstance(given, str) and not Path(given).is_absolute() and (name == "cache_dir" or Path(given).is_dir()):
            setattr(stage, name, str(Path(given).absolute()))
