"""Decontamination: documents that hold parts of a benchmark."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.stages.text.decontamination.decontaminate import Decontaminate

__all__ = ["Decontaminate"]

_HOMES = {
    "decontaminate": ("Decontaminate",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
