"""`StageCounts`: what a stage did, as numbers that add up over tasks, workers and resumed runs."""

import msgspec


class StageCounts(msgspec.Struct, array_like=True):
    """Documents in and out of one stage, what became of the others, and what it cost.

    `read` counts documents a reader met for the first time, `created` those a splitter made out of others, `written`
    those that left the pipeline at its end. So over a whole run: read + created = written + dropped + quarantined.
    """

    documents_in: int = 0
    documents_out: int = 0
    read: int = 0
    created: int = 0
    written: int = 0
    quarantined: int = 0
    bytes_in: int = 0
    process_s: float = 0.0
    lost_parts: int = 0  # files, or parts of files, that could not be read: nobody knows how many documents they held
    lost_bytes: int = 0
    dropped: dict[str, int] = msgspec.field(default_factory=dict)  # reason -> documents
    returned_none: int = 0  # documents in tasks for which the stage gave back None and no reason: they count as dropped

    def add(self, other: "StageCounts") -> None:
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def subtract(self, other: "StageCounts") -> None:
        """Take back what was added."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) - getattr(other, name))
        for reason, count in other.dropped.items():
            self.dropped[reason] -= count

    def is_empty(self) -> bool:
        """Whether no document was counted."""
        return not (
            self.documents_in or self.documents_out or self.read or self.quarantined or self.written or self.lost_parts
        )

    @property
    def has_passed(self) -> bool:
        """Whether any document came through the stage; one that it dropped has."""
        return bool(self.documents_out or self.written or self.dropped)

    @property
    def has_failures(self) -> bool:
        return bool(self.quarantined or self.lost_parts)

    @property
    def dropped_total(self) -> int:
        return sum(self.dropped.values())

    def to_json(self) -> dict[str, object]:
        """Only what is not zero, so that a ledger line stays short."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in fields.items() if value}


class NamedCounts(StageCounts, array_like=False, omit_defaults=True, forbid_unknown_fields=True):
    """The same with the names of its fields, for files that people read."""

    @classmethod
    def of(cls, counts: StageCounts) -> "NamedCounts":
        return cls(*(getattr(counts, name) for name in cls.__struct_fields__))

    def plain(self) -> StageCounts:
        """The counts, to calculate with."""
        return StageCounts(*(getattr(self, name) for name in self.__struct_fields__))


_NUMBERS = tuple(name for name in StageCounts.__struct_fields__ if name != "dropped")


def balance(counts: list[StageCounts]) -> int:
    """Return read + created - written - dropped - quarantined over all stages: 0 when the books balance."""
    return sum(c.read + c.created - c.written - c.dropped_total - c.quarantined for c in counts)
