"""Rows that stages have left in Arrow files of a run directory, read back column by column, one file at a time."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.kernels.arrow_arrays import Number, from_numbers, to_numbers


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
    """Return rows by rising numbers of a column, in one chunk each."""
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
