"""What the code of stages logs in a worker: with the stage and the worker it came from, repeated lines counted.

A program that has set up logging itself keeps what it has. Where lines are JSON, what stages print becomes lines of the
log too, since a reader of JSON could make nothing of plain prints; where they are text, prints are left as they are.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from gristmill.metrics.log_lines import VARIABLE, Repeats, is_json, log_line
from gristmill.secrets import without_secrets


class WorkerLog(logging.Handler):
    """Writes what is logged in this process. `stage` says which stage is at work."""

    def __init__(self, worker: str, stage: Callable[[], str], to: TextIO) -> None:
        super().__init__()
        self._worker = worker
        self._stage = stage
        self._to = to
        self._repeats = Repeats()
        self._level = "warning"
        self._of = ""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = self.format(record)
        except (TypeError, ValueError):  # the arguments do not fit the message: said as it is
            message = f"{record.msg} {record.args}"
        self.say(message, record.levelname.lower())

    def say(self, message: str, level: str) -> None:
        """Write one message, unless it is the same as the last."""
        with threading.Lock() if self.lock is None else self.lock:
            said = self._repeats.news(message)
            if said:
                *earlier, new = said
                self._write(earlier, self._of, self._level)
                self._of, self._level = self._stage(), level
                self._write([new], self._of, level)

    def flush(self) -> None:
        """Say how often the last message was repeated."""
        self._write(self._repeats.rest(), self._of, self._level)

    def give_back(self) -> None:
        """Leave logging and prints as they were, for the next user of this process."""
        self.flush()
        logging.getLogger().removeHandler(self)
        for name in ("stdout", "stderr"):
            there = getattr(sys, name)
            if isinstance(there, Printed) and there.log is self:
                setattr(sys, name, there.instead_of)

    def _write(self, messages: list[str], stage: str, level: str) -> None:
        for message in messages:
            line = log_line(without_secrets(message), level=level, stage=stage, worker=self._worker)
            self._to.write(f"{line}\n")
        if messages:
            self._to.flush()


class Printed:
    """Stands where prints go, and makes each line of them a line of the log."""

    def __init__(self, log: WorkerLog, level: str, instead_of: TextIO) -> None:
        self.log = log
        self._level = level
        self.instead_of = instead_of
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.strip():
                self.log.say(line, self._level)
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.instead_of, name)


def take_over(worker: str, stage: Callable[[], str], log_format: str = "") -> WorkerLog:
    """Have what is logged from now on say where it is from; return what to flush, or to give back, at the end.

    `log_format` is the driver's, for a process that another program has started, with an environment of its own.
    """
    if log_format:
        os.environ[VARIABLE] = log_format
    log = WorkerLog(worker, stage, sys.stderr)
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(log)
    if is_json():
        sys.stdout, sys.stderr = Printed(log, "info", sys.stdout), Printed(log, "warning", sys.stderr)
    return log
