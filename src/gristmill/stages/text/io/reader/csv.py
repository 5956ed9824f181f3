"""`CsvReader`: comma-separated values, every column a string.

CSV has no types, so none are guessed: `00123` stays what it is. An empty field is an empty string. A row with another
number of fields than the header goes to quarantine.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, DamagedFile, ReadError
from gristmill.stages.context import Quarantined
from gristmill.stages.io.line_blocks import BOM
from gristmill.stages.io.reading import ReadingStage, Wrong, lost_part, planned
from gristmill.stages.io.table_reading import TableReadingStage, damaged, in_blocks
from gristmill.stages.text.io.reader.document_reader import _DocumentReader
from gristmill.stages.text.io.reader.wrong_format import wrong_for_csv
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, read_start
from gristmill.tasks import DocumentBatch, FileSlice

_SAMPLE_BYTES = 1_000_000
_LEAST_BLOCK_BYTES = 1 << 20


@dataclass(eq=False)
class CsvReader(_DocumentReader):
    """Read CSV files with a header line; each file is one batch, unless it has more than four blocks (128 MiB).

    `read_kwargs` takes `storage_options`, `delimiter` and `quote_char`. Quoted fields may contain newlines, so files
    are read from their beginning, a block at a time. A row must fit into a block.
    """

    limits_documents: ClassVar[bool] = False
    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options", "delimiter", "quote_char"})

    file_extensions: list[str] = field(default_factory=lambda: [".csv"])
    name: str = "csv_reader"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("delimiter", "quote_char"):
            value = (self.read_kwargs or {}).get(key, ",")
            if not isinstance(value, str) or len(value) != 1:
                raise ConfigError(f"{self.name}: expected {key} to be one character; got {value!r}")

    def _reading(self) -> ReadingStage[DocumentBatch]:
        return CsvReaderStage(self.fields, self.read_kwargs, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class CsvReaderStage(TableReadingStage):
    """Read CSV files."""

    name: str = field(default="csv_reader", kw_only=True)

    _format: ClassVar[str] = "CSV"

    def _wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_csv(sample, is_whole=is_whole)

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        return self._header(read_start(path, _SAMPLE_BYTES, storage_options=options), path)

    def _parse_options(self, bad: list[tuple[int | None, str, str]]) -> "pa.csv.ParseOptions":
        import pyarrow.csv

        def skip(row: "pa.csv.InvalidRow") -> str:
            error = f"expected {row.expected_columns} fields; got {row.actual_columns}"
            bad.append((row.number, error, row.text))
            return "skip"

        known = {key: value for key, value in (self.read_kwargs or {}).items() if key in ("delimiter", "quote_char")}
        return pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip, **known)

    def _header(self, content: bytes, path: str) -> list[str]:
        """The column names: all must be told to Arrow to be read as strings."""
        import csv
        import io

        known = {"delimiter": "delimiter", "quote_char": "quotechar"}
        given = {known[key]: str(value) for key, value in (self.read_kwargs or {}).items() if key in known}
        text = content[:_SAMPLE_BYTES].removeprefix(BOM).decode("utf-8", "replace")
        try:
            rows = csv.reader(io.StringIO(text), **given)  # type: ignore[arg-type]
            return next(filter(None, rows), [])  # Arrow passes over blank lines too
        except csv.Error as error:
            raise ReadError(f"{path}: expected a CSV header; got {error}") from error

    def _tables_of(self, part: FileSlice, options: StorageOptions | None) -> Iterator[pa.Table]:
        """The rows a block of the content at a time; a small file is one block, so it is one table."""
        with InputFile(part.path, planned=planned(part), storage_options=options) as file:
            lines = _WholeLines(file.pieces(), self._quote(), self._arrow_block_bytes)
            names: list[str] = []
            while not names and (start := lines.read(_SAMPLE_BYTES)):  # more than once only through blank lines
                names = self._header(start, part.path)
            if names:
                yield from in_blocks(self._parsed(part, lines.from_start(start), names), self._most_at_once)
        if lines.damage is not None:
            self.context.quarantine(lost_part(lines.damage, part.path))

    def _parsed(self, part: FileSlice, source: "_WholeLines", names: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.csv

        bad: list[tuple[int | None, str, str]] = []
        # UTF-8 is checked here: Arrow would refuse all rows of a block for one.
        strings = dict.fromkeys(names, pa.string())
        convert = pyarrow.csv.ConvertOptions(column_types=strings, strings_can_be_null=False, check_utf8=False)
        # One thread: only then does Arrow know the numbers of the rows it refuses. A row must fit into a block.
        read = pyarrow.csv.ReadOptions(use_threads=False, block_size=self._arrow_block_bytes)
        held: pa.RecordBatch | None = None  # one batch behind: which is the last is known at the end
        refused = ""  # the last row that was
        try:
            reader = pyarrow.csv.open_csv(pa.PythonFile(source, "r"), read, self._parse_options(bad), convert)
            held = pa.RecordBatch.from_pylist([], schema=reader.schema)  # the columns of a file without rows
            for batch in reader:
                refused = bad[-1][2] if bad else refused
                self._report(bad, part.path)
                yield self._in_utf8(held, part.path)
                held = batch
        except pa.ArrowException as error:
            if held is not None:
                yield self._in_utf8(held, part.path)
            raise damaged(part, "CSV in UTF-8", error) from error
        finally:
            source.stop()
            refused = bad[-1][2] if bad else refused
            self._report(bad, part.path)
        # The damage is in a quoted field: the row would be a document of which the end is missing.
        if source.ends_in_quotes and refused.encode().count(self._quote()) % 2 == 0:
            held = held.slice(0, max(0, held.num_rows - 1))
        yield self._in_utf8(held, part.path)

    @property
    def _arrow_block_bytes(self) -> int:
        return max(self.block_bytes, _LEAST_BLOCK_BYTES)

    def _quote(self) -> bytes:
        return str((self.read_kwargs or {}).get("quote_char", '"')).encode()

    def _in_utf8(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """The rows of a batch that are UTF-8; the others go to quarantine."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            columns = [column.cast(pa.binary()).to_pylist() for column in batch.columns]
            is_good = [self._is_utf8(row, path) for row in zip(*columns, strict=True)]
            return batch.filter(pa.array(is_good, pa.bool_()))
        return batch

    def _is_utf8(self, row: tuple[bytes, ...], path: str) -> bool:
        try:
            for value in row:
                value.decode()
        except UnicodeDecodeError as error:
            message = f"expected UTF-8; got {error.reason} in {error.object[error.start : error.start + 4]!r}"
            shown = ",".join(value.decode("utf-8", "replace") for value in row)
            self.context.quarantine(Quarantined(error=message, kind="bad_utf8", document=shown, source=path))
            return False
        return True

    def _report(self, bad: list[tuple[int | None, str, str]], path: str) -> None:
        for number, problem, text in bad:
            record = Quarantined(error=problem, kind="broken_csv", document=text, source=path, line=number)
            self.context.quarantine(record)
        bad.clear()


class _WholeLines:
    """The content of a file to be read once, up to the last whole line before the damage if there is any."""

    closed = False

    def __init__(self, pieces: Iterator[bytes], quote: bytes, most_held: int) -> None:
        self._lines = self._whole(pieces)
        self._quote, self._most_held = quote, most_held
        self._left = b""
        self._num_quotes = 0
        self._is_stopped = False
        self._reading = threading.Lock()
        self.damage: DamagedFile | None = None

    @property
    def ends_in_quotes(self) -> bool:
        """Whether the damage seems to be in a quoted field, which may have held more lines."""
        return self.damage is not None and not self.damage.is_complete and self._num_quotes % 2 == 1

    def _whole(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        rest: list[bytes] = []
        held = 0
        try:
            for piece in pieces:
                # A line of more than a block is Arrow's to refuse: nothing is gained by holding all of it.
                cut = len(piece) if held > self._most_held else piece.rfind(b"\n") + 1
                if cut:
                    yield b"".join([*rest, piece[:cut]])
                    rest, held = [], 0
                rest.append(piece[cut:])
                held += len(piece) - cut
        except DamagedFile as error:
            self.damage = error
            if not error.is_complete:
                return
        yield b"".join(rest)

    def from_start(self, start: bytes) -> "_WholeLines":
        """Give back what was read ahead."""
        self._left = start + self._left
        return self

    def read(self, size: int) -> bytes:
        with self._reading:
            if self._is_stopped:
                return b""
            found = [self._left]
            length = len(self._left)
            while length < size and (more := next(self._lines, None)) is not None:
                self._num_quotes += more.count(self._quote)
                found.append(more)
                length += len(more)
            content = b"".join(found)
            self._left = content[size:]
            return content[:size]

    def stop(self) -> None:
        """Give nothing from now on: Arrow's thread reads ahead even when nobody wants the rows any more."""
        with self._reading:
            self._is_stopped = True

    def close(self) -> None:
        """The file belongs to whoever opened it."""
