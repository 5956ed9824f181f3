"""`RootBooks`: from receipts of single tasks to source partitions of which everything is done.

A partition is done when every group has done as many tasks as the group before made. Receipts may come in any order:
the first group's one receipt says how many the second must give, and so on, so no partition is done too early.
"""

from dataclasses import dataclass, field

from gristmill.backends.delegated.envelope import Receipt
from gristmill.engine.events import Fact
from gristmill.engine.plan import Plan
from gristmill.metrics.snapshot import StageCounts
from gristmill.runs.ledger import CommitRecord
from gristmill.tasks import StagedFile


@dataclass
class _Root:
    expected: list[int]
    done: list[int]
    counts: list[StageCounts]
    files: list[StagedFile] = field(default_factory=list)
    side_files: list[StagedFile] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    final: list[tuple[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class DoneRoot:
    """A partition to be committed, and the final tasks it led to by item, in order."""

    record: CommitRecord
    final: tuple[tuple[str, object], ...]


class RootBooks:
    """Partitions under way."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._roots: dict[int, _Root] = {}
        self.totals = [StageCounts() for _ in plan.stage_names]  # of everything reported, committed or not
        self.given_up: dict[int, str] = {}  # partitions whose input has changed, and why nothing of them counts

    def add(self, receipt: Receipt) -> DoneRoot | None:
        """Enter a receipt; return its partition if that is now complete."""
        root = self._roots.get(receipt.root)
        if root is None:
            groups = len(self._plan.groups)
            counts = [StageCounts() for _ in self._plan.stage_names]
            root = self._roots[receipt.root] = _Root([1] + [0] * groups, [0] * groups, counts)
        if receipt.given_up:
            self.given_up.setdefault(receipt.root, receipt.given_up)
        root.done[receipt.group] += 1
        root.expected[receipt.group + 1] += receipt.outputs
        first = self._plan.groups[receipt.group].first_stage
        for offset, own in enumerate(receipt.counts):
            root.counts[first + offset].add(own)
            self.totals[first + offset].add(own)
        root.files += receipt.files
        root.side_files += receipt.side_files
        root.facts += receipt.facts
        root.final += receipt.final
        if root.done != root.expected[:-1]:
            return None
        del self._roots[receipt.root]
        if receipt.root in self.given_up:
            return None
        return DoneRoot(self._record(receipt.root, root), tuple(sorted(root.final, key=lambda entry: entry[0])))

    def queued(self, group: int) -> int:
        """Tasks known to be made for a group and not done yet."""
        return sum(root.expected[group] - root.done[group] for root in self._roots.values())

    def _record(self, index: int, root: _Root) -> CommitRecord:
        return CommitRecord(
            index,
            self._plan.source_names[index],
            tuple(sorted(root.files, key=lambda file: file.final)),
            tuple(sorted(root.side_files, key=lambda file: file.final)),
            tuple(zip(self._plan.stage_names, root.counts, strict=True)),
            tuple(sorted(root.facts)),
        )
