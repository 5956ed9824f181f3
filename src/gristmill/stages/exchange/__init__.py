"""Exchange: rows regrouped by a key between two parts of a pipeline, and stages that need it."""

from gristmill.stages.exchange.aggregate import Aggregate
from gristmill.stages.exchange.exchange import Exchange
from gristmill.stages.exchange.shuffle import Shuffle

__all__ = ["Aggregate", "Exchange", "Shuffle"]
