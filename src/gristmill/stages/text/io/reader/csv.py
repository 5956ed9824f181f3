"""`CsvReader`: comma-separated values, every column a string.

CSV has no types, so none are guessed: `00123` stays what it is. An empty field is an empty string. A row with another
number of fields than the header goes to quarantine.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError, ReadError
from gristmill.stages.context import Quarantined
from gristmill.stages.text.io.kwargs import part_options
from gristmill.stages.text.io.reader.file_reader import _FileReader
from gristmill.stages.text.io.reader.line_blocks import BOM
from gristmill.stages.text.io.reader.reading_stage import _ReadingStage, lost_part, planned
from gristmill.stages.text.io.reader.whole_files import damaged, read_tables
from gristmill.stages.text.io.reader.wrong_format import Wrong, wrong_for_csv
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import read_start, read_undamaged
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice

_SAMPLE_BYTES = 1_000_000


@dataclass(eq=False)
class CsvReader(_FileReader):
    """Read CSV files with a header line; each file is one batch.

    `read_kwargs` takes `storage_options`, `delimiter` and `quote_char`. Quoted fields may contain newlines, so files
    are not split.
    """

    known_kwargs: ClassVar[frozenset[str]] = frozenset({"storage_options", "delimiter", "quote_char"})

    file_extensions: list[str] = field(default_factory=lambda: [".csv"])
    name: str = "csv_reader"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("delimiter", "quote_char"):
            value = (self.read_kwargs or {}).get(key, ",")
            if not isinstance(value, str) or len(value) != 1:
                raise ConfigError(f"{self.name}: expected {key} to be one character; got {value!r}")

    def _reading(self) -> _ReadingStage:
        return CsvReaderStage(self.fields, self.read_kwargs, name=self.name)


@dataclass(eq=False)
class CsvReaderStage(_ReadingStage):
    """Read whole CSV files."""

    name: str = field(default="csv_reader", kw_only=True)

    _format: ClassVar[str] = "CSV"

    def _wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_csv(sample, is_whole=is_whole)

    def _columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        return self._header(read_start(path, _SAMPLE_BYTES, storage_options=options), path)

    def process(self, task: FileGroupTask) -> DocumentBatch:
        options = part_options(task.reader_config, self.read_kwargs)
        return read_tables(task, self.fields, lambda part: self._read(part, options), self.context)

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
            return next(csv.reader(io.StringIO(text), **given), [])  # type: ignore[arg-type]
        except csv.Error as error:
            raise ReadError(f"{path}: expected a CSV header; got {error}") from error

    def _read(self, part: FileSlice, options: StorageOptions | None) -> pa.Table:
        import pyarrow.csv

        content, damage = read_undamaged(part.path, planned=planned(part), storage_options=options)
        if damage is not None:
            if not damage.is_complete:
                content = content[: content.rfind(b"\n") + 1]
            self.context.quarantine(lost_part(damage, part.path))
        names = self._header(content, part.path)
        if not names:
            return pa.table({})
        bad: list[tuple[int | None, str, str]] = []
        convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        # One thread: only then does Arrow know the numbers of the rows it refuses.
        read = pyarrow.csv.ReadOptions(use_threads=False)
        try:
            source = pa.BufferReader(content)
            table = pyarrow.csv.read_csv(source, read, self._parse_options(bad), convert)
        except (OSError, pa.ArrowException) as error:
            raise damaged(part, "CSV in UTF-8", error) from error
        for number, problem, text in bad:
            record = Quarantined(error=problem, kind="broken_csv", document=text, source=part.path, line=number)
            self.context.quarantine(record)
        return table
