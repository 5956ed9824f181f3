"""How many documents may fail before a run stops: `max_quarantined`, and what holds if nobody says anything.

A number counts documents, and every part of a file that cannot be read as one more. A share is of the documents read;
it means little before 1,000 of them, so it stops no run before. What cannot be read holds an unknown number of
documents, so it is compared with the input in bytes, however little that is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.metrics.stage_counts import StageCounts

SHARE_NEEDS = 1000  # documents read before a share of them means anything
DEFAULT_SHARE = 0.1


class Failed(NamedTuple):
    """What has failed so far, and of how much."""

    documents: int
    read: int
    parts: int = 0  # files, or parts of files, that could not be read
    part_bytes: int = 0
    input_bytes: int = 0

    @classmethod
    def of(cls, counts: Iterable[StageCounts], input_bytes: int) -> "Failed":
        """Add up what has failed in all stages."""
        counts = list(counts)
        return cls(
            sum(each.quarantined for each in counts),
            sum(each.read for each in counts),
            sum(each.lost_parts for each in counts),
            sum(each.lost_bytes for each in counts),
            input_bytes,
        )

    def with_earlier(self, earlier: "Failed") -> "Failed":
        """Add what had failed in earlier sessions of the same run."""
        return self._replace(
            documents=self.documents + earlier.documents,
            read=self.read + earlier.read,
            parts=self.parts + earlier.parts,
            part_bytes=self.part_bytes + earlier.part_bytes,
        )


@dataclass(frozen=True)
class QuarantineLimit:
    """A number of documents, a share of them, or None for no limit.

    `is_default`: nobody asked for it, so a small input is not judged by it even at the end of a run.
    """

    most: int | float | None = None
    is_default: bool = False

    def is_exceeded(self, failed: Failed, *, at_end: bool = False) -> bool:
        """Whether more has failed than may. While the run goes on, a share waits for enough documents."""
        if self.most is None:
            return False
        if not isinstance(self.most, float):
            return failed.documents + failed.parts > self.most
        if failed.part_bytes > self.most * max(1, failed.input_bytes):  # can only grow: nothing to wait for
            return True
        if failed.read < SHARE_NEEDS and (self.is_default or not at_end):
            return False
        return failed.documents > self.most * failed.read

    def __str__(self) -> str:
        if isinstance(self.most, float):
            return f"{100 * self.most:.6g} %"
        return "any number of documents" if self.most is None else f"{self.most:,} document{'s' * (self.most != 1)}"


NOTHING_FAILED = Failed(0, 0)
NO_LIMIT = QuarantineLimit()
DEFAULT_LIMIT = QuarantineLimit(DEFAULT_SHARE, is_default=True)
