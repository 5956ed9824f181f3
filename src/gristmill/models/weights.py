"""Where a model's files are.

    directory -> package -> `cache_dir` or the hub cache -> download

Only `fetch` downloads, and only `setup_on_node` and `gristmill models fetch` call it.
"""

import importlib.util
import os
from pathlib import Path

from gristmill.errors import ConfigError
from gristmill.models.runtime import ModelSource

PACKAGE = "package:"


def is_offline(source: ModelSource) -> bool:
    """Whether nothing may be downloaded."""
    if source.offline is not None:
        return source.offline
    return any(
        os.environ.get(name, "").lower() in ("1", "true", "yes", "on")
        for name in ("GRISTMILL_OFFLINE", "HF_HUB_OFFLINE")
    )


def locate(source: ModelSource) -> Path:
    """Return the directory with the files of a model that is on this machine. Raises ConfigError if it is not."""
    given = source.model_identifier
    if given.startswith(PACKAGE):
        return _in_package(given.removeprefix(PACKAGE), who=source.who)
    directory = Path(given)
    if directory.is_dir():
        return directory
    raise ConfigError(f"{source.who}: expected {given!r} to be a directory")


def _in_package(name: str, *, who: str) -> Path:
    """Return the directory of a package's weights: the package is found, not imported."""
    module, _, below = name.partition("/")
    found = importlib.util.find_spec(module) if module.isidentifier() else None
    if found is None or found.origin is None:
        raise ConfigError(f"{who}: expected a package {module!r} with the weights; it is not installed")
    directory = Path(found.origin).parent / below
    for place in (directory, directory / "model"):
        if any(place.glob("*.safetensors")) or any(place.glob("*.onnx")) or (place / "tokenizer.json").is_file():
            return place
    raise ConfigError(f"{who}: expected .safetensors or .onnx in {directory}; the package has none")
