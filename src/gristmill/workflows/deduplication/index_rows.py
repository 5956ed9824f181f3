"""Candidates of an index as rows for verification, taken from the index's own files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from gristmill.kernels.arrow_arrays import from_lists, from_numbers, to_numbers
from gristmill.kernels.dedup.banding import Banding
from gristmill.stages.deduplication.fuzzy.clusters import Clusters


def write_index_rows(clusters: Clusters, files: Sequence[str], banding: Banding, path: Path) -> str | None:
    """Write the candidates that are in the index; return the file, or None if there are none."""
    own = clusters.positions < clusters.num_indexed
    if not own.any():
        return None
    positions, component, rank = clusters.positions[own], clusters.component[own], clusters.rank[own]
    tables = []
    first = 0
    for file in files:
        rows = pa.ipc.open_file(pa.memory_map(file)).read_all()
        start, end = np.searchsorted(positions, [first, first + rows.num_rows])
        chosen = rows.take(from_numbers(positions[start:end].astype(np.int64) - first)).combine_chunks()
        keys = np.stack(
            [to_numbers(chosen.column(f"band_{band}"), np.uint64) for band in range(banding.num_bands)], axis=1
        )
        bounds = np.arange(end - start + 1, dtype=np.int64) * banding.num_bands
        columns = {
            "doc": from_numbers(clusters.doc[positions[start:end]]),
            "component": from_numbers(component[start:end]),
            "rank": from_numbers(rank[start:end]),
            "keys": from_lists(np.ascontiguousarray(keys).ravel(), bounds),
            "shingles": chosen.column("shingles"),
        }
        tables.append(pa.Table.from_arrays(list(columns.values()), names=list(columns)))
        first += rows.num_rows
    temporary = path.with_name(f".{path.name}.tmp")
    with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    temporary.replace(path)
    return str(path)
