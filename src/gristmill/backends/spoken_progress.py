"""`SpokenProgress`: a line about a run now and then, for programs that watch it with nothing better."""

import sys

from gristmill.metrics.snapshot import RunSnapshot


class SpokenProgress:
    """An observer that writes to standard error, at most once in `interval_s`, and when the run has ended."""

    def __init__(self, name: str, interval_s: float) -> None:
        self.name = name
        self.interval_s = interval_s
        self._last_s = 0.0

    def __call__(self, snapshot: RunSnapshot) -> None:
        for message in snapshot.messages:
            print(f"{self.name}: {message}", file=sys.stderr)
        if snapshot.state == "running" and snapshot.elapsed_s - self._last_s < self.interval_s:
            return
        self._last_s = snapshot.elapsed_s
        print(
            f"{self.name}: {snapshot.state} after {snapshot.elapsed_s:.0f} s, {snapshot.partitions_done} of "
            f"{snapshot.partitions_total} partitions; {snapshot.read:,} documents read, {snapshot.written:,} written",
            file=sys.stderr,
        )
