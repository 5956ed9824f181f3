"""What is tried again, when, and how many requests may be under way. Rules only: no clock, no chance, no network.

Callers pass in the time and a random number, so that a test replays an hour in a millisecond.

    failure                                            what follows
    429                                                tried again; the whole window waits and is halved
    408, 409, 5xx, lost connection, time-out, answer
      that is cut, not JSON, without choice, null      tried again, after a wait of its own
    refused connection                                 tried again; counts as no attempt: nothing was sent
    400, 413, 422 and other statuses                   the question's own fault: it fails at once
    401, 403, 404                                      the same; ten in a row concern all (`Window.is_shut`)
"""

import email.utils
from collections.abc import Mapping
from dataclasses import dataclass, field

from gristmill.models.client.usage import Budget

MAX_RETRY_AFTER_S = 120.0
MAX_BACKOFF_S = 60.0
IN_A_ROW = 10  # refusals, after which nothing more is sent
REFUSALS = frozenset({401, 403, 404})
RETRIED_STATUSES = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request came to nothing. `kind` is counted: "429", "timeout", "not_json"."""

    kind: str
    status: int | None = None
    retry_after_s: float | None = None
    detail: str = ""  # the end of what the server said
    nothing_sent: bool = False  # the connection was refused

    @property
    def is_retried(self) -> bool:
        """Whether the same request may be answered another time."""
        return self.status is None or self.status in RETRIED_STATUSES or self.status >= 500

    @property
    def is_refusal(self) -> bool:
        """Whether it says something about the key or the address, and not about this request."""
        return self.nothing_sent or self.status in REFUSALS


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long a server wants to be left alone. `now` is its date, in seconds since 1970.

    >>> retry_after_s({"retry-after-ms": "250"}, 0.0), retry_after_s({"Retry-After": "3"}, 0.0)
    (0.25, 3.0)
    """
    lower = {name.lower(): value for name, value in headers.items() if name.lower().startswith("retry-after")}
    seconds = _number(lower.get("retry-after-ms"), 0.001)
    if seconds is None:
        seconds = _number(lower.get("retry-after"), 1.0)
    if seconds is None and (date := lower.get("retry-after")) is not None:
        try:
            seconds = email.utils.parsedate_to_datetime(date).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _number(text: str | None, unit: float) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number * unit if 0 <= number < 1e12 else None


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is sent again, and after how long."""

    max_retries: int = 3
    base_delay: float = 1.0

    def wait_s(self, failure: Failure, attempt: int, chance: float) -> float | None:
        """Return the seconds to wait before the next attempt, or None if there is none.

        `attempt` counts the attempts before this one, `chance` is random in [0, 1): the whole wait is random, so that
        requests that failed together do not come back together.
        """
        if not failure.is_retried or attempt >= self.max_retries:
            return None
        return max(failure.retry_after_s or 0.0, self.backoff_s(attempt, chance))

    def backoff_s(self, attempt: int, chance: float) -> float:
        """Return a random wait that doubles with every attempt."""
        return chance * min(MAX_BACKOFF_S, self.base_delay * 2.0 ** min(attempt, 30))


@dataclass
class Pace:
    """An amount a minute, evenly spread: never more in any minute. Up to a second's worth may be made up for."""

    per_minute: float
    next_at: float = float("-inf")

    def wait_s(self, now: float) -> float:
        """Return how long the next one has to wait."""
        return max(0.0, self.next_at - now)

    def take(self, amount: float, now: float) -> None:
        """Note that `amount` leaves now."""
        self.next_at = max(self.next_at, now - 1.0) + amount * 61.0 / self.per_minute

    def give_back(self, amount: float) -> None:
        """Note that `amount` less, or more if it is negative, was used than had been taken."""
        self.next_at -= amount * 61.0 / self.per_minute


@dataclass(frozen=True, slots=True)
class Load:
    """The most that a request is expected to use: tokens, and money."""

    tokens: int = 0
    cost: float = 0.0


NO_LOAD = Load()


@dataclass(frozen=True, slots=True)
class Ticket:
    """A request's place in the window: how often the window had been halved and made to wait when it left."""

    halvings: int
    refusals: int
    load: Load = NO_LOAD


@dataclass
class Window:
    """How many requests may be under way: halved when the server says too many (429), one more per window of answers.

    Many requests that left together fail together. That is one event: a failure counts only if its request left after
    the last one that counted. Before the first answer no more requests are under way than refusals are allowed, so
    that a wrong key is found out with ten requests and not with a thousand.
    """

    size: int
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    requests: Pace | None = None
    tokens: Pace | None = None
    budget: Budget | None = None
    limit: int = field(init=False)
    in_flight: int = field(default=0, init=False)
    paused_until: float = field(default=float("-inf"), init=False)
    refused: int = field(default=0, init=False)  # in a row
    last_refusal: Failure | None = field(default=None, init=False)
    is_proven: bool = field(default=False, init=False)  # something was answered
    _halvings: int = field(default=0, init=False)
    _refusals: int = field(default=0, init=False)
    _successes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.limit = self.size

    @property
    def is_shut(self) -> bool:
        """Whether the server refuses everything, and nothing more is to be sent."""
        return self.refused >= IN_A_ROW

    @property
    def room(self) -> int:
        """How many requests may leave, were it not for pauses and paces."""
        most = self.limit if self.is_proven else min(self.limit, IN_A_ROW - self.refused)
        return max(0, most - self.in_flight)

    def wait_s(self, now: float, load: Load = NO_LOAD) -> float | None:
        """Return how long a request must wait; None if another must end first."""
        if not self.room or (self.budget is not None and not self.budget.has_room(load.cost)):
            return None
        waits = [self.paused_until - now]
        waits += [pace.wait_s(now) for pace in (self.requests, self.tokens) if pace is not None]
        return max(0.0, *waits)

    def is_spent(self, load: Load) -> bool:
        """Whether a request can never leave, because the money for it is gone and none is reserved any more."""
        return self.budget is not None and not self.in_flight and not self.budget.has_room(load.cost)

    def begin(self, now: float, load: Load = NO_LOAD) -> Ticket:
        """A request leaves."""
        self.in_flight += 1
        if self.requests is not None:
            self.requests.take(1, now)
        if self.tokens is not None:
            self.tokens.take(load.tokens, now)
        if self.budget is not None:
            self.budget.reserve(load.cost)
        return Ticket(self._halvings, self._refusals, load)

    def _end(self, ticket: Ticket, cost: float = 0.0) -> None:
        self.in_flight -= 1
        if self.budget is not None:
            self.budget.settle(ticket.load.cost, cost)

    def succeeded(self, ticket: Ticket, used: Load | None = None) -> None:
        """A request was answered, and used this much."""
        self._end(ticket, 0.0 if used is None else used.cost)
        self.is_proven = True
        self.refused = 0
        self._successes += 1
        if self._successes >= self.limit:
            self._successes = 0
            self.limit = min(self.size, self.limit + 1)
        if used is not None and self.tokens is not None:
            self.tokens.give_back(ticket.load.tokens - used.tokens)

    def abandoned(self, ticket: Ticket) -> None:
        """A request was given up by its sender. It may have to be paid for: there is no way to know."""
        self._end(ticket)

    def failed(self, ticket: Ticket, failure: Failure, now: float, chance: float) -> None:
        """A request came to nothing."""
        self._end(ticket)
        if failure.status == 429:
            wait_s = max(failure.retry_after_s or 0.0, self.policy.backoff_s(0, chance))
            self.paused_until = max(self.paused_until, now + wait_s)
            if ticket.halvings == self._halvings:
                self._halvings += 1
                self._successes = 0
                self.limit = max(1, self.limit // 2)
        if failure.is_refusal and (not self.is_proven or ticket.refusals == self._refusals):
            self.last_refusal = failure
            if failure.nothing_sent and self.is_proven:  # the server was there, and may be back in a moment
                wait_s = self.policy.backoff_s(self.refused, chance)
                self.paused_until = max(self.paused_until, now + wait_s)
                self._refusals += 1
            self.refused += 1
        elif not failure.is_refusal and failure.status is not None:
            self.refused = 0  # the key and the address are good enough for another answer
