"""`DocumentReader`: what readers of documents add to those of other things."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.errors import ConfigError
from gristmill.stages.io.files import FileReader, Wrong
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import loads

NOT_UTF8 = "A line, a row or a text is not UTF-8."  # what readers say of the kind `bad_utf8`

# `wrong_format`: what a file holds if it is not what its reader expects, told from its beginning before a run starts.
#
# Only what is certain counts. A file with a damaged first line is not in the wrong format, so most of the lines have a
# say; where nothing known is recognised, nothing is said, and the run will put the lines on record.

_SAMPLE_LINES = 200
_CSV_ROWS = 20
_MOST_CHARS = 100  # of a column's name
_MAGIC = {
    b"PAR1": ("Parquet", "ParquetReader reads it"),
    b"ARROW1": ("an Arrow file", "ArrowReader reads it"),
    b"\x1f\x8b": ("gzip", "a name that ends in .gz says so"),
    b"BZh": ("bzip2", "a name that ends in .bz2 says so"),
    b"\x28\xb5\x2f\xfd": ("zstd", "a name that ends in .zst says so"),
    b"PK\x03\x04": ("a zip archive", "unpack it first"),
    b"\xff\xfe": ("text in UTF-16", "convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "convert it to UTF-8 first: iconv -f UTF-16 -t UTF-8"),
    b"SQLite format 3": ("an SQLite database", "export its rows first"),
}
_DELIMITERS = {",": "", "\t": ', read_kwargs={"delimiter": "\\t"}', ";": ', read_kwargs={"delimiter": ";"}'}


def wrong_for_json_lines(sample: bytes, *, is_whole: bool) -> Wrong:
    """Return what a file is instead of JSON lines, by its first bytes; `is_whole` if they are all there are."""
    if (known := _by_magic(sample)) is not None:
        return known
    lines = _lines(sample, is_whole=is_whole)
    if 2 * sum(map(_is_object, lines)) > len(lines):
        return None
    begin = sample.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = lines[0] if lines else begin
    if begin.startswith(b"[") and (len(lines) <= 1 or not _is_json(first)):
        remedy = "one object a line is expected; jq -c '.[]' in.json > out.jsonl makes that of it"
        return "a JSON array", remedy
    if begin.startswith(b"{"):
        return _pretty_printed(begin, first, is_whole=is_whole)
    return _comma_separated(lines)


def wrong_for_csv(sample: bytes, *, is_whole: bool) -> Wrong:
    """Return what a file is instead of CSV."""
    return _by_magic(sample) or _json_lines(sample, is_whole=is_whole)


def wrong_for_text(sample: bytes, *, is_whole: bool) -> Wrong:
    """Return what a file is that is certainly not plain text."""
    return _by_magic(sample)


def wrong_for_parquet(sample: bytes, *, is_whole: bool) -> Wrong:
    """Return what a file is instead of Parquet."""
    return None if sample.startswith(b"PAR1") else wrong_for_csv(sample, is_whole=is_whole)


def wrong_for_arrow(sample: bytes, *, is_whole: bool) -> Wrong:
    """Return what a file is instead of an Arrow file or stream."""
    return None if sample.startswith((b"ARROW1", b"\xff\xff\xff\xff")) else wrong_for_csv(sample, is_whole=is_whole)


def _by_magic(sample: bytes) -> Wrong:
    return next((wrong for magic, wrong in _MAGIC.items() if sample.startswith(magic)), None)


def _json_lines(sample: bytes, *, is_whole: bool) -> Wrong:
    lines = _lines(sample, is_whole=is_whole)
    return ("JSON lines", "JsonlReader reads them") if lines and all(map(_is_object, lines)) else None


def _lines(sample: bytes, *, is_whole: bool) -> list[bytes]:
    """The first lines that are not blank, without the last one if it may be cut."""
    lines = sample.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not is_whole:
        lines.pop()
    return [line.strip() for line in lines if line.strip()][:_SAMPLE_LINES]


def _is_object(line: bytes) -> bool:
    return _is_json(line, dict)


def _is_json(line: bytes, kind: type = object) -> bool:
    """Whether the reader would take a line, which it does with NaN and half a pair of surrogates too."""
    try:
        return isinstance(loads(line), kind)
    except (ValueError, RecursionError):
        return False


def _pretty_printed(begin: bytes, first: bytes, *, is_whole: bool) -> Wrong:
    """An object over several lines: it parses as one, or its first lines can be nothing else."""
    wrong = "one JSON object over several lines", "one object a line is expected; jq -c . in.json > out.jsonl makes it"
    if _is_json(first):
        return None
    try:
        json.JSONDecoder().raw_decode(begin.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        following = begin[len(first) :].lstrip()
        return wrong if first == b"{" and following.startswith(b'"') and not is_whole else None
    return wrong


def _comma_separated(lines: Sequence[bytes]) -> Wrong:
    import csv  # most files are what they are taken for

    text = [line.decode("utf-8", "replace") for line in lines[:_CSV_ROWS]]
    for delimiter, option in _DELIMITERS.items():
        try:
            rows = list(csv.reader(text, delimiter=delimiter))
        except csv.Error:
            continue
        widths = {len(row) for row in rows}
        if len(rows) > 1 and len(widths) == 1 and len(rows[0]) > 1 and all(len(name) < _MOST_CHARS for name in rows[0]):
            columns = ", ".join(rows[0][:5])
            return f"CSV with the columns {columns}", f"CsvReader(...{option}) reads it"
    return None


@dataclass(eq=False)
class _DocumentReader(FileReader[DocumentBatch]):
    """Read files as documents. Two options of NeMo Curator are refused, with advice on what to do instead."""

    _generate_ids: bool = False
    _assign_ids: bool = False

    def __post_init__(self) -> None:
        if self._generate_ids or self._assign_ids:
            raise ConfigError(
                f"{self.name}: expected _generate_ids and _assign_ids to be False; got {self._generate_ids!r} and "
                f"{self._assign_ids!r}. The stage AddId gives ids, and deduplication numbers documents itself"
            )
        super().__post_init__()
