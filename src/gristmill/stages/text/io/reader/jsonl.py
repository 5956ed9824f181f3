"""`JsonlReader`: one JSON object a line.

Lines are found and checked here; fields are parsed when a stage first asks for them (`DocumentBatch.column`). A line
that is not a JSON object goes to quarantine with its file and line number; it never ends a run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar, NamedTuple

import pyarrow as pa

from gristmill.errors import DamagedFile
from gristmill.stages.compiled_kernel import prepare_kernels
from gristmill.stages.context import Completer, Quarantined
from gristmill.stages.io.line_blocks import (
    BOM,
    Block,
    LongLine,
    OwnedLines,
    line_bounds,
    long_lines_apart,
    read_owned_lines,
    stream_blocks,
)
from gristmill.stages.io.line_numbers import note_lines, numbers_from, with_final_numbers
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES
from gristmill.stages.io.partitions import COMPRESSION_RATIO
from gristmill.stages.io.reading import ReadingStage, Wrong, lost_part, part_options, planned, too_large
from gristmill.stages.io.splitting import Lines, Splitter
from gristmill.stages.text.io.reader.document_reader import _DocumentReader
from gristmill.stages.text.io.reader.json_checks import check_lines
from gristmill.stages.text.io.reader.line_scan import scan_lines
from gristmill.stages.text.io.reader.wrong_format import wrong_for_json_lines
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, file_size, read_start
from gristmill.storage.paths import is_compressed
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice
from gristmill.tasks.json_lines import JsonLines

_SAMPLE_BYTES = 1_000_000
_SAMPLE_LINES = 1_000
MAX_BLOCKS = 2  # in one batch; beyond that a file is streamed
_NO_LINES = pa.nulls(0, pa.large_binary())  # pa.array would import pandas, for 0.2 s


@dataclass(eq=False)
class JsonlReader(_DocumentReader):
    """Read JSONL files, plain or compressed (.gz, .zst, .bz2), as batches of documents.

    `fields` are the columns the batches have, null where a document lacks them; by default all fields are there.
    Files of more than 32 MiB, or of more than `blocksize`, are read in parts. `read_kwargs` takes `storage_options`.
    `find` are fields that compiled stages behind it will ask for as texts: they are found while lines are checked, by a
    kernel. It pays where kernels are loaded anyway.
    """

    split: ClassVar[Splitter] = Lines()

    file_extensions: list[str] = field(default_factory=lambda: [".jsonl", ".json"])
    name: str = "jsonl_reader"
    find: list[str] | None = field(default=None, kw_only=True)

    @classmethod
    def options_for(cls, names: list[str] | None) -> dict[str, object]:
        """Lines are kept as they are, whichever fields are asked for; those are found while lines are checked."""
        return {"find": names or []}

    def reading_stage(self) -> ReadingStage[DocumentBatch]:
        given = self.fields, self.read_kwargs
        return JsonlReaderStage(*given, block_bytes=self.block_bytes, find=self.find, name=self.name)


@dataclass(eq=False)
class JsonlReaderStage(ReadingStage[DocumentBatch]):
    """Read the lines of files, or of parts of files."""

    block_bytes: int = field(default=DEFAULT_BLOCK_BYTES, kw_only=True)
    find: list[str] | None = field(default=None, kw_only=True)
    name: str = field(default="jsonl_reader", kw_only=True)

    format_name: ClassVar[str] = "one JSON object a line"

    def wrong_format(self, sample: bytes, *, is_whole: bool) -> Wrong:
        return wrong_for_json_lines(sample, is_whole=is_whole)

    def before_fork(self) -> None:
        if self.find is not None:
            prepare_kernels("text")

    def columns_of(self, path: str, options: StorageOptions | None) -> list[str]:
        """The fields of the first documents."""
        block = read_start(path, _SAMPLE_BYTES, storage_options=options)
        if len(block) < _SAMPLE_BYTES and not block.endswith(b"\n"):
            block += b"\n"  # all of the file; a longer one is cut after its last whole line
        block = block.removeprefix(BOM)
        bounds = line_bounds(block)[: _SAMPLE_LINES + 1]
        lines, _ = check_lines(block[: bounds[-1]], bounds)
        return list(lines.all_names())

    def streams(self, task: FileGroupTask) -> bool:
        """Whether one of the files is more than a block and can only be read from its beginning."""
        return any(self._is_stream(part, part_options(task.reader_config, self.read_kwargs)) for part in task.parts())

    def _is_stream(self, part: FileSlice, options: StorageOptions | None) -> bool:
        if part.part is not None:
            return False
        size = part.file_size or file_size(part.path, storage_options=options)
        return (size * COMPRESSION_RATIO if is_compressed(part.path) else size) > self.block_bytes

    def process(self, task: FileGroupTask) -> DocumentBatch | Iterator[DocumentBatch]:
        """Read one batch, or a stream of batches where there is more than that to read."""
        parts = self._read(task)
        if self.streams(task):
            return self._batches(task, parts)
        read: list[_Part] = []
        size = 0
        for part in parts:
            read.append(part)
            size += part.lines.values.nbytes
            # What a compressed file holds is not known before it is read: a megabyte may become a gigabyte.
            if len(read) > 1 and size > MAX_BLOCKS * self.block_bytes:
                return self._batches(task, chain(_emptied(read), parts))
        return self._batch(task, read)

    def _batches(self, task: FileGroupTask, parts: Iterator["_Part"]) -> Iterator[DocumentBatch]:
        for part in parts:
            batch = self._batch(task, [part])
            if batch.num_items:
                yield batch

    def _batch(self, task: FileGroupTask, parts: list["_Part"]) -> DocumentBatch:
        """Make a batch, and report what else was found: it belongs to the call the batch is made in."""
        for part in parts:
            note_lines(self.context, part.lines_read)
            for record in part.quarantined:
                self.context.quarantine(record)
        joined = [part.lines.values for part in parts]
        lines = parts[0].lines if len(parts) == 1 else JsonLines(pa.concat_arrays([_NO_LINES, *joined]))
        batch = DocumentBatch.from_lines(task.dataset_name, lines, fields=self.fields)
        batch._metadata["source_files"] = list(task.data)
        return batch

    def completer(self, facts: Iterable[bytes]) -> Completer:
        """Give lines in quarantine the numbers they have in their files."""
        return numbers_from(facts)

    def _read(self, task: FileGroupTask) -> Iterator["_Part"]:
        options = part_options(task.reader_config, self.read_kwargs)
        for part in task.parts():
            with InputFile(part.path, planned=planned(part), storage_options=options) as file:
                if is_compressed(part.path) or self._is_stream(part, options):
                    yield from self._stream(file)
                    continue
                start, end = part.part or (0, file.size)
                owned = read_owned_lines(file, start, end, self.most_bytes())
            read = self._owned(part.path, start, owned)
            yield from read if part.part is not None else [_whole(list(read))]

    def _owned(self, path: str, start: int, owned: OwnedLines) -> Iterator["_Part"]:
        """The documents of a range. Its lines are counted under its start, wherever its first line begins."""
        if len(owned.block) or owned.long_line is None:
            yield from self._apart(path, start, owned.position - start, owned.block)
        if owned.long_line is not None:
            yield self._too_long(path, owned.long_line)

    def _stream(self, file: InputFile) -> Iterator["_Part"]:
        """Read a file from its beginning; what is damaged ends it early, and that is on record."""
        position = 0
        try:
            for block in stream_blocks(file.pieces(), self.block_bytes, self.most_bytes()):
                if isinstance(block, LongLine):
                    yield self._too_long(file.path, block)
                    position += block.num_bytes
                else:
                    yield from self._apart(file.path, position, 0, block)
                    position += len(block)
        except DamagedFile as error:
            yield _Part(JsonLines(_NO_LINES), {}, [lost_part(error, file.path)])

    def _apart(self, path: str, start: int, ahead: int, block: Block) -> Iterator["_Part"]:
        """The documents of a block that begins `ahead` bytes behind `start`."""
        most = self.most_bytes()
        if len(block) <= most:
            yield self._documents(path, start, block)
            return
        parts = []
        for offset, found in long_lines_apart(block, most):
            place = start + ahead + offset
            if isinstance(found, LongLine):
                parts.append(self._too_long(path, found._replace(position=place)))
            else:
                parts.append(self._documents(path, place if offset else start, found))
        yield _joined(parts)  # every second line may be too long: each part would be a batch of one document

    def _too_long(self, path: str, line: LongLine) -> "_Part":
        place = f"line at byte {line.position:,}"
        record = replace(
            too_large(path, place, line.num_bytes, self.most_bytes()),
            document=line.beginning.decode("utf-8", "replace"),
            line=1,
            block_start=line.position,
        )
        return _Part(JsonLines(_NO_LINES), {(path, line.position): 1}, [record])

    def _documents(self, path: str, start: int, block: Block) -> "_Part":
        if start == 0 and bytes(block[: len(BOM)]) == BOM:
            block = block[len(BOM) :]
        found = None if self.find is None else scan_lines(block, self.find)
        if found is not None:
            return _Part(found, {(path, start): len(found)}, [])
        bounds = line_bounds(block)
        lines, bad = check_lines(block, bounds)
        records = [
            Quarantined(
                error=line.error, kind=line.kind, document=line.text, source=path, line=line.number, block_start=start
            )
            for line in bad
        ]
        return _Part(lines, {(path, start): len(bounds) - 1}, records)


class _Part(NamedTuple):
    """The documents of one block, and what there is to report about it."""

    lines: JsonLines
    lines_read: dict[tuple[str, int], int]
    quarantined: list[Quarantined]


def _joined(parts: list[_Part]) -> _Part:
    """The parts of one block as one."""
    return _Part(
        JsonLines(pa.concat_arrays([_NO_LINES, *(part.lines.values for part in parts)])),
        {place: count for part in parts for place, count in part.lines_read.items()},
        [record for part in parts for record in part.quarantined],
    )


def _whole(parts: list[_Part]) -> _Part:
    """The parts of a file that was read in one piece: the numbers of its lines are those of the file."""
    part = parts[0] if len(parts) == 1 else _joined(parts)
    return part._replace(lines_read={}, quarantined=with_final_numbers(part.quarantined, part.lines_read))


def _emptied(parts: list[_Part]) -> Iterator[_Part]:
    """The parts in order, each forgotten when it is taken."""
    parts.reverse()
    while parts:
        yield parts.pop()
