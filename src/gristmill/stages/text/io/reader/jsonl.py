"""`JsonlReader`: one JSON object per line.

Lines are found and checked here; fields are parsed when a stage first asks for them (`DocumentBatch.column`). A line
that is not a JSON object goes to quarantine with its file and line number; it never ends a run.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar, Literal, NamedTuple, Self, cast

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import DamagedFile
from gristmill.kernels.text.layout import BLOCK, TOO_MANY
from gristmill.stages.compiled_kernel import CompiledKernel, prepare_kernels
from gristmill.stages.context import Completer, Quarantined
from gristmill.stages.io.files import ReadingStage, Wrong, lost_part, part_options, planned, too_large
from gristmill.stages.io.line_blocks import (
    BOM,
    Block,
    LongLine,
    OwnedLines,
    line_bounds,
    long_lines_apart,
    note_lines,
    numbers_from,
    read_owned_lines,
    stream_blocks,
    with_final_numbers,
)
from gristmill.stages.io.partitioning import DEFAULT_BLOCK_BYTES
from gristmill.stages.io.partitions import COMPRESSION_RATIO
from gristmill.stages.io.splitting import Lines, Splitter
from gristmill.stages.text.io.reader.document_reader import NOT_UTF8, _DocumentReader, wrong_for_json_lines
from gristmill.storage.file_system import StorageOptions
from gristmill.storage.open_read import InputFile, file_size, read_start
from gristmill.storage.paths import is_compressed
from gristmill.tasks import DocumentBatch, FileGroupTask, FileSlice
from gristmill.tasks.json_lines import FieldPlaces, FieldTexts, FoundField, JsonLines, field_decoder, split_object

# Sort the lines of a block into documents, blank lines and lines that are neither.
#
# The fast path is one call over the whole block. It is exact: if every line begins with `{` and ends with `}`, no JSON
# value can span two lines (what follows a `}` inside a value is never `{`), so as many values as lines means one each.


class _AnyObject(msgspec.Struct, gc=False):
    """An object whose fields are checked and skipped."""


_decoder = msgspec.json.Decoder(_AnyObject)
# Checking a line and finding one field in it cost the same, so the field most pipelines want is found on the way.
_LIKELY = "text"
_likely_decoder = cast("msgspec.json.Decoder[FoundField]", field_decoder(_LIKELY))
_MIN_KEPT_BYTES = 256
_REFUSED = (msgspec.DecodeError, RecursionError)
_MAX_KEPT_CHARS = 1_000_000  # of a broken line; it may be a whole file without newlines
Kind = Literal["bad_utf8", "broken_json", "not_an_object"]
KINDS: dict[Kind, str] = {
    "bad_utf8": NOT_UTF8,
    "broken_json": "The line is not JSON.",
    "not_an_object": "The line is JSON but not an object: a number, a text or a list.",
}


class BadLine(msgspec.Struct, frozen=True):
    """A line that is not a document. `number` counts from 1, blank lines included."""

    number: int
    kind: Kind
    error: str
    text: str


def check_lines(block: Block, bounds: NDArray[np.int64]) -> tuple[JsonLines, list[BadLine]]:
    """Return the documents of a block, and what is wrong with the other lines."""
    buffers = [None, pa.py_buffer(bounds), to_buffer(block)]
    values = pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers)
    decodes = holds_utf8(block)
    found = _plain_objects(block, bounds) if decodes else None
    if found is not None:
        # Many short lines are not worth an object each.
        is_worth = len(values) * _MIN_KEPT_BYTES <= len(block)
        return JsonLines(values, ahead=FieldTexts(_LIKELY, [f.value for f in found]) if is_worth else None), []
    keep = np.ones(len(values), bool)
    bad: list[BadLine] = []
    view = memoryview(block)
    starts = bounds.tolist()
    for i in range(len(values)):
        line = view[starts[i] : starts[i + 1]]
        if decodes and _is_object(line):
            continue
        content = bytes(line)
        is_blank = not content.strip(b" \t\r\n")
        problem = None if is_blank else _problem(content)
        keep[i] = problem is None and not is_blank
        if problem is not None:
            text = content[:_MAX_KEPT_CHARS].decode("utf-8", "replace").rstrip("\r\n")
            bad.append(BadLine(i + 1, *problem, text))
    return JsonLines(values if keep.all() else values.filter(pa.array(keep))), bad


def to_buffer(block: Block) -> pa.Buffer:
    """Return a block as Arrow's buffer, sharing its memory."""
    return block if isinstance(block, pa.Buffer) else pa.py_buffer(block)


def holds_utf8(block: Block) -> bool:
    """One check for all lines: a newline is never part of another character."""
    bounds = np.array([0, len(block)], np.int64)
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(bounds), to_buffer(block)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _plain_objects(block: Block, bounds: NDArray[np.int64]) -> list[FoundField] | None:
    """Check all lines at once; return what is found of the field that is likely to be asked for first."""
    data = np.frombuffer(block, np.uint8)
    if (data[bounds[:-1]] != ord("{")).any() or (data[bounds[1:] - 2] != ord("}")).any():
        return None
    try:
        found = _likely_decoder.decode_lines(block)
    except _REFUSED:
        return None
    return found if len(found) == len(bounds) - 1 else None


def _is_object(line: memoryview) -> bool:
    try:
        _decoder.decode(line)
    except _REFUSED:
        return False
    return True


def _problem(line: bytes) -> tuple[Kind, str] | None:
    """Return kind and message, or None if Python's json takes the line for an object."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return "bad_utf8", f"expected UTF-8; got {error.reason} at byte {error.start}"
    try:
        split_object(text)
    except RecursionError:
        return "broken_json", "expected JSON; got values nested too deeply"
    except ValueError as error:
        if text.lstrip(" \t\r\n").startswith("{"):
            return "broken_json", f"expected JSON; got {error}"
        return _not_an_object(text)
    return None


def _not_an_object(text: str) -> tuple[Kind, str]:
    try:
        value = msgspec.json.decode(text)
    except _REFUSED as error:
        return "broken_json", f"expected JSON; got {error}"
    return "not_an_object", f"expected an object; got {type(value).__name__}"


# `scan_lines`: the documents of a block by one pass of a kernel, which also finds the fields that are wanted.
#
# It takes what nearly all files are made of, and leaves every other block to `check_lines`: what that would find bad or
# blank is never taken here.

_SCANNED_BYTES = 1 << 18
_scan_objects = CompiledKernel("text.json_objects", "scan_objects")


def scan_lines(block: Block, find: Sequence[str]) -> JsonLines | None:
    """Return the documents with the places of their fields; None if anything is unlike what most files hold."""
    if len(block) < BLOCK or not holds_utf8(block):
        return None
    wanted = [name for name in dict.fromkeys(find) if not _needs_escapes(name)]
    most = _likely_lines(block)
    count, bounds, places = _scan(block, wanted, most)
    if count == TOO_MANY:
        count, bounds, places = _scan(block, wanted, len(block) // len(b"{}\n"))
    if count < 0:
        return None
    buffers = [None, pa.py_buffer(bounds[: count + 1].copy()), to_buffer(block)]
    values = pa.Array.from_buffers(pa.large_binary(), count, buffers)
    found = [FieldPlaces(name, *places[:, n, :count].copy()) for n, name in enumerate(wanted)]
    return JsonLines(values, places=tuple(found))


def _scan(block: Block, wanted: Sequence[str], most: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return what the kernel returns, the bounds of lines, and int64[2, names, most] where values begin and end."""
    encoded = [name.encode() for name in wanted]
    name_bounds = np.cumsum([0, *map(len, encoded)])
    names = np.frombuffer(b"".join(encoded) or b" ", np.uint8)
    bounds = np.empty(most + 1, np.int64)
    places = np.empty((2, max(1, len(wanted)), most), np.int64)
    data = np.frombuffer(block, np.uint8)
    count = _scan_objects(data, len(data), names, name_bounds, len(wanted), most, bounds, places[0], places[1])
    return count, bounds, places


def _likely_lines(block: Block) -> int:
    """A number of lines that is mostly enough: twice as many as the beginning suggests."""
    sample = bytes(memoryview(block)[:_SCANNED_BYTES])
    return 64 + 2 * sample.count(b"\n") * len(block) // len(sample)


def _needs_escapes(name: str) -> bool:
    return any(character in '"\\' or character < " " for character in name)


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
    kernel. That pays where kernels are loaded anyway.
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

    def for_columns(self, names: list[str] | None) -> Self:
        """Lines are kept as they are, whichever fields are asked for; those are found while lines are checked."""
        again = cast("Self", self.with_())
        again.find, again._partitioning = names or self.find or [], None
        return again

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
        """Read a file from its beginning; damage ends it early, and is put on record."""
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
