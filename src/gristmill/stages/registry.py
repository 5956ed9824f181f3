"""Stage classes by name, for recipes and `gristmill stages`.

A class enters when it is defined. Two classes of one name are an error unless the second is the first one defined
again (a module reloaded, a notebook cell run twice, a class unpickled by value in a worker).
"""

from gristmill.errors import ConfigError, nearest

_STAGE_CLASSES: dict[str, type] = {}


def register(cls: type) -> None:
    """Add a stage class under its own name."""
    known = _STAGE_CLASSES.get(cls.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ConfigError(
            f"stage registry: expected one class named {cls.__name__!r}; "
            f"got {known.__module__}.{known.__qualname__} and {cls.__module__}.{cls.__qualname__}"
        )
    _STAGE_CLASSES[cls.__name__] = cls


def get_stage_class(name: str) -> type:
    """Return the stage class of this name."""
    try:
        return _STAGE_CLASSES[name]
    except KeyError:
        raise ConfigError(f"stage {name!r}: expected a known stage{nearest(name, _STAGE_CLASSES)}") from None


def stage_classes() -> dict[str, type]:
    """All stage classes defined so far, by name."""
    return dict(_STAGE_CLASSES)
