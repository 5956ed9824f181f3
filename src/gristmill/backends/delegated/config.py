"""`config={...}` of an executor, read into a frozen dataclass. For an unknown option the error says whose it is."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from gristmill.backends.options import check_options
from gristmill.engine.plan import Group
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor

C = TypeVar("C")


def option_names(kind: type, *more: str) -> tuple[str, ...]:
    """The keys of `config`, and parameters of the executor itself."""
    return (*(field.name for field in fields(kind)), *more)


def read_config(executor: "type[BaseExecutor]", kind: type[C], given: Mapping[str, object] | None) -> C:
    """Return the configuration with defaults for what is not given; raises ConfigError for anything wrong in it."""
    import msgspec

    who = executor.__name__
    if given is not None and not isinstance(given, Mapping):
        raise ConfigError(f"{who}: expected config to be a mapping of options; got {given!r}")
    check_options(executor, given or {})
    try:
        return msgspec.convert(dict(given or {}), kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        name = where.rstrip("`")
        raise ConfigError(f"{who}: {name}: {what[:1].lower()}{what[1:].replace('`', '')}") from None


def check_gpus(engine: str, groups: Iterable[Group]) -> None:
    """Raise ConfigError for a group that asks for a part of a GPU in gigabytes, which no other engine supports."""
    for group in groups:
        need = group.resources
        if need.gpu_memory_gb and not need.gpus:
            raise ConfigError(
                f"{group.name}: expected GPUs as Resources(gpus=...), the only way {engine} knows; got "
                f"gpu_memory_gb={need.gpu_memory_gb:g}. LocalExecutor and RayActorPoolExecutor share GPUs by memory"
            )
