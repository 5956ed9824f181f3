"""Which input files may hold a document of some id: filters of ten bits per document, so explain need not read all.

Made on request (`gristmill run --index-ids`) when a run has ended, by a pass over its input: `ids/` of the run
directory has a file for each input file. A filter says "no" or "maybe": of files without the id about one in a hundred
says maybe. It covers the field `id` alone, and says nothing about a file that has changed since.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from gristmill.pipeline.find_document import SHARED_OUT_BYTES, ids_of
from gristmill.runs.ledger import parse
from gristmill.storage.atomic_write import write_file

FOLDER = "ids"
BITS = 10  # per document; with seven bits set for each, 0.8 % of the answers are a wrong "maybe"
HASHES = 7
SOME = 100_000  # ids hashed at a time

Bits = NDArray[np.uint8]


class _Head(msgspec.Struct, frozen=True):
    """Which file a filter is for, and its length."""

    path: str
    size: int
    changed_ns: int
    documents: int
    num_bits: int


def index_ids(run_dir: str | Path) -> int:
    """Make the filters of all input files of a run that are on this machine's disks; return how many documents."""
    home = Path(run_dir)
    header = next((p for p in (home / "header.json", home / "segment-1" / "header.json") if p.is_file()), None)
    found = None if header is None else parse(home, header.read_text())
    inputs: list[list[object]] = (found or {}).get("inputs") or []  # type: ignore[assignment]
    paths = [str(entry[0]) for entry in inputs if Path(str(entry[0])).is_file()]
    targets = [str(home / FOLDER / f"{number:06d}.ids") for number in range(len(paths))]
    (home / FOLDER).mkdir(exist_ok=True, mode=0o700)
    for left in set(map(str, (home / FOLDER).iterdir())) - set(targets):
        Path(left).unlink()
    total = sum(Path(path).stat().st_size for path in paths)
    if total < SHARED_OUT_BYTES or (os.cpu_count() or 1) == 1 or len(paths) == 1:
        return sum(map(_write_filter, paths, targets))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        return sum(processes.map(_write_filter, paths, targets))


def may_hold(run_dir: Path, document_id: str) -> dict[str, bool]:
    """Return what the filters of a run say, by the path of the file; those that say nothing are left out."""
    said: dict[str, bool] = {}
    for file in sorted((run_dir / FOLDER).glob("*.ids")):
        head, bits = _read_filter(file)
        if head is not None and head == _head_of(head.path, head.documents, head.num_bits):
            said[head.path] = bool(head.documents) and _has(bits, head.num_bits, document_id)
    return said


def _write_filter(path: str, target: str) -> int:
    before = Path(path).stat()
    hashes = [_hashes(some) for some in _some(ids_of(path))]
    documents = sum(map(len, hashes))
    num_bits = max(64, BITS * documents)
    bits = np.zeros((num_bits + 7) // 8, np.uint8)
    for pair in hashes:
        for position in _positions(pair, num_bits):
            np.bitwise_or.at(bits, position >> 3, np.left_shift(1, position & 7).astype(np.uint8))
    head = _Head(path, before.st_size, before.st_mtime_ns, documents, num_bits)
    write_file(target, [msgspec.json.encode(head) + b"\n", bits.tobytes()], forced=False)
    return documents


def _some(ids: Iterator[str]) -> Iterator[list[str]]:
    some: list[str] = []
    for each in ids:
        some.append(each)
        if len(some) == SOME:
            yield some
            some = []
    if some:
        yield some


def _hashes(ids: Sequence[str]) -> NDArray[np.uint64]:
    """Two numbers for each id."""
    digests = b"".join(xxhash.xxh3_128_digest(each.encode("utf-8", "surrogatepass")) for each in ids)
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def _positions(hashes: NDArray[np.uint64], num_bits: int) -> Iterator[NDArray[np.int64]]:
    # Two hashes make as many as are wanted: h1 + i h2 (Kirsch and Mitzenmacher, 2006). Odd, so that h2 is never 0.
    step = hashes[:, 1] | np.uint64(1)
    for number in range(HASHES):
        yield ((hashes[:, 0] + np.uint64(number) * step) % np.uint64(num_bits)).astype(np.int64)


def _has(bits: Bits, num_bits: int, document_id: str) -> bool:
    places = np.concatenate(list(_positions(_hashes([document_id]), num_bits)))
    return bool((bits[places >> 3] >> (places & 7) & 1).all())


def _read_filter(file: Path) -> tuple[_Head | None, Bits]:
    content = file.read_bytes()
    line, _, rest = content.partition(b"\n")
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, np.zeros(0, np.uint8)
    bits = np.frombuffer(rest, np.uint8)
    return (head, bits) if len(bits) == (head.num_bits + 7) // 8 else (None, bits)


def _head_of(path: str, documents: int, num_bits: int) -> _Head | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return _Head(path, found.st_size, found.st_mtime_ns, documents, num_bits)
