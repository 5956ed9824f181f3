"""What the ledger says, as text. One line is one committed source partition: a person can read it, `tail` follow it.

    {"root":0,"name":"a.jsonl",…,"xxh3":"9fd1c2e8a1b04c77"}

Each line ends with a checksum of itself. The last line may be torn by a crash, and any may be lost or damaged with the
machine or by a person; it is then as if it had not been written, and its partition is done again. So is a line that
does not fit the plan: it is of another run. A partition committed twice (its files had vanished and it was done again)
counts once: the later line holds. Reading and writing the file is the executor's.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
import xxhash

from gristmill.engine.events import Fact
from gristmill.engine.plan import Plan
from gristmill.metrics.stage_counts import NamedCounts, StageCounts
from gristmill.tasks import StagedFile

CHECKSUM = ',"xxh3":"'  # ends what is checked
_TAIL_CHARS = len(CHECKSUM) + 16 + len('"}\n')


class CommitRecord(NamedTuple):
    """Everything that came out of one source partition."""

    root: int
    name: str
    files: tuple[StagedFile, ...]  # outputs, in order
    side_files: tuple[StagedFile, ...]  # rejects and quarantine
    counts: tuple[tuple[str, StageCounts], ...]  # by stage name
    facts: tuple[Fact, ...]  # what stages said about the partition, for themselves to use when the run has ended


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A record as the line has it. msgspec takes nothing of another type for it."""

    root: int
    name: str
    files: tuple[StagedFile, ...]
    side_files: tuple[StagedFile, ...]
    counts: dict[str, NamedCounts]
    facts: tuple[tuple[str, msgspec.Raw], ...]
    xxh3: str = ""


class Replayed(NamedTuple):
    """What a ledger says: the committed partitions by number, in order, and how many lines could not be used."""

    records: dict[int, CommitRecord]
    damaged: int


def sealed(text: str) -> str:
    """Return a JSON object, given as text, with a checksum of itself as its last field."""
    body = text.rstrip().removesuffix("}")
    return f'{body}{CHECKSUM}{xxhash.xxh3_64_hexdigest(body.encode())}"}}\n'


def is_sealed(text: str) -> bool:
    """Whether a text is as `sealed` returned it."""
    body = text[:-_TAIL_CHARS]
    try:
        return text == sealed(body + "}")
    except UnicodeEncodeError:  # half of a character: written by nobody
        return False


def encode(record: CommitRecord) -> str:
    """Return the line, with its newline."""
    fields = record._asdict() | {
        "counts": {name: NamedCounts.of(counts) for name, counts in record.counts},
        "facts": [(stage, msgspec.Raw(said)) for stage, said in record.facts],  # JSON already: as readable as the rest
    }
    return sealed(msgspec.json.encode(fields).decode())


def decode(line: str) -> CommitRecord:
    """The inverse of `encode`. ValueError if it is not a whole line."""
    if not is_sealed(line):
        raise ValueError("the checksum of the line differs")
    found = msgspec.json.decode(line, type=_Line)
    counts = tuple((name, counts.plain()) for name, counts in found.counts.items())
    facts = tuple((stage, bytes(said)) for stage, said in found.facts)
    return CommitRecord(found.root, found.name, found.files, found.side_files, counts, facts)


def decode_if_whole(line: str) -> CommitRecord | None:
    """Return the record of a line, or None if it is torn or damaged."""
    try:
        return decode(line) if line.endswith("\n") else None
    except ValueError:
        return None


def replay(lines: Iterable[str], plan: Plan | None = None) -> Replayed:
    """Read the lines of a ledger; with `plan`, those that are not of it count as damaged."""
    records: dict[int, CommitRecord] = {}
    damaged = 0
    is_of_plan = fits(plan)
    for line in lines:
        record = decode_if_whole(line)
        if record is not None and is_of_plan(record):
            records[record.root] = record
        else:
            damaged += line.endswith("\n")  # else torn by a crash, which is nothing to speak of
    return Replayed(dict(sorted(records.items())), damaged)


def fits(plan: Plan | None) -> Callable[[CommitRecord], bool]:
    """Return what tells whether a plan has such a partition and such stages; without a plan, any record will do."""
    if plan is None:
        return lambda record: True
    stages, names = set(plan.stage_names), plan.source_names

    def is_of_plan(record: CommitRecord) -> bool:
        is_there = 0 <= record.root < len(names) and record.name == names[record.root]
        return is_there and all(name in stages for name, _ in record.counts)

    return is_of_plan
