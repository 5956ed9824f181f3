"""`Spoken`: the warnings of a run worth saying now: each at once, and not eighty times in a minute.

Warnings of the engine come with snapshots; quarantined documents are seen in the snapshots' counts.
"""

from collections.abc import Iterator

import msgspec

from gristmill.metrics.snapshot import RunSnapshot, alike

AT_ONCE = 5  # of messages that differ in numbers and names only; then one a minute
AGAIN_S = 60.0
ENDED = ("finished", "stopped", "failed")


class _Heard(msgspec.Struct):
    """Messages of one kind."""

    said: int = 0
    last_s: float = 0.0
    unsaid: int = 0
    latest: str = ""


class Spoken:
    """Remembers what was said about one run."""

    def __init__(self) -> None:
        self._heard: dict[str, _Heard] = {}
        self._next_quarantined = 1

    def news(self, snapshot: RunSnapshot) -> Iterator[str]:
        """Yield what to say after this snapshot."""
        for message in snapshot.messages:
            yield from self._message(message, snapshot.elapsed_s)
        if snapshot.state in ENDED:
            yield from self._leftovers()
        elif snapshot.quarantined >= self._next_quarantined:
            self._next_quarantined = 10 * snapshot.quarantined
            yield _quarantined(snapshot)

    def _message(self, message: str, now_s: float) -> Iterator[str]:
        heard = self._heard.setdefault(alike(message), _Heard())
        if heard.said >= AT_ONCE and now_s - heard.last_s < AGAIN_S:
            heard.unsaid += 1
            heard.latest = message
            return
        yield message + _more(heard)
        heard.said, heard.last_s, heard.unsaid = heard.said + 1, now_s, 0

    def _leftovers(self) -> Iterator[str]:
        for heard in self._heard.values():
            if heard.unsaid:
                heard.unsaid -= 1
                yield heard.latest + _more(heard)
                heard.unsaid = 0


def _more(heard: _Heard) -> str:
    return f" (and {heard.unsaid:,} more like this)" if heard.unsaid else ""


def _quarantined(snapshot: RunSnapshot) -> str:
    """How many, in which stage, and by which error: what one needs to know to decide whether to let the run go on."""
    worst = max(snapshot.stages, key=lambda stage: stage.quarantined, default=None)
    number = snapshot.quarantined
    where = f", {'most' if worst.quarantined < number else 'all'} in stage {worst.name}" if worst else ""
    why = f"; the commonest error: {worst.error}" if worst and worst.error else ""
    return f"{number:,} document{'s' * (number != 1)} quarantined so far, of {snapshot.read:,} read{where}{why}"
