"""Line numbers in quarantine: a reader counts from the start of its block, an editor from the start of the file.

How many lines lie before a block is known when all blocks before it are done, which is when the run has ended. So a
reader of lines notes how many lines each block had, as facts of its partition (`StageContext.note_fact`), and completes
the records from the facts of all partitions. A file that was read in one piece needs none of this: its records say
`block_start=None`, which means that the number is final.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate

import msgspec

from gristmill.secrets import without_url_secrets
from gristmill.stages.context import Completer, Entry, Quarantined, StageContext

_LinesOfBlock = tuple[str, int, int]  # source, first byte of the block, lines in it
_facts = msgspec.json.Decoder(_LinesOfBlock)


def note_lines(context: StageContext, read: Mapping[tuple[str, int], int]) -> None:
    """Note how many lines were in blocks, each given by its file and its first byte."""
    for (path, start), count in read.items():
        context.note_fact((_as_in_records(path), start, count))


def numbers_from(facts: Iterable[bytes]) -> Completer:
    """Return what turns the line numbers of records, counted from a block's start, into those of the file."""
    counts: dict[str, dict[int, int]] = {}
    for fact in facts:
        source, start, count = _facts.decode(fact)
        counts.setdefault(source, {})[start] = count
    lines_before = {source: _LinesBefore(blocks) for source, blocks in counts.items()}

    def complete(entry: Entry) -> bool:
        source, start, line = entry["source"], entry["block_start"], entry["line"]
        if not isinstance(line, int) or not isinstance(start, int) or source not in lines_before:
            return False
        entry["line"] = line + lines_before[str(source)].of(start)
        entry["block_start"] = None
        return True

    return complete


def with_final_numbers(records: Iterable[Quarantined], read: Mapping[tuple[str, int], int]) -> list[Quarantined]:
    """Return the records of a file whose blocks are all in `read`: nothing is left to be completed."""
    before = _LinesBefore({start: count for (_, start), count in read.items()})
    return [
        record
        if record.line is None or record.block_start is None
        else replace(record, line=record.line + before.of(record.block_start), block_start=None)
        for record in records
    ]


class _LinesBefore:
    """How many lines of a file lie before a byte at which a block begins."""

    def __init__(self, blocks: Mapping[int, int]) -> None:
        self._starts = sorted(blocks)
        self._sums = [0, *accumulate(blocks[start] for start in self._starts)]

    def of(self, start: int) -> int:
        return self._sums[bisect_left(self._starts, start)]


def _as_in_records(path: str) -> str:
    """A path as quarantine files name it: without secrets, and as text even where a name is not UTF-8."""
    return without_url_secrets(path).encode("utf-8", "backslashreplace").decode()
