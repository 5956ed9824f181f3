"""Stage classes by name, for recipes and `gristmill stages`.

A class is added when it is defined. Two classes of one name are an error unless the second is the first one defined
again (a module reloaded, a notebook cell run twice, a class unpickled by value in a worker), or one is gristmill's and
the other a user's: users cannot know all our names, and ours grow in number. Then a recipe must say which it means.
"""

from gristmill.errors import ConfigError, nearest

_STAGE_CLASSES: dict[str, type] = {}
_FUNCTIONS: dict[str, type] = {}  # stages made by @processing_stage
_NAMESAKES: dict[str, type] = {}  # users' classes that are called like one of ours


def register(cls: type) -> None:
    """Add a stage class under its own name."""
    known = _STAGE_CLASSES.get(cls.__name__)
    if known is None or _path(known) == _path(cls):
        _STAGE_CLASSES[cls.__name__] = cls
    elif _is_ours(known) != _is_ours(cls):
        ours, theirs = (known, cls) if _is_ours(known) else (cls, known)
        _STAGE_CLASSES[cls.__name__], _NAMESAKES[cls.__name__] = ours, theirs
    else:
        raise ConfigError(
            f"stage registry: expected one class named {cls.__name__!r}; got {_path(known)} and {_path(cls)}"
        )


def register_function(name: str, cls: type) -> None:
    """Add the class of a decorated function under the name it was given; the last one of a name counts."""
    _FUNCTIONS[name] = cls


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith("gristmill.")


def get_stage_class(name: str) -> type:
    """Return the stage class of this name."""
    check_is_one(name)
    found = _STAGE_CLASSES.get(name) or _FUNCTIONS.get(name)
    if found is None:
        hint = nearest(name, [*_STAGE_CLASSES, *_FUNCTIONS])
        raise ConfigError(f"stage {name!r}: expected a known stage{hint}")
    return found


def check_is_one(name: str) -> None:
    """Raise ConfigError if a user's class is called like one of ours, and so a name alone does not say which."""
    if name in _NAMESAKES:
        ours, theirs = _path(_STAGE_CLASSES[name]), _path(_NAMESAKES[name])
        raise ConfigError(f"stage {name!r}: expected a name that only one class has; say {ours} or {theirs}")


def stage_classes() -> dict[str, type]:
    """All stage classes defined so far, by name."""
    return dict(_STAGE_CLASSES)
