"""`add_up`: the books of all shards of a run, or which of them are missing.

A shard counts when its run has ended well: anything else is named, so that it can be started again. Nothing is written.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gristmill.config.shard import RECORD
from gristmill.errors import ConfigError
from gristmill.metrics.snapshot import StageCounts
from gristmill.metrics.tally import Distribution, Slots
from gristmill.storage.file_system import disk_path

DIRECTORY = re.compile(r"shard-(\d{5})-of-(\d{5})")
SUMMED = ("read", "created", "written", "quarantined")


@dataclass
class ShardBooks:
    """What the finished shards add up to, and the numbers of the others by what is wrong with them."""

    count: int
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*SUMMED, "dropped"), 0))
    unfinished: dict[int, str] = field(default_factory=dict)
    own: dict[str, StageCounts] = field(default_factory=dict)  # by stage: what its author counts and observes

    @property
    def metrics(self) -> dict[str, dict[str, int]]:
        """What stages have counted with `context.count`: stage -> name -> number."""
        return {stage: dict(sorted(counts.counted.items())) for stage, counts in self.own.items() if counts.counted}

    @property
    def observed(self) -> dict[str, dict[str, dict[str, float]]]:
        """What they have observed with `context.observe`: stage -> name -> figures, of the values of all shards."""
        return {
            stage: {name: Distribution(slots).to_json() for name, slots in sorted(counts.observed.items())}
            for stage, counts in self.own.items()
            if counts.observed
        }

    @property
    def complete(self) -> bool:
        """Whether every shard has ended, and no document is unaccounted for."""
        gain = self.totals["read"] + self.totals["created"]
        loss = self.totals["written"] + self.totals["dropped"] + self.totals["quarantined"]
        return not self.unfinished and gain == loss

    def to_json(self) -> dict[str, object]:
        """The books as one JSON object."""
        return {
            "shards": self.count,
            "complete": self.complete,
            **self.totals,
            "unfinished": self.unfinished,
            "metrics": self.metrics,
            "observed": self.observed,
        }


def add_up(output: str) -> ShardBooks:
    """Read the run directories below an output directory."""
    found = [
        (match, path)
        for path in disk_path(output, who="shards").glob("shard-*")
        if (match := DIRECTORY.fullmatch(path.name))
    ]
    counts = {int(match[2]) for match, _ in found}
    if len(counts) != 1:
        got = "no shard" if not counts else f"shards of {sorted(counts)}"
        raise ConfigError(f"shards: expected the output directory of one sharded run; got {got} in {output!r}")
    books = ShardBooks(counts.pop())
    runs = {int(match[1]): path / ".gristmill" for match, path in found}
    inputs: Counter[str] = Counter()
    for index in range(books.count):
        state = _state(runs.get(index))
        if not state:
            try:
                inputs[str(_read(runs[index] / RECORD)["input"])] += 1
                _add(books, _read(runs[index] / "report.json"))
            except (ValueError, TypeError, LookupError, RecursionError):
                state = "damaged: run it again"
        if state:
            books.unfinished[index] = state
    if len(inputs) > 1:
        raise ConfigError(
            f"shards: expected all shards in {output!r} to have seen the same input; it changed between them. "
            "Start over with an empty output directory"
        )
    return books


def _state(run_dir: Path | None) -> str:
    """Return what is wrong with a shard, or nothing."""
    if run_dir is None or not (run_dir / RECORD).is_file():
        return "not started"
    if (run_dir / "report.json").is_file():
        return ""
    try:
        return str(_read(run_dir / "status.json")["state"])
    except FileNotFoundError:
        return "started, nothing done yet"
    except (ValueError, TypeError, LookupError, RecursionError):
        return "damaged: run it again"


def _read(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_bytes())
    return found


def _add(books: ShardBooks, report: dict[str, object]) -> None:
    """Add a report, all of it or nothing."""
    found = {name: int(str(report[name])) for name in SUMMED}
    dropped = report["dropped"]
    if isinstance(dropped, dict):
        found["dropped"] = sum(sum(reasons.values()) for reasons in dropped.values())
    own = msgspec.convert(report, _OwnMetrics, strict=False)  # JSON has no numbers for keys
    for name, number in found.items():
        books.totals[name] += number
    for stage, counted in own.metrics.items():
        books.own.setdefault(stage, StageCounts()).measure(counted, {})
    for stage, observed in own.tallies.items():
        books.own.setdefault(stage, StageCounts()).measure({}, observed)


class _OwnMetrics(msgspec.Struct):
    """What is in a report of the metrics that authors of stages have added."""

    metrics: dict[str, dict[str, int]] = {}
    tallies: dict[str, dict[str, Slots]] = {}
