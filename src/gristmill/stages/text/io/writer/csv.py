"""`CsvWriter`: comma-separated values, a header and a row for each document.

Values are quoted where they must be: if they have a delimiter, a quote or a line end in them. CSV has no types: what
is not a text is written as in JSON, a missing value as an empty field. `CsvReader` gives back every text as it was.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import pyarrow as pa

from gristmill.errors import ConfigError
from gristmill.stages.text.io.writer.document_writer import Part, _DocumentWriter
from gristmill.storage.atomic_write import Chunk
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_encoding import json_texts

_ROWS_AT_ONCE = 1000
_BYTE_ORDER_MARK = "\ufeff"  # at the beginning of a file it would be taken for one


@dataclass(eq=False)
class CsvWriter(_DocumentWriter):
    """Write each batch as `<path>/<task id>.csv`, with the columns it has: `fields` makes them the same in all files.

    `file_extension="csv.gz"` (or `.zst`, `.bz2`) compresses. `max_file_bytes` cuts larger files. A text is written as
    it is, a number, list or object as JSON, and a missing value as an empty field, like an empty text. `write_kwargs`
    takes `storage_options`, `delimiter` and `quote_char`.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options", "delimiter", "quote_char"})

    file_extension: str = "csv"
    name: str = "csv_writer"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("delimiter", "quote_char"):
            value = self.write_kwargs.get(key, ",")
            if not isinstance(value, str) or len(value) != 1 or value in "\r\n":
                raise ConfigError(f"{self.name}: expected {key} to be one character; got {value!r}")
        if self._delimiter == self._quote:
            raise ConfigError(f"{self.name}: expected delimiter and quote_char to differ; both are {self._quote!r}")

    @property
    def _delimiter(self) -> str:
        return self.write_kwargs.get("delimiter", ",")  # type: ignore[return-value]  # checked above

    @property
    def _quote(self) -> str:
        return self.write_kwargs.get("quote_char", '"')  # type: ignore[return-value]

    def encode(self, batch: DocumentBatch) -> Iterable[Chunk]:
        yield self._header(batch)
        for start in range(0, batch.num_items, _ROWS_AT_ONCE):
            yield b"".join(self._rows(batch.slice(start, _ROWS_AT_ONCE)))

    def parts(self, batch: DocumentBatch, most: int) -> Iterator[Part]:
        header = self._header(batch)
        held, size = [header], len(header)
        for start in range(0, batch.num_items, _ROWS_AT_ONCE):
            for row in self._rows(batch.slice(start, _ROWS_AT_ONCE)):
                if len(held) > 1 and size + len(row) > most:
                    yield len(held) - 1, held
                    held, size = [header], len(header)
                held.append(row)
                size += len(row)
        yield len(held) - 1, held

    def _header(self, batch: DocumentBatch) -> bytes:
        return self._lines([[name] for name in batch.get_columns()])[0]

    def _rows(self, batch: DocumentBatch) -> list[bytes]:
        return self._lines([_cells(batch, name) for name in batch.get_columns()])

    def _lines(self, columns: Sequence[list[str]]) -> list[bytes]:
        quote, delimiter = self._quote, self._delimiter
        special = re.compile(f"[{re.escape(delimiter)}{re.escape(quote)}\r\n]|^{_BYTE_ORDER_MARK}")

        def quoted(value: str) -> str:
            return f"{quote}{value.replace(quote, quote + quote)}{quote}"

        safe = [[quoted(value) if special.search(value) else value for value in column] for column in columns]
        if len(safe) == 1:  # an empty line would not be read as a row
            return [f"{value or quote + quote}\n".encode() for value in safe[0]]
        return [f"{delimiter.join(row)}\n".encode() for row in zip(*safe, strict=True)]


def _cells(batch: DocumentBatch, name: str) -> list[str]:
    column = batch.column(name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return ["" if value is None else value for value in column.to_pylist()]
    return [_cell(text) for text in json_texts(batch, name)]


def _cell(text: bytes) -> str:
    """A value as it is in JSON, except for texts and missing values."""
    if text == b"null":
        return ""
    return str(msgspec.json.decode(text)) if text.startswith(b'"') else text.decode()
