"""`TextReader`: plain text, one document per file or per line. Text that is not UTF-8 goes to quarantine."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from gristmill.errors import ConfigError, nearest
from gristmill.stages.context import Quarantined
from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.text.io.kwargs import part_options
from gristmill.stages.text.io.reader.file_reader import _FileReader
from gristmill.stages.text.io.reader.line_blocks import BOM, read_owned_lines
from gristmill.stages.text.io.reader.reading_stage import _ReadingStage
from gristmill.stages.text.io.reader.whole_files import project
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import read_all
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice

DocumentPer = Literal["file", "line"]


@dataclass(eq=False)
class TextReader(_FileReader):
    """Read text files as documents with the columns `text` and `file_name`.

    With `document_per="line"` every line that is not blank is a document, without its line end, and large files are
    split. `read_kwargs` takes `storage_options`.
    """

    file_extensions: list[str] = field(default_factory=lambda: [".txt", ".text", ".md"])
    name: str = "text_reader"
    document_per: DocumentPer = field(default="file", kw_only=True)

    def __post_init__(self) -> None:
        known = ("file", "line")
        if self.document_per not in known:
            close = nearest(str(self.document_per), known)
            raise ConfigError(
                f"{self.name}: expected document_per to be one of {known}; got {self.document_per!r}{close}"
            )
        super().__post_init__()

    def _partitioning(self) -> FilePartitioningStage:
        return replace(super()._partitioning(), split="lines" if self.document_per == "line" else "none")

    def _reading(self) -> _ReadingStage:
        return TextReaderStage(self.fields, self.read_kwargs, document_per=self.document_per, name=self.name)


@dataclass(eq=False)
class TextReaderStage(_ReadingStage):
    """Read text files, or parts of them."""

    document_per: DocumentPer = field(default="file", kw_only=True)
    name: str = field(default="text_reader", kw_only=True)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], self.columns()

    def columns(self) -> list[str]:
        return ["text", "file_name"] if self.fields is None else list(self.fields)

    def process(self, task: FileGroupTask) -> DocumentBatch:
        options = part_options(task.reader_config, self.read_kwargs)
        texts, names = [], []
        for part in task.parts():
            for text in self._documents(part, options):
                texts.append(text)
                names.append(part.path)
        table = pa.table({"text": pa.array(texts, pa.string()), "file_name": pa.array(names, pa.string())})
        return DocumentBatch(task.dataset_name, project(table, self.fields))

    def _documents(self, part: FileSlice, options: StorageOptions | None) -> Iterator[str]:
        if part.start is not None and part.end is not None:
            content = bytes(memoryview(read_owned_lines(part.path, part.start, part.end, storage_options=options)))
        else:
            content = read_all(part.path, storage_options=options)
        start = part.start or 0
        content = content if start else content.removeprefix(BOM)
        if self.document_per == "file":
            yield from self._decoded(content, part.path, None, start)
            return
        lines = content.split(b"\n")
        for number, line in enumerate(lines, start=1):
            if line.strip(b" \t\r"):
                yield from self._decoded(line.removesuffix(b"\r"), part.path, number, start)
        self.context.lines_read[part.path, start] = len(lines) - (not lines[-1])

    def _decoded(self, content: bytes, path: str, line: int | None, start: int) -> Iterator[str]:
        try:
            yield content.decode()
        except UnicodeDecodeError as error:
            message = f"expected UTF-8; got {error.reason} at byte {error.start}"
            shown = content[:1_000_000].decode("utf-8", "replace")
            record = Quarantined(
                error=message, kind="bad_utf8", document=shown, source=path, line=line, block_start=start
            )
            self.context.quarantine(record)
