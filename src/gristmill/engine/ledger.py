"""What the ledger says, as text. One line is one committed source partition: a person can read it, `tail` follow it.

The last line may be torn by a crash, and any may be lost with the machine; it is then as if it had not been written. A
partition committed twice (its files had vanished and it was done again) counts once: the later line holds. Reading and
writing the file is the executor's.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from typing import NamedTuple

from gristmill.metrics.stage_counts import StageCounts
from gristmill.tasks import StagedFile


class CommitRecord(NamedTuple):
    """Everything that came out of one source partition."""

    root: int
    name: str
    files: tuple[StagedFile, ...]  # outputs, in order
    side_files: tuple[StagedFile, ...]  # rejects and quarantine
    counts: tuple[tuple[str, StageCounts], ...]  # by stage name
    lines_read: tuple[
        tuple[str, int, int], ...
    ]  # (file, first byte, lines): turns a block's line number into the file's


def encode(record: CommitRecord) -> str:
    """Return the line, with its newline."""
    fields = {
        "root": record.root,
        "name": record.name,
        "files": [asdict(file) for file in record.files],
        "side_files": [asdict(file) for file in record.side_files],
        "counts": {name: counts.to_json() for name, counts in record.counts},
        "lines_read": record.lines_read,
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


def decode(line: str) -> CommitRecord:
    """The inverse of `encode`."""
    fields = json.loads(line)
    return CommitRecord(
        root=fields["root"],
        name=fields["name"],
        files=tuple(StagedFile(**file) for file in fields["files"]),
        side_files=tuple(StagedFile(**file) for file in fields["side_files"]),
        counts=tuple((name, StageCounts.from_json(counts)) for name, counts in fields["counts"].items()),
        lines_read=tuple((path, start, count) for path, start, count in fields["lines_read"]),
    )


def replay(lines: Iterable[str]) -> dict[int, CommitRecord]:
    """Return the committed partitions by number, in the order of their numbers."""
    records: dict[int, CommitRecord] = {}
    for line in lines:
        if line.endswith("\n"):
            with suppress(ValueError):  # no JSON: a page that never reached the disk
                record = decode(line)
                records[record.root] = record
    return dict(sorted(records.items()))
