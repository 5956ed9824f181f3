"""The formats documents come in: for each name a reader, and a writer where there is one.

Whatever takes a format by its name (deduplication, decontamination, their commands) takes those listed here, so adding
one is: its files in `reader/` and `writer/`, the exports beside them, and a line here. docs/guide/own-format.md
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.errors import ConfigError, nearest
from gristmill.stages.io.files import FileReader, FileWriter
from gristmill.stages.text.io.reader import ArrowReader, CsvReader, JsonlReader, ParquetReader, TextReader
from gristmill.stages.text.io.writer import ArrowWriter, CsvWriter, JsonlWriter, ParquetWriter, TextWriter
from gristmill.tasks import DocumentBatch


@dataclass(frozen=True)
class Format:
    """A format by the name users give it."""

    name: str
    reader: type[FileReader[DocumentBatch]]
    writer: type[FileWriter[DocumentBatch]] | None = None


FORMATS = {
    each.name: each
    for each in (
        Format("jsonl", JsonlReader, JsonlWriter),
        Format("parquet", ParquetReader, ParquetWriter),
        Format("arrow", ArrowReader, ArrowWriter),
        Format("csv", CsvReader, CsvWriter),
        Format("text", TextReader, TextWriter),
    )
}
READERS = {name: each.reader for name, each in FORMATS.items()}
WRITERS = {name: each.writer for name, each in FORMATS.items() if each.writer is not None}


def check_format(name: str, known: Iterable[str], *, who: str, option: str) -> None:
    """Refuse a format that is not among those known."""
    known = list(known)
    if name not in known:
        raise ConfigError(f"{who}: expected {option} to be one of {known}; got {name!r}{nearest(name, known)}")
