"""`TextReader`: plain text, one document per file or per line. Text that is not UTF-8 goes to quarantine."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar, Literal

import pyarrow as pa

from gristmill.errors import ConfigError, DamagedFile, nearest
from gristmill.stages.context import Completer, Quarantined
from gristmill.stages.io.files import ReadingStage, Wrong, lost_part, part_options, planned, too_large
from gristmill.stages.io.line_blocks import (
    BOM,
    Block,
    LongLine,
    note_lines,
    numbers_from,
    read_owned_lines,
    stream_blocks,
)
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES, FilePartitioningStage
from gristmill.stages.io.splitting import Lines, WholeFiles
from gristmill.stages.io.table_reading import project
from gristmill.stages.text.io.reader.document_reader import NOT_UTF8, _DocumentReader, wrong_for_text
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice

BAD_UTF8 = "bad_utf8"
KINDS = {BAD_UTF8: NOT_UTF8}
_STREAM_BYTES = 1 << 22
_MAX_BLOCKS = 2  # in one batch
_MAX_KEPT_BYTES = 1_000_000  # of a document that is put on record
DocumentPer = Literal["file", "line"]


@dataclass(eq=False)
class TextReader(_DocumentReader):
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
        return replace(super()._partitioning(), split=Lines() if self.document_per == "line" else WholeFiles())

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        given = self.fields, self.read_kwargs
        return TextReaderStage(*given, document_per=self.document_per, block_bytes=self.block_bytes, name=self.name)


@dataclass(eq=False)
class TextReaderStage(ReadingStage[DocumentBatch]):
    """Read text files, or parts of them."""

    document_per: DocumentPer = field(default="file", kw_only=True)
    block_bytes: int = field(default=DEFAULT_BLOCK_BYTES, kw_only=True)
    name: str = field(default="text_reader", kw_only=True)

    format_name: ClassVar[str] = "plain text"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_text(sample, is_whole=is_whole)

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], self._columns()

    def columns(self) -> list[str]:
        self._check_format()
        return self._columns()

    def _columns(self) -> list[str]:
        return ["text", "file_name"] if self.fields is None else list(self.fields)

    def process(self, task: FileGroupTask) -> DocumentBatch | Iterator[DocumentBatch]:
        """Read one batch, or a stream of batches if there is more: an archive may hold a thousand times its size."""
        batches = self._batches(task)
        first = next(batches)
        second = next(batches, None)
        return first if second is None else chain([first, second], batches)

    def _batches(self, task: FileGroupTask) -> Iterator[DocumentBatch]:
        options = part_options(task.reader_config, self.read_kwargs)
        texts: list[str] = []
        names: list[str] = []
        size = 0
        for part in task.parts():
            for text in self._documents(part, options):
                if size > _MAX_BLOCKS * self.block_bytes:
                    yield self._batch(task, texts, names)
                    texts, names, size = [], [], 0
                texts.append(text)
                names.append(part.path)
                size += len(text)
        yield self._batch(task, texts, names)

    def _batch(self, task: FileGroupTask, texts: list[str], names: list[str]) -> DocumentBatch:
        table = pa.table({"text": pa.array(texts, pa.string()), "file_name": pa.array(names, pa.string())})
        return DocumentBatch(task.dataset_name, project(table, self.fields))

    def _documents(self, part: FileSlice, options: StorageOptions | None) -> Iterator[str]:
        with InputFile(part.path, planned=planned(part), storage_options=options) as file:
            if self.document_per == "file":
                yield from self._whole(file)
            elif part.part is None:
                yield from self._streamed(file)
            else:
                start, end = part.part
                owned = read_owned_lines(file, start, end, self.most_bytes())
                yield from self._lines(part.path, start, owned.position - start, owned.block)
                if owned.long_line is not None:
                    self._too_long(part.path, owned.long_line)

    def completer(self, facts: Iterable[bytes]) -> Completer:
        """Give lines in quarantine the numbers they have in their files."""
        return numbers_from(facts)

    def _whole(self, file: InputFile) -> Iterator[str]:
        """A file as one document; nothing of it where it is damaged, or where it would not fit into memory."""
        most = self.most_bytes()
        found: list[bytes] = []
        size = 0
        try:
            for piece in file.pieces():
                size += len(piece)
                if size <= most:
                    found.append(piece)
                else:
                    found.clear()
        except DamagedFile as error:
            record = lost_part(error, file.path)
            if not error.is_complete:
                shown = b"".join(found)[:_MAX_KEPT_BYTES].decode("utf-8", "replace")
                self.context.quarantine(replace(record, document=shown, num_documents=1))
                return
            self.context.quarantine(record)
        if size > most:
            self.context.quarantine(too_large(file.path, "the whole file", size, most))
            return
        yield from self._decoded(b"".join(found).removeprefix(BOM), file.path, None, 0)

    def _streamed(self, file: InputFile) -> Iterator[str]:
        position = 0
        try:
            for block in stream_blocks(file.pieces(), _STREAM_BYTES, self.most_bytes()):
                if isinstance(block, LongLine):
                    self._too_long(file.path, block)
                    position += block.num_bytes
                else:
                    yield from self._lines(file.path, position, 0, block)
                    position += len(block)
        except DamagedFile as error:
            self.context.quarantine(lost_part(error, file.path))

    def _lines(self, path: str, start: int, ahead: int, block: Block) -> Iterator[str]:
        """The lines of a block that begins `ahead` bytes behind `start`."""
        most = self.most_bytes()
        content = bytes(memoryview(block))
        content = content if start + ahead else content.removeprefix(BOM)
        lines = content.split(b"\n")
        place = start + ahead
        for number, line in enumerate(lines, start=1):
            if len(line) > most:
                self._too_long(path, LongLine(place, len(line), line[:1000]), number, start)
            elif line.strip(b" \t\r"):
                yield from self._decoded(line.removesuffix(b"\r"), path, number, start)
            place += len(line) + 1
        if content or not start:
            note_lines(self.context, {(path, start): len(lines) - (not lines[-1])})

    def _too_long(self, path: str, line: LongLine, number: int = 1, block_start: int | None = None) -> None:
        record = too_large(path, f"line at byte {line.position:,}", line.num_bytes, self.most_bytes())
        shown = line.beginning.decode("utf-8", "replace")
        if block_start is None:
            note_lines(self.context, {(path, line.position): 1})
        start = line.position if block_start is None else block_start
        self.context.quarantine(replace(record, document=shown, line=number, block_start=start))

    def _decoded(self, content: bytes, path: str, line: int | None, start: int) -> Iterator[str]:
        try:
            yield content.decode()
        except UnicodeDecodeError as error:
            message = f"expected UTF-8; got {error.reason} at byte {error.start}"
            shown = content[:_MAX_KEPT_BYTES].decode("utf-8", "replace")
            record = Quarantined(
                error=message, kind=BAD_UTF8, document=shown, source=path, line=line, block_start=start
            )
            self.context.quarantine(record)
