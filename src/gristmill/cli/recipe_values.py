"""From `--input`, `--output` and `--set` to the values of a recipe's variables."""

from collections.abc import Sequence

from gristmill.config.load_yaml import load_yaml
from gristmill.errors import ConfigError


def recipe_values(inputs: Sequence[str], output: str | None, settings: Sequence[str]) -> dict[str, object]:
    """Return the values by name. Values of `--set` are read as YAML: `5` is a number, `[a, b]` a list."""
    values: dict[str, object] = {}
    if inputs:
        values["input"] = inputs[0] if len(inputs) == 1 else list(inputs)
    if output is not None:
        values["output"] = output
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set: expected NAME=VALUE; got {setting!r}")
        values[name.strip()] = load_yaml(text, who=f"--set {name.strip()}") if text else ""
    return values
