"""Where a document is: its id looked for in files, by bytes first. Only what holds the bytes is parsed.

Lines of JSON are searched where they lie, mapped and not copied; compressed ones as they come out of the decompressor;
of Parquet only the columns that may hold an id are read. A large search is shared out to processes, because it holds
Python's lock. A document is known by its `id`; a file without such a field may have the value in another.
"""

import io
import itertools
import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from gristmill.errors import ReadError
from gristmill.storage.file_system import file_system, is_url
from gristmill.storage.open_read import open_stream
from gristmill.storage.paths import is_compressed

ID = "id"
PIECE_BYTES = 1 << 22  # of a decompressed file
COUNTED_BYTES = 1 << 18
NEWLINE = 10
SHARED_OUT_BYTES = 512 << 20  # starting processes takes as long as searching this
MAX_FOUND = 20  # documents of one id: the first are shown, and anybody with more has another problem
JSON_ENDINGS = (".jsonl", ".json", ".ndjson", ".jsonlines")


class Found(NamedTuple):
    """A document in a file: its line there, counted from 1, or its row, counted from 0, and its first byte if known."""

    path: str
    document: Mapping[str, object]
    line: int | None = None
    row: int | None = None
    start: int | None = None
    is_id: bool = True  # the value is in the field `id`

    @property
    def place(self) -> str:
        """For a person."""
        return f"{self.path}:{self.line}" if self.line is not None else f"{self.path}, row {self.row}"


def find_id(paths: Sequence[str], document_id: str, *, quoted: bool = True) -> list[Found]:
    """Return the documents of that id, in the order of the files; if none, those that have it in another field.

    If not `quoted`, it may be part of a longer text, as in the records of quarantine: more has to be parsed.
    """
    needles = _needles(document_id, quoted=quoted)
    sizes = [_size(path) for path in paths]
    if sum(sizes) < SHARED_OUT_BYTES or len(paths) == 1 or (os.cpu_count() or 1) == 1:
        found = [one for path in paths for one in _find_in(path, document_id, needles)]
    else:
        order = sorted(range(len(paths)), key=lambda n: -sizes[n])  # the largest first: none is left over at the end
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
            searched = processes.map(_find_in, *zip(*((paths[n], document_id, needles) for n in order), strict=True))
            by_path = dict(zip(order, searched, strict=True))
        found = [one for n in range(len(paths)) for one in by_path[n]]
    return [one for one in found if one.is_id] or found


def document_at(path: str, line: int) -> Found | None:
    """Return the document in a line of a file, or in a row of one that has no lines, both counted from 1."""
    if path.endswith(".parquet"):
        table = _parquet_rows(path, line - 1)
        return None if table is None else Found(path, table, row=line - 1)
    for number, (text, start) in enumerate(_lines(path), 1):
        if number == line:
            document = _parsed(text)
            return None if document is None else Found(path, document, number, start=start)
    return None


def number_of(found: Found) -> int:
    """How many documents there are before it in its file: lines without one do not count."""
    if found.row is not None or found.line is None:
        return found.row or 0
    lines = zip(range(found.line - 1), _lines(found.path), strict=False)
    return sum(_parsed(text) is not None for _, (text, _) in lines)


def document_number(path: str, number: int) -> Mapping[str, object] | None:
    """Return a document by the number of documents before it in its file."""
    if path.endswith(".parquet"):
        return _parquet_rows(path, number)
    documents = (document for text, _ in _lines(path) if (document := _parsed(text)) is not None)
    return next(itertools.islice(documents, number, None), None)


def sample_ids(paths: Iterable[str], most: int = 2_000) -> list[str]:
    """Return some ids of the input, to name the nearest to one that is not there."""
    ids: list[str] = []
    for path in paths:
        ids += itertools.islice(ids_of(path), most - len(ids))
        if len(ids) >= most:
            break
    return ids


def ids_of(path: str) -> Iterator[str]:
    """Yield the ids of a file, as texts."""
    if path.endswith(".parquet"):
        import pyarrow.parquet as pq

        with pq.ParquetFile(_opened(path)) as file:
            if ID in file.schema_arrow.names:
                for batch in file.iter_batches(columns=[ID], batch_size=1_000):
                    yield from map(str, batch.column(ID).to_pylist())
        return
    if not _has_json_lines(path):
        return
    for text, _ in _lines(path):
        try:
            found = _named.decode(text).id
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if found is not None:
            yield str(found)


def may_be_there(path: str) -> bool:
    """Whether to look into a file. One on a store is opened, so that whatever is wrong with it is said."""
    return is_url(path) or Path(path).is_file()


def _size(path: str) -> int:
    try:
        return 0 if is_url(path) else Path(path).stat().st_size
    except OSError:
        return 0


def _find_in(path: str, document_id: str, needles: Sequence[bytes]) -> list[Found]:
    if path.endswith(".parquet"):
        return list(_find_in_parquet(path, document_id))
    if not _has_json_lines(path):
        return []
    if is_compressed(path) or is_url(path):
        return list(_find_in_stream(path, document_id, needles))
    return list(_find_in_lines(path, document_id, needles))


def _has_json_lines(path: str) -> bool:
    name = Path(path).name
    return Path(Path(name).stem if is_compressed(path) else name).suffix in JSON_ENDINGS


class _Named(msgspec.Struct):
    """What is looked at in a document that need not be parsed whole."""

    id: str | int | float | bool | None = None


_named = msgspec.json.Decoder(_Named)


def _needles(document_id: str, *, quoted: bool) -> list[bytes]:
    """What the id looks like in JSON: as it is, escaped, or a number."""
    forms = [json.dumps(document_id), json.dumps(document_id, ensure_ascii=False)]
    if (
        not quoted
        or not document_id.isascii()
        or any(c in document_id for c in '"\\/')
        or not document_id.isprintable()
    ):
        # Writers may escape as they like: what is sure to be found is the longest part that none of them escapes.
        plain = max(
            "".join(c if c.isascii() and c.isalnum() else " " for c in document_id).split(), key=len, default=""
        )
        forms = [plain] if plain else ['"']
    elif _is_number(document_id):
        forms = [document_id]
    return [form.encode("utf-8", "surrogatepass") for form in dict.fromkeys(forms)]


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdigit() and len(text) < 25


def _find_in_lines(path: str, document_id: str, needles: Sequence[bytes]) -> Iterator[Found]:
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            searched, number, found = 0, 1, 0
            for start, end in _hits(data, needles):
                document = _matching(data[start:end], document_id)
                if document is not None:
                    number += _newlines(data, searched, start)
                    searched = start
                    yield Found(path, document[0], number, start=start, is_id=document[1])
                    found += 1
                    if found == MAX_FOUND:
                        return


def _hits(data: mmap.mmap, needles: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """The lines that hold one of the needles, in order."""
    for number, needle in enumerate(needles):
        at = data.find(needle)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            if not any(data.find(earlier, start, end) >= 0 for earlier in needles[:number]):
                yield start, end
            at = data.find(needle, end)


def _newlines(data: mmap.mmap, start: int, end: int) -> int:
    """Counted where they lie, some at a time that fit into a cache: twice as fast as `bytes.count` on copies."""
    import numpy as np

    found = 0
    for at in range(start, end, COUNTED_BYTES):
        piece = np.frombuffer(data, np.uint8, min(COUNTED_BYTES, end - at), at)
        found += int(np.count_nonzero(piece == NEWLINE))
        del piece  # or the file could not be unmapped
    return found


def _find_in_stream(path: str, document_id: str, needles: Sequence[bytes]) -> Iterator[Found]:
    found = number = 0
    for piece in _pieces(path):
        if any(needle in piece for needle in needles):
            for offset, text in enumerate(piece.split(b"\n"), number + 1):
                document = _matching(text, document_id) if any(needle in text for needle in needles) else None
                if document is not None:
                    yield Found(path, document[0], offset, is_id=document[1])
                    found += 1
                    if found == MAX_FOUND:
                        return
        number += piece.count(b"\n")


def _pieces(path: str) -> Iterator[bytes]:
    """A file in pieces of whole lines."""
    rest = b""
    with open_stream(path) as stream:
        while piece := stream.read(PIECE_BYTES):
            lines, newline, piece = piece.rpartition(b"\n")
            if newline:
                yield rest + lines + newline
                rest = piece
            else:
                rest += piece
    if rest:
        yield rest


def _lines(path: str) -> Iterator[tuple[bytes, int]]:
    at = 0
    for piece in _pieces(path):
        for text in io.BytesIO(piece):
            yield text, at
            at += len(text)


def _matching(text: bytes, document_id: str) -> tuple[Mapping[str, object], bool] | None:
    document = _parsed(text)
    if document is None:
        return None
    if str(document.get(ID)) == document_id:
        return document, True
    others = (value for value in document.values() if isinstance(value, str | int))
    return (document, False) if any(is_named(value, document_id) for value in others) else None


def is_named(value: object, document_id: str) -> bool:
    """Whether a value is this id. Where ids of a batch are texts and numbers, a column has them as JSON."""
    return str(value) in (document_id, json.dumps(document_id), json.dumps(document_id, ensure_ascii=False))


def _parsed(text: bytes) -> Mapping[str, object] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _find_in_parquet(path: str, document_id: str) -> Iterator[Found]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(_opened(path))
    except (OSError, pa.ArrowInvalid) as error:
        raise ReadError(f"{path}: expected a Parquet file; {error}") from None
    with file:
        names = [field.name for field in file.schema_arrow if field.name == ID]
        names = names or [field.name for field in file.schema_arrow if _may_name(field)]
        row = found = 0
        for batch in file.iter_batches(columns=names) if names else ():
            for name in names:
                is_equal = pc.equal(batch.column(name).cast(pa.string()), document_id)
                for hit in pc.indices_nonzero(pc.fill_null(is_equal, False)).to_pylist():  # noqa: FBT003
                    document = _parquet_rows(path, row + hit)
                    if document is not None:
                        yield Found(path, document, row=row + hit, is_id=name == ID)
                        found += 1
                    if found == MAX_FOUND:
                        return
            row += batch.num_rows


def _opened(path: str) -> "str | BinaryIO":
    """What Arrow opens: a file on disk by its name, one of a store as a file."""
    return file_system(path).open_read(path) if is_url(path) else path


def _may_name(field: object) -> bool:
    import pyarrow as pa

    kind, name = field.type, field.name  # type: ignore[attr-defined]
    is_short = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_short and any(word in name.lower() for word in ("id", "url", "key", "name", "uri"))


def _parquet_rows(path: str, row: int) -> Mapping[str, object] | None:
    import pyarrow.parquet as pq

    with pq.ParquetFile(_opened(path)) as file:
        first = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if first <= row < first + rows:
                for batch in file.iter_batches(row_groups=[group], batch_size=1_000):
                    if row < first + batch.num_rows:
                        return dict(batch.slice(row - first, 1).to_pylist()[0])
                    first += batch.num_rows
            first += rows
    return None
