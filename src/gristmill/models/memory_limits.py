"""How large a batch may be, learnt from batches that did not fit. Pure: the time is passed in, no device is needed.

    start ──► OOM ──► halve until below what failed, run the same rows again
                │     `ceiling`: the smallest size that has failed
                ▼
          50 good batches ──► double, but stay below the ceiling
                              the ceiling is forgotten after 600 s, for one attempt: another process may have held
                              the memory

Sizes are counted in rows and in padded tokens, each with a ceiling of its own. Which of the two was too much shows in
what has fitted: if as many short rows did, it is the tokens, or the other way round. While nothing is known both are
halved, and the wrong one's ceiling is lifted when a batch beyond it fits. A single row that does not fit cannot be
helped: the caller puts that document aside.
"""

from dataclasses import dataclass, field

GOOD_BATCHES = 50
FORGET_S = 600.0

# What the libraries say; none of them has an exception of its own for every device.
_TEXTS = (
    "can't allocate memory",  # torch: [enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory
    "DefaultCPUAllocator: not enough memory",  # torch on other systems
    "MPS backend out of memory",
    "CUDA out of memory",
    "Failed to allocate memory",  # onnxruntime's Fail, which is not a RuntimeError
    "is smaller than requested bytes",  # the same, where a limit is set for its arena
    "CUDA failure 2",  # onnxruntime on a GPU: out of memory
    "CUBLAS_STATUS_ALLOC_FAILED",
)
_NAMES = {"OutOfMemoryError"}  # torch.OutOfMemoryError; compared by name, so that torch need not be there
_CARRIERS = {"RuntimeError", "Fail", "RuntimeException", "OutOfMemoryError"}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception of a model library says that the device has no room for the batch."""
    if isinstance(error, MemoryError):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _NAMES:
        return True
    return bool(names & _CARRIERS) and any(text in str(error) for text in _TEXTS)


@dataclass
class _Limit:
    """One measure of size: the limit in force, what it may grow to again, and what has failed."""

    most: int
    now: int
    ceiling: int | None = None
    held: int = 0  # the largest that has fitted
    before: int = 0  # the limit before there was a ceiling

    def note_fitted(self, size: int) -> None:
        self.held = max(self.held, size)
        if self.ceiling is not None and size >= self.ceiling:  # it was the other measure that was too much then
            self.ceiling = None
            self.now = max(self.now, self.before)

    def shrink_below(self, failed: int) -> None:
        if self.ceiling is None:
            self.before = self.now
        self.ceiling = failed if self.ceiling is None else min(failed, self.ceiling)
        self.now = max(self.now // 2, 1)
        while self.now >= failed and self.now > 1:  # a batch may be smaller than allowed: the same rows must not recur
            self.now //= 2

    def grow(self) -> bool:
        wanted = min(self.now * 2, self.most)
        if wanted == self.now or (self.ceiling is not None and wanted >= self.ceiling):
            return False
        self.now = wanted
        return True


@dataclass
class MemoryLimits:
    """The most rows and padded tokens of a batch, as of now.

    `max_rows` and `max_tokens` are what the user, or the device, allows at most.
    """

    max_rows: int
    max_tokens: int
    failures: int = 0  # batches that did not fit, for the report
    _rows: _Limit = field(init=False)
    _tokens: _Limit = field(init=False)
    _good: int = 0
    _failed_at: float | None = None

    def __post_init__(self) -> None:
        self._rows = _Limit(self.max_rows, self.max_rows)
        self._tokens = _Limit(self.max_tokens, self.max_tokens)

    @property
    def rows(self) -> int:
        return self._rows.now

    @property
    def tokens(self) -> int:
        return self._tokens.now

    def begin_at(
        self, *, rows: float | None = None, tokens: float | None = None, deaths: float = 0, now: float = 0.0
    ) -> None:
        """Start from what other workers have learnt. It is a start: it grows again as after a failure.

        `deaths` are workers killed for memory, which could not note their failures: the limits are halved for each.
        """
        for limit, learnt in ((self._rows, rows), (self._tokens, tokens)):
            if learnt is not None:
                limit.now = max(1, min(limit.most, int(learnt)))
            for _ in range(int(deaths)):
                limit.shrink_below(limit.now)
        if deaths:
            self._failed_at = now

    def failed(self, rows: int, longest: int, *, now: float) -> bool:
        """Note that `rows` rows, padded to the longest, did not fit; return whether fewer of them might."""
        self.failures += 1
        self._good = 0
        self._failed_at = now
        if rows <= 1:
            return False  # nothing is learnt from a document that does not fit alone: the others are shorter
        tokens = rows * longest
        rows_fitted, tokens_fitted = rows <= self._rows.held, tokens <= self._tokens.held
        if rows_fitted == tokens_fitted:  # not known; or both have fitted, and another process holds the memory now
            self._rows.held = self._tokens.held = 0
        if tokens_fitted or not rows_fitted:
            self._rows.shrink_below(rows)
        if rows_fitted or not tokens_fitted:
            self._tokens.shrink_below(tokens)
        return True

    def succeeded(self, rows: int = 0, longest: int = 0, *, now: float) -> None:
        """Note that a batch of `rows` rows, padded to the longest, fitted."""
        self._rows.note_fitted(rows)
        self._tokens.note_fitted(rows * longest)
        self._good += 1
        if self._good < GOOD_BATCHES:
            return
        self._good = 0
        if self._failed_at is not None and now - self._failed_at >= FORGET_S:
            self._rows.ceiling = self._tokens.ceiling = None
            self._failed_at = now  # once per growth: the next attempt is as far away again
        self._rows.grow()
        self._tokens.grow()
