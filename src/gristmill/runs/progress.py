"""`Telling`: whoever watches a run is told how it is, each as often as it wants: observer, status file, history."""

import time
from collections.abc import Callable

from gristmill.metrics.history_writer import LEAST_S, HistoryWriter
from gristmill.metrics.snapshot import SNAPSHOT_S, RunSnapshot
from gristmill.runs.directory import RunDirectory
from gristmill.runs.snapshots import STATUS_S

COST_SHARE = 0.01  # of the time: on a busy machine the memory of many processes takes long to add up
MOST_S = 2.0  # but whoever watches a large machine wants to see that it is alive


class Telling:
    """Remembers who was told when. `directory` is None for a run that leaves none."""

    def __init__(
        self,
        directory: RunDirectory | None,
        observer: Callable[[RunSnapshot], None] | None,
        logging_interval: float | None,
    ) -> None:
        self._directory = directory
        self._observer = observer
        self._history = HistoryWriter(logging_interval)
        self._history_s = LEAST_S if logging_interval is None else logging_interval
        # At the start there is nothing to see yet, and workers that want to be started; many runs are over by then.
        self._words_at = self._snapshot_at = time.monotonic() + SNAPSHOT_S
        self._every_s: float | None = None  # asked when workers are starting: to answer, a display has to be loaded
        self._last_status = 0.0
        self._messages_told = 0

    def tell(self, messages: list[str], make: Callable[[list[str]], RunSnapshot], *, at_once: bool = False) -> None:
        """Tell whoever is due. `make` gets the messages nobody has heard yet; it is called only if somebody listens."""
        now = time.monotonic()
        if self._observer is None and self._directory is None:
            return
        if not at_once and not self._is_due(now, len(messages)):
            return
        snapshot = make(messages[self._messages_told :])
        made = time.monotonic()
        self._words_at = max(now + SNAPSHOT_S, made + min(MOST_S, (made - now) / COST_SHARE))
        self._snapshot_at = max(now + self._wanted_s(), self._words_at)
        self._messages_told = len(messages)
        if self._observer is not None:
            self._observer(snapshot)
        if self._directory is None:
            return
        if at_once or now - self._last_status >= STATUS_S:
            self._last_status = now
            self._directory.write_status(snapshot)
        if at_once or self._history.is_due(snapshot.elapsed_s):
            self._directory.append_history(self._history.lines(snapshot))

    def _is_due(self, now: float, num_messages: int) -> bool:
        if self._every_s is None:
            self._snapshot_at += self._wanted_s() - SNAPSHOT_S
        if num_messages > self._messages_told:
            return not self._messages_told or now >= self._words_at
        return now >= self._snapshot_at

    def _wanted_s(self) -> float:
        """How often somebody wants to know, words apart."""
        if self._every_s is None:
            wanted = [] if self._observer is None else [getattr(self._observer, "snapshot_s", SNAPSHOT_S)]
            wanted += [] if self._directory is None else [min(STATUS_S, self._history_s)]
            self._every_s = min(wanted, default=STATUS_S)
        return self._every_s
