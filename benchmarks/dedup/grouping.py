"""The one step of fuzzy deduplication that a single process does, by itself: seconds and memory as documents grow.

    python -m benchmarks.dedup.grouping                    2, 8 and 32 million documents; needs 7 GB of disk

Sketches are made, not computed from texts: 22 bands of random keys, one document in five with a key of the one before.
"""

import argparse
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.record import ROOT, header, record

from gristmill.kernels.arrow_arrays import from_numbers

DATA = ROOT / "benchmarks" / "data" / "dedup_grouping"
BANDS, ROWS = 22, 5
A_FILE = 500_000  # documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", default="2,8,32")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _group()
        return
    began = header()
    record("dedup_grouping", began, {"rows": [_measure(float(count)) for count in options.millions.split(",")]})


def _measure(millions: float) -> dict[str, object]:
    shutil.rmtree(DATA, ignore_errors=True)
    make_sketches(DATA / "sketches", int(millions * 1e6))
    command = [sys.executable, "-m", "benchmarks.dedup.grouping", "--run"]
    taken_s, peak_mb = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    row: dict[str, object] = {
        "million_documents": millions,
        "seconds": round(float(taken_s), 1),
        "seconds_a_million": round(float(taken_s) / millions, 2),
        "peak_mb": int(peak_mb),
        "bytes_a_document": round(int(peak_mb) / millions),
    }
    print(row, flush=True)
    shutil.rmtree(DATA)
    return row


def make_sketches(directory: Path, documents: int) -> None:
    """Write files as `SketchDocuments` would."""
    rng = np.random.default_rng(1)
    directory.mkdir(parents=True)
    for first in range(0, documents, A_FILE):
        count = min(A_FILE, documents - first)
        near = np.flatnonzero(rng.random(count) < 0.2)
        near = near[near > 0]
        columns = {name: rng.integers(1, 2**63, count, np.uint64) for name in ("low", "high", "tie")}
        columns |= {f"band_{band}": rng.integers(0, 2**63, count, np.uint64) * 2 for band in range(BANDS)}
        columns["band_0"][near] = columns["band_0"][near - 1]
        table = pa.table(
            {
                "doc": from_numbers(np.arange(first, first + count, dtype=np.uint64)),
                "worth": from_numbers(rng.random(count)),
                "size": from_numbers(np.full(count, 400, np.int32)),
                **{name: from_numbers(values) for name, values in columns.items()},
            }
        )
        with pa.OSFile(f"{directory}/{first:012d}.arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)


def _group() -> None:
    from gristmill.deduplication.clusters import ClusterSketches
    from gristmill.kernels.dedup.banding import Banding
    from gristmill.tasks import FileGroupTask

    files = sorted(map(str, (DATA / "sketches").iterdir()))
    stage = ClusterSketches(str(DATA / "clusters"), Banding(BANDS, ROWS))
    began = time.perf_counter()
    stage.process(FileGroupTask("sketches", files))
    taken_s = time.perf_counter() - began
    print(taken_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)


if __name__ == "__main__":
    main()
