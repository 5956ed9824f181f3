"""The files of a model as stages see them: looked for while planning, fetched once on each machine, opened in workers.

A hub token is handed to the processes this one starts through their environment, and is never pickled with a stage.
"""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from gristmill.errors import ConfigError, MissingDependency
from gristmill.models.known_configs import max_length, read_config, takes_longer
from gristmill.models.runtime import ModelSource, check_installed, choose_runtime, locate_tokenizer
from gristmill.models.weights import locate
from gristmill.stages.base import AnyStage

VARIABLE = "HF_TOKEN"  # what the hub's own library reads


def check_positive(stage: AnyStage, names: Sequence[str]) -> None:
    """Raise ConfigError unless these parameters are None or whole numbers ≥ 1."""
    for name in names:
        value = getattr(stage, name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigError(f"{stage.stage_name()}: expected {name} to be a whole number ≥ 1; got {value!r}")


def model_ready(source: ModelSource, token: str | None, max_seq_length: int | None) -> None:
    """Raise if the model cannot be loaded here: no library, no files, files of the wrong kind, rows too long for it."""
    check_installed(source)
    hand_on(token)
    directory = locate(source)
    choose_runtime(source, directory)
    for part in source.parts():
        locate(part)
    config = read_config(locate_tokenizer(source), elsewhere=directory)
    if max_seq_length is not None and max_seq_length > max_length(config) and not takes_longer(config):
        raise ConfigError(
            f"{source.who}: expected max_seq_length ≤ {max_length(config)}, the positions of the model in {directory}; "
            f"got {max_seq_length}"
        )


def tokenizer_ready(source: ModelSource, token: str | None) -> None:
    """Raise if the tokenizer cannot be loaded here."""
    if find_spec("tokenizers") is None:
        raise MissingDependency(f"{source.who} needs tokenizers. Install: pip install 'gristmill[models]'")
    hand_on(token)
    directory = locate_tokenizer(source)
    if not (directory / "tokenizer.json").is_file():
        raise ConfigError(f"{source.who}: expected a tokenizer.json in {directory}; it has none")


def hand_on(token: str | None) -> None:
    """Leave the token to the processes that will be started; what the environment says already stays."""
    if isinstance(token, str) and token:
        os.environ.setdefault(VARIABLE, token)


def make_absolute(stage: AnyStage) -> None:
    """Make the model's directory absolute, in the copy a plan is made of."""
    for name in ("model_identifier", "cache_dir", "tokenizer_identifier", "base_identifier", "adapter_identifier"):
        given = getattr(stage, name, None)
        if isinstance(given, str) and not Path(given).is_absolute() and (name == "cache_dir" or Path(given).is_dir()):
            setattr(stage, name, str(Path(given).absolute()))
