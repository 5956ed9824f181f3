"""Exchange: rows regrouped by a key between two parts of a pipeline, and stages that need it."""

from typing import TYPE_CHECKING

from gristmill.lazy_names import fetched_from

if TYPE_CHECKING:
    from gristmill.stages.exchange.aggregate import Aggregate
    from gristmill.stages.exchange.exchange import Exchange
    from gristmill.stages.exchange.shuffle import Shuffle

__all__ = ["Aggregate", "Exchange", "Shuffle"]

_HOMES = {
    "aggregate": ("Aggregate",),
    "exchange": ("Exchange",),
    "shuffle": ("Shuffle",),
}

if not TYPE_CHECKING:
    __getattr__ = fetched_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
