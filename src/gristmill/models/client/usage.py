"""Answers, and what asking has taken: requests, retries, tokens, money; and the limit on the money. Arithmetic only.

A request's cost is known when it is answered. So that a limit is a limit, each request that leaves reserves the most it
can cost, and gives back what it did not use.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from gristmill.errors import ConfigError, nearest


class Answer(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One choice of a model. `finish_reason` is "length" where it was cut off at `max_tokens`. In JSON it is a pair."""

    text: str
    finish_reason: str = "stop"

    @property
    def is_truncated(self) -> bool:
        return self.finish_reason == "length"


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What came of one question: the answers, `n` of them, and what they took.

    `requests` were sent for it, 0 if it was in the cache or the same question was under way; `retries` counts by kind
    those that came to nothing. Tokens and cost are those of the answers, whoever paid for them.
    """

    answers: tuple[Answer, ...]
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    from_cache: bool = False
    requests: int = 0
    retries: Mapping[str, int] = {}
    cost: float = 0.0

    @property
    def texts(self) -> list[str]:
        return [answer.text for answer in self.answers]


Price = tuple[float, float]  # of a million tokens: those sent, those answered


def read_prices(given: "Mapping[str, object] | None", *, who: str) -> dict[str, Price]:
    """Return prices by model. `given` has for each a pair, or a mapping with "input" and "output"."""
    prices: dict[str, Price] = {}
    for model, price in (given or {}).items():
        pair = (price.get("input"), price.get("output")) if isinstance(price, Mapping) else price
        try:
            sent, answered = map(float, pair)  # type: ignore[call-overload]  # whatever it is, it is checked here
        except (TypeError, ValueError):
            sent = answered = -1.0
        if min(sent, answered) < 0:
            raise ConfigError(
                f"{who}: expected prices[{model!r}] to be two numbers, for a million tokens sent and a million "
                f"answered; got {price!r}"
            )
        prices[model] = (sent, answered)
    return prices


def cost_of(price: Price | None, sent: int, answered: int) -> float:
    """Return what these tokens cost.

    >>> cost_of((0.5, 1.5), 1_000_000, 2_000_000)
    3.5
    """
    return 0.0 if price is None else (price[0] * sent + price[1] * answered) / 1e6


def price_for(model: str, prices: Mapping[str, Price], *, who: str) -> Price:
    """Return a model's price, or say that a limit on the cost needs one."""
    if model not in prices:
        raise ConfigError(
            f"{who}: expected prices to name {model!r}, because max_total_cost is set; got {sorted(prices)}"
            f"{nearest(model, prices)}"
        )
    return prices[model]


@dataclass
class Budget:
    """Money that may be spent. What is under way counts with the most it can cost."""

    limit: float
    spent: float = 0.0
    reserved: float = 0.0

    def has_room(self, cost: float) -> bool:
        """Whether a request that costs at most `cost` may leave."""
        return self.spent + self.reserved + cost <= self.limit

    def reserve(self, cost: float) -> None:
        """A request leaves that costs at most `cost`."""
        self.reserved += cost

    def settle(self, reserved: float, cost: float) -> None:
        """A request is over, and cost this."""
        self.reserved -= reserved
        self.spent += cost


@dataclass
class Usage:
    """What a client has used in this process."""

    answers: int = 0
    requests: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    retries: Counter[str] = field(default_factory=Counter)
