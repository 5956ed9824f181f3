"""Line numbers in quarantine files: a reader counts from the start of its block, an editor from the start of the file.

How many lines lie before a block is known when all blocks before it are done, which is when the run has ended.
"""

import json
from collections.abc import Iterable

from gristmill.engine.ledger import CommitRecord

BlockLines = dict[str, dict[int, int]]  # source -> first byte of a block -> lines in it


def block_lines(records: Iterable[CommitRecord]) -> BlockLines:
    """Return how many lines every block had."""
    starts: BlockLines = {}
    for record in records:
        for path, start, count in record.lines_read:
            starts.setdefault(path, {})[start] = count
    return starts


def with_line_numbers(text: str, starts: BlockLines) -> str | None:
    """Return the text of a quarantine file with the numbers filled in, or None if nothing is left to fill in.

    Where it was done `block_start` is null, so doing it again changes nothing. Text that is damaged stays as it is:
    whoever resumes the run compares the file with its checksum, and makes it again.
    """
    try:
        entries = [json.loads(line) for line in text.split("\n") if line]
        changed = [_fill_in(entry, starts) for entry in entries]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if not any(changed):
        return None
    return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)


def _fill_in(entry: dict[str, object], starts: BlockLines) -> bool:
    blocks, start, line = starts.get(str(entry["source"]), {}), entry["block_start"], entry["line"]
    if not isinstance(line, int) or not isinstance(start, int) or not blocks:
        return False
    entry["line"] = line + sum(count for first, count in blocks.items() if first < start)
    entry["block_start"] = None
    return True
