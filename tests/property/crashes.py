"""Runs that are cut off after any event and started again from their ledger, and what they leave behind.

All a new driver knows of an earlier one is the ledger. So cutting a run off after event k and starting again is the
same as starting with the lines that were on the disk after event k, the last of them perhaps torn.
"""

import random
import zlib
from collections.abc import Iterable
from dataclasses import replace

from tests.property.scripts import Fanning

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.runs import ledger
from gristmill.stages.resources import Resources
from gristmill.tasks import StagedFile
from gristmill.testing.virtual_run import Deed, VirtualRun, group

SHAPES = (Resources(), Resources(cpus=0.5), Resources(gpus=0.5))


class Stumbling(Fanning):
    """Work some of which fails the first time: it raises, is refused for a while, or takes its worker with it."""

    def __call__(self, index: int, assignment: c.Assignment) -> Deed:
        deed = super().__call__(index, assignment)
        dice = zlib.crc32(f"{self.seed}!{index}!{assignment.item_id}".encode()) % 16
        failures = {0: "raises", 1: "transient", 2: "dies"}
        return replace(deed, failure=failures[dice]) if dice in failures and not assignment.attempt else deed


class RecordedRun(VirtualRun):
    """A run that writes a ledger; `lines_after` has its length after every event."""

    def __init__(self, seed: int, *, lines: Iterable[str] = ()) -> None:
        chance = random.Random(seed)
        shapes = [(chance.choice((1, 1, 2, 3)), chance.choice(SHAPES)) for _ in range(chance.randint(1, 3))]
        groups = tuple(group(i, batch_size=size, resources=shape) for i, (size, shape) in enumerate(shapes))
        sources = [chance.randint(0, 40) for _ in range(chance.randint(1, 5))]
        self.lines = [line for line in lines if line.endswith("\n")]  # a torn line is cut off before more is written
        self.lines_after: list[int] = []
        super().__init__(groups, sources, Stumbling(seed), done=ledger.replay(self.lines).records)
        self.join(gpu_memory_gb=(8.0,), memory_bytes=chance.choice((100, 10**9)))

    def feed(self, *events: e.Event) -> list[c.Command]:
        commands = super().feed(*events)
        for command in commands:
            if isinstance(command, c.Commit):
                self.lines.append(ledger.encode(_record(command)))
        self.lines_after.append(len(self.lines))
        return commands


def _record(commit: c.Commit) -> ledger.CommitRecord:
    files = tuple(StagedFile(f"tmp/{o.item_id}", o.item_id, o.num_bytes, 1, "") for o in commit.outputs)
    counts = tuple((f"stage_{i}", counts) for i, counts in enumerate(commit.counts))
    return ledger.CommitRecord(commit.root, commit.name, files, (), counts, ())


def whole_run(seed: int) -> RecordedRun:
    """A run nobody disturbs."""
    return _to_the_end(RecordedRun(seed))


def run_after_crash(seed: int, lines: Iterable[str]) -> RecordedRun:
    """A run that goes on from such a ledger."""
    return _to_the_end(RecordedRun(seed, lines=lines))


def _to_the_end(run: RecordedRun) -> RecordedRun:
    run.run()
    run.check_books()
    return run


def ledgers_after_every_event(run: RecordedRun) -> list[list[str]]:
    """The different ledgers a crash after any event can leave, those with a torn last line too."""
    whole = [run.lines[:length] for length in sorted(set(run.lines_after))]
    torn = [[*lines[:-1], lines[-1][:-1]] for lines in whole if lines]
    return [*whole, *torn]


def check_crashes(seed: int) -> int:
    """Raise AssertionError unless every crash of a run leads to the same outputs and books; return how many there are.

    A second crash, in the middle of the run that follows, must not change that.
    """
    run = whole_run(seed)
    expected = ledger.replay(run.lines).records
    for lines in ledgers_after_every_event(run):
        resumed = run_after_crash(seed, lines)
        assert ledger.replay(resumed.lines).records == expected, f"seed {seed}: crash after {len(lines)} lines"
        middle = resumed.lines[: resumed.lines_after[len(resumed.lines_after) // 2]]
        if len(middle) not in (len(lines), len(resumed.lines)):
            again = run_after_crash(seed, middle)
            assert ledger.replay(again.lines).records == expected, (
                f"seed {seed}: crashes after {len(lines)}, {len(middle)}"
            )
    return len(run.lines_after)
