"""`load_yaml`: YAML text to plain Python values, with mistakes reported by line."""

from typing import TYPE_CHECKING, cast

from gristmill.errors import ConfigError

if TYPE_CHECKING:
    import yaml


def load_yaml(text: str, *, who: str) -> object:
    """Parse one document. A key given twice is an error: YAML would keep the last one without a word."""
    import yaml

    try:
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader), who)
        return cast("object", yaml.safe_load(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{who}: expected YAML; got a mistake{where}: {problem}") from None


def _refuse_repeated_keys(node: "yaml.Node | None", who: str) -> None:
    if not isinstance(getattr(node, "value", None), list):
        return
    pairs = [item if isinstance(item, tuple) else (None, item) for item in cast("yaml.CollectionNode", node).value]
    seen: set[object] = set()
    for key, value in pairs:
        if key is not None and isinstance(key.value, str):
            if key.value in seen:
                line = key.start_mark.line + 1
                raise ConfigError(f"{who}: expected each key once; got {key.value!r} again in line {line}")
            seen.add(key.value)
        _refuse_repeated_keys(value, who)
