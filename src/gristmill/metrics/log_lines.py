"""Lines of a log: as text, or one JSON object per line for log collectors. Repeated lines are counted.

`--log-format json` sets GRISTMILL_LOG_FORMAT, so that processes started later write the same.
"""

import datetime
import json
import os

VARIABLE = "GRISTMILL_LOG_FORMAT"
FORMATS = ("text", "json")


def is_json() -> bool:
    """Whether lines are to be JSON."""
    return os.environ.get(VARIABLE) == "json"


def log_line(message: str, *, level: str = "info", stage: str = "", worker: str = "") -> str:
    """One message in the form that is wanted, without a line feed at its end; its writer removes secrets."""
    if not is_json():
        who = " ".join(part for part in (stage, worker) if part)
        return f"[{who}] {level}: {message}" if who else message
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    return json.dumps({"time": now, "level": level, "stage": stage, "worker": worker, "message": message})


class Repeats:
    """Lets a message through once, and counts how often it comes again before another does."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._times = 0

    def news(self, message: str) -> list[str]:
        """What to say now that this message has come."""
        if message == self._last:
            self._times += 1
            return []
        return [*self.rest(), *self._begin(message)]

    def _begin(self, message: str) -> list[str]:
        self._last = message
        return [message]

    def rest(self) -> list[str]:
        """How often the last message came again, if it did."""
        times, self._times, self._last = self._times, 0, None
        return [f"… {times:,} times more"] if times else []
