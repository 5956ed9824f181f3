"""`worth_of`: what each document is worth to a `KeepPolicy`."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import is_null
from gristmill.stages.deduplication.keep_policy import KeepPolicy
from gristmill.tasks import DocumentBatch

_WORST = -np.inf


def worth_of(batch: DocumentBatch, lengths: NDArray[np.int64], keep: KeepPolicy) -> NDArray[np.float64]:
    """Return float64[N], greater for documents to keep. All the same for `first`: order decides."""
    if keep.kind == "first" or keep.column is None:
        return np.zeros(len(lengths)) if keep.kind == "first" else lengths.astype(np.float64)
    column = batch.column(keep.column)
    if keep.kind == "source":
        places = {name: -float(place) for place, name in enumerate(keep.order)}
        return np.array([places.get(str(value), -float(len(places))) for value in column.to_pylist()], np.float64)
    worth = _as_doubles(column, newest=keep.kind == "newest", who=f"keep {keep.kind}:{keep.column}")
    worth[is_null(column) | np.isnan(worth)] = _WORST
    return worth


def _as_doubles(column: pa.ChunkedArray, *, newest: bool, who: str) -> NDArray[np.float64]:
    if pa.types.is_null(column.type):
        return np.full(len(column), _WORST)
    try:
        if newest and pa.types.is_string(column.type):
            column = column.cast(pa.timestamp("us"))
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.timestamp("us")).cast(pa.int64())
        doubles = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{who}: expected numbers{' or dates' * newest}; got {error}") from error
    return np.array(doubles, np.float64)
