"""What the steps of a deduplication leave for each other on disk: arrays, and rows in Arrow files."""

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import Number, from_numbers, to_numbers
from gristmill.storage.atomic_write import checksum_of, force_file, force_names, whole_file

# Arrays between two pipelines of a workflow. They appear whole or not at all, and survive if the machine stops.
#
# The files of a pipeline are checked by its ledger when it is continued. These are in no ledger: they are forced to
# disk, and each has its checksum in a file beside it. A file that differs from its checksum is made again, with the
# same numbers: one wrong bit in it would remove the wrong documents, without anyone noticing.

CHECKSUM = ".checksum"  # behind the name of an array


def write_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write one array, to be read by `np.load`."""
    with whole_file(path, forced=True) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def write_sealed_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write one array that may be used when found again, as long as `is_sealed_array` holds."""
    write_array(path, array)
    with whole_file(_seal_of(path), forced=True) as temporary:
        temporary.write_text(checksum_of(str(path)))


def is_sealed_array(path: Path) -> bool:
    """Whether an array is there as it was written."""
    with contextlib.suppress(OSError):
        return _seal_of(path).read_bytes() == checksum_of(str(path)).encode()
    return False


def write_arrays(directory: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays as `<name>.npy` below a directory that is not there yet."""
    temporary = directory.with_name(f".{directory.name}.tmp")
    temporary.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        file = temporary / f"{name}.npy"
        np.save(file, array)
        _seal_of(file).write_text(checksum_of(str(file)))
        force_file(str(file))
        force_file(str(_seal_of(file)))
    force_names(str(temporary))  # a directory that exists has all its arrays
    temporary.rename(directory)
    force_names(str(directory.parent))


def has_arrays(directory: Path, names: Iterable[str]) -> bool:
    """Whether `write_arrays` has written these here, and all are unchanged. If not, whatever is there is removed."""
    if all(is_sealed_array(directory / f"{name}.npy") for name in names):
        return True
    shutil.rmtree(directory, ignore_errors=True)
    return False


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{CHECKSUM}")


def read_rows(files: Iterable[str], columns: Sequence[str]) -> pa.Table:
    """Return some columns of all files, end to end. Other columns are not read."""
    tables = []
    for path in files:
        with pa.OSFile(path) as source:
            names = pa.ipc.open_file(source).schema.names
            wanted = [names.index(column) for column in columns if column in names]
            options = pa.ipc.IpcReadOptions(included_fields=wanted)
            tables.append(pa.ipc.open_file(source, options=options).read_all())
    return pa.concat_tables(tables) if tables else pa.Table.from_arrays([], names=[])


def in_order_of(rows: pa.Table, column: str) -> pa.Table:
    """Return rows sorted by a column of numbers, each column in one chunk."""
    numbers = to_numbers(rows.column(column), np.uint64)
    if (numbers[1:] < numbers[:-1]).any():
        rows = rows.take(from_numbers(np.argsort(numbers)))
    return rows.combine_chunks()


def count_rows(files: Iterable[str]) -> int:
    """Return how many rows there are in all files."""
    return sum(pa.ipc.open_file(pa.memory_map(path)).count_rows() for path in files)


def column_parts(files: Iterable[str], column: str, kind: type[Number]) -> Iterator[tuple[int, NDArray[Number]]]:
    """Yield a column of numbers file by file, each with the position of its first row among all."""
    first = 0
    for path in files:
        part = to_numbers(read_rows([path], [column]).column(column), kind)
        yield first, part
        first += len(part)


def read_column(files: Sequence[str], column: str, kind: type[Number]) -> NDArray[Number]:
    """Return one column of numbers; an empty array of this type if there are no rows."""
    joined = np.empty(count_rows(files), kind)
    for first, part in column_parts(files, column, kind):
        joined[first : first + len(part)] = part
    return joined


def take_numbers(
    files: Iterable[str], column: str, kind: type[Number], positions: NDArray[np.signedinteger]
) -> NDArray[Number]:
    """Return the numbers of a column at rising positions counted over all files."""
    taken = np.empty(len(positions), kind)
    for first, part in column_parts(files, column, kind):
        start, end = np.searchsorted(positions, [first, first + len(part)])
        taken[start:end] = part[positions[start:end] - first]
    return taken


def take_texts(files: Iterable[str], column: str, positions: NDArray[np.int64]) -> list[str]:
    """Return the texts of a column at positions counted over all files, in any order."""
    order = np.argsort(positions, kind="stable")
    wanted = positions[order]
    texts = [""] * len(positions)
    first = 0
    for path in files:
        rows = read_rows([path], [column])
        start, end = np.searchsorted(wanted, [first, first + rows.num_rows])
        chosen = rows.column(column).take(from_numbers(wanted[start:end] - first)).to_pylist()
        for place, text in zip(order[start:end].tolist(), chosen, strict=True):
            texts[place] = "" if text is None else text
        first += rows.num_rows
    return texts
