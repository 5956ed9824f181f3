"""Rows that stages have left in Arrow files of a run directory, read back column by column."""

from collections.abc import Iterable, Sequence

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


def read_column(files: Iterable[str], column: str, kind: type[Number]) -> NDArray[Number]:
    """Return one column of numbers; an empty array of this type if there are no rows."""
    table = read_rows(files, [column])
    return to_numbers(table.column(column), kind) if table.num_rows else np.empty(0, kind)


def take_texts(files: Iterable[str], column: str, positions: NDArray[np.int64]) -> list[str]:
    """Return the texts of a column at positions counted over all files, reading one file at a time."""
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
