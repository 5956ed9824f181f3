"""`Telling`: whoever watches a run is told how it is, each as often as it wants: observer, status file, log."""

import time
from collections.abc import Callable

from gristmill.metrics.snapshot import RunSnapshot
from gristmill.runs.directory import RunDirectory

SNAPSHOT_S = 0.25
STATUS_S = 1.0
COST_SHARE = 0.01  # of the time: on a busy machine the memory of many processes takes long to add up
MOST_S = 2.0  # but whoever watches a large machine wants to see that it is alive


class Telling:
    """Remembers who was told when. `directory` is None for a run that leaves none."""

    def __init__(
        self,
        directory: RunDirectory | None,
        observer: Callable[[RunSnapshot], None] | None,
        logging_interval: float,
    ) -> None:
        self._directory = directory
        self._observer = observer
        self._logging_interval = logging_interval
        # At the start there is nothing to see yet, and workers that want to be started; many runs are over by then.
        self._next_snapshot = time.monotonic() + SNAPSHOT_S
        self._last_status = 0.0
        self._last_log = time.monotonic()
        self._messages_told = 0

    def tell(self, messages: list[str], make: Callable[[list[str]], RunSnapshot], *, at_once: bool = False) -> None:
        """Tell who is due. `make` gets the messages nobody has heard yet, and is called only if somebody listens."""
        now = time.monotonic()
        has_first_words = bool(messages) and not self._messages_told
        if not at_once and not has_first_words and now < self._next_snapshot:
            return
        self._next_snapshot = now + SNAPSHOT_S
        if self._observer is None and self._directory is None:
            return
        snapshot = make(messages[self._messages_told :])
        made = time.monotonic()
        self._next_snapshot = max(now + SNAPSHOT_S, made + min(MOST_S, (made - now) / COST_SHARE))
        self._messages_told = len(messages)
        if self._observer is not None:
            self._observer(snapshot)
        if self._directory is None:
            return
        if at_once or now - self._last_status >= STATUS_S:
            self._last_status = now
            self._directory.write_status(snapshot)
        if at_once or now - self._last_log >= self._logging_interval:
            self._last_log = now
            self._directory.log_metrics(snapshot)
