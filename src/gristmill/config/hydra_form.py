"""Recipes in the form Hydra gives them: every stage by `_target_`, and the file's own top-level keys as variables.

    defaults: [_self_]
    input_path: ???                     # ??? has to be given
    text_field: text
    stages:
      - _target_: gristmill.stages.text.io.reader.JsonlReader
        file_paths: ${input_path}

Such files exist, so they are taken as they are. In recipes of our own form an unknown top-level key stays an error,
because there it is a misspelt one.
"""

from collections.abc import Mapping

from gristmill.errors import ConfigError

WORKFLOW = "workflow"
_ABOUT_HYDRA = ("defaults", "hydra", "documentation")  # checked for what they may ask for, and left out
_OURS = ("name", "description", "variables", "stages", "executor")
_TARGET = "_target_"
_REQUIRED = "???"


def is_hydra_form(document: Mapping[object, object]) -> bool:
    """Whether all its stages, or its workflow, are named by `_target_`."""
    items = document.get(WORKFLOW, document.get("stages"))
    items = items if isinstance(items, list) else [items]
    return bool(items) and all(isinstance(item, Mapping) and _TARGET in item for item in items)


def to_recipe_form(document: Mapping[object, object], *, who: str) -> dict[str, object]:
    """Return the same as a recipe of our form. A key without a value (`???`) becomes a variable without a default."""
    _check_defaults(document.get("defaults"), who)
    own = {key: value for key, value in document.items() if key not in (*_ABOUT_HYDRA, *_OURS, WORKFLOW)}
    given = document.get("variables")
    variables = dict(given) if isinstance(given, Mapping) else {}
    _flatten(own, "", variables)
    kept = {str(key): value for key, value in document.items() if key in _OURS}
    return {**kept, "variables": variables}


def _flatten(values: Mapping[object, object], prefix: str, into: dict[object, object]) -> None:
    """`${model.size}` means the key `size` below `model`; `${model}` all of it."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if value != _REQUIRED:
            into[name] = value
        if isinstance(value, Mapping):
            _flatten(value, f"{name}.", into)


def _check_defaults(defaults: object, who: str) -> None:
    """Other files that Hydra would merge in would change what runs: they are refused, not ignored."""
    listed = defaults if isinstance(defaults, list) else [] if defaults is None else [defaults]
    others = [item for item in listed if item != "_self_" and not _is_about_hydra(item)]
    if others:
        raise ConfigError(
            f"{who}: expected 'defaults' to name this file only (_self_); got {others!r:.200}. "
            "Put what those files say into this one"
        )


def _is_about_hydra(item: object) -> bool:
    """`override hydra/job_logging: disabled` and the like."""
    return isinstance(item, Mapping) and all("hydra/" in str(key) for key in item)
