"""How long `gristmill inspect` takes to open a large file, and how much memory to page, search and measure it.

    make benchmarks/out/venvs/frames/.installed
    python -m benchmarks.inspection [--gigabytes 10] [--directory DIR] [--peers PYTHON]

Makes a Parquet file and a file of JSON lines of that size each, of texts that are all different, looks at both in
processes of their own, and removes them. Peers are measured on one thing they can do too, the first page of rows:
duckdb and polars, run by the Python of the environment that the first line makes, or by another that has them.
Files just written are in the page cache as far as they fit: what is measured is the program, not the disk.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.record import header, record

PEERS = Path(__file__).parent / "out" / "venvs" / "frames" / "bin" / "python"
FIRST_PAGE = "open and first page"
PAGE = 20
TEXT_BYTES = 2_500
ROWS_AT_ONCE = 20_000
NEEDLE = "the needle at the end"
LETTERS = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz      ", np.uint8)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gigabytes", type=float, default=10.0)
    options.add_argument("--directory", default=None, help="where to make the files; a temporary directory otherwise")
    options.add_argument("--peers", type=Path, default=PEERS, help="a Python with duckdb and polars")
    options.add_argument("--form", choices=["parquet", "jsonl"], help="only this one")
    options.add_argument("--only-make", action="store_true", help="make the files and leave them")
    chosen, _ = options.parse_known_args()
    began = header()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(chosen.directory or scratch)
        files = [directory / "large.parquet", directory / "large.jsonl"]
        files = [file for file in files if chosen.form in {None, file.suffix[1:]}]
        for file in files:
            make = make_parquet if file.suffix == ".parquet" else make_lines
            if not file.exists():
                make(file, int(chosen.gigabytes * 1e9))
        if not chosen.only_make:
            record("inspection", began, {file.suffix[1:]: measured(file, chosen.peers) for file in files})


def measure(gigabytes: float = 1.0, peers: Path = PEERS) -> dict[str, object]:
    """The same with less, for `benchmarks.observation` to print."""
    if not peers.exists():
        raise FileNotFoundError(f"{peers} is not there: make benchmarks/out/venvs/frames/.installed")
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch, "large.parquet"), Path(scratch, "large.jsonl")]
        make_parquet(files[0], int(gigabytes * 1e9))
        make_lines(files[1], int(gigabytes * 1e9))
        return {file.suffix[1:]: measured(file, peers) for file in files}


def tables(num_bytes: int):
    """Yield tables of rows until their texts have so many bytes; the last row holds the needle."""
    chance, made, number = np.random.default_rng(15), 0, 0
    while made < num_bytes:
        lengths = chance.integers(200, 2 * TEXT_BYTES - 200, ROWS_AT_ONCE)
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        letters = LETTERS[chance.integers(0, 32, ends[-1], np.uint8)]
        made += len(letters)
        if made >= num_bytes:
            needle = np.frombuffer(NEEDLE.encode(), np.uint8)
            letters[-len(needle) :] = needle
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(letters)]
        yield pa.table({
            "id": [f"doc-{number + i}" for i in range(ROWS_AT_ONCE)],
            "score": chance.random(ROWS_AT_ONCE),
            "text": pa.LargeStringArray.from_buffers(ROWS_AT_ONCE, buffers[1], buffers[2]),
        })  # fmt: skip
        number += ROWS_AT_ONCE


def make_parquet(path: Path, num_bytes: int) -> None:
    """Row groups of about 125 MB, as Spark makes them; not compressed, so that the file has the size of its texts."""
    writer = None
    for table in tables(num_bytes):
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table, row_group_size=50_000)
    if writer is not None:
        writer.close()


def make_lines(path: Path, num_bytes: int) -> None:
    with path.open("wb") as out:
        for table in tables(num_bytes):
            rows = zip(*(table.column(name).to_pylist() for name in table.schema.names), strict=True)
            out.writelines(
                b'{"id": "%s", "score": %.17g, "text": "%s"}\n' % (i.encode(), s, t.encode()) for i, s, t in rows
            )


def measured(file: Path, peers: Path) -> dict[str, object]:
    """Each step in its own words; every program in a process of its own, whose greatest memory is its peak."""
    names = {"gristmill": OURS, "gristmill, first page": OUR_FIRST_PAGE, "duckdb": DUCKDB, "polars": POLARS}
    found: dict[str, object] = {"gigabytes": round(file.stat().st_size / 1e9, 2)}
    for name, script in names.items():
        python = sys.executable if name.startswith("gristmill") else str(peers)
        began = time.perf_counter()
        done = subprocess.run(
            [python, "-c", PRELUDE + script, str(file), NEEDLE], capture_output=True, text=True, check=False
        )
        wall = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"{name} on {file.name}: {done.stderr}")
        found[name] = {**json.loads(done.stdout.splitlines()[-1]), "whole_process_s": round(wall, 2)}
        print(file.name, name, found[name], file=sys.stderr, flush=True)
    return found


PRELUDE = f"""
import json, resource, sys, threading, time
path, needle, PAGE = sys.argv[1], sys.argv[2], {PAGE}
seconds, began = {{}}, time.perf_counter()
def peak_mb():
    # Not ru_maxrss: that of a program just started is its parent's.
    status = open("/proc/self/status").read()
    return round(int(status.partition("VmHWM:")[2].split()[0]) / 1024, 1)
def step(name, began):
    seconds[name] = round(time.perf_counter() - began, 4)
    seconds[name + ", peak MB"] = peak_mb()
def done():
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({{**seconds, "cpu_s": round(use.ru_utime + use.ru_stime, 2), "peak_mb": peak_mb()}}))
"""
OUR_FIRST_PAGE = """
from gristmill.cli.inspect import take_little_memory; take_little_memory()
from gristmill.inspection.dataset import Dataset
t = time.perf_counter(); d = Dataset(path); rows = d.page(d.start, PAGE); step("open and first page", t)
assert len(rows) == PAGE and not rows[0].row.damage
done()
"""
OURS = """
from gristmill.cli.inspect import take_little_memory; take_little_memory()
from gristmill.inspection import selection
from gristmill.inspection.dataset import Dataset
from gristmill.inspection.statistics import measure
t = time.perf_counter(); d = Dataset(path); d.page(d.start, PAGE); step("open and first page", t)
counting = threading.Thread(target=d.count_rows, daemon=True); counting.start()
t = time.perf_counter(); d.page(d.at_row(d.num_rows().rows // 2), PAGE); step("jump to the middle", t)
t = time.perf_counter(); place = d.start
for _ in range(100):
    place = d.page(place, PAGE)[-1].end
step("100 pages forwards", t)
t = time.perf_counter()
for _ in range(20):
    place = d.back(place, PAGE); d.page(place, PAGE)
step("20 pages back", t)
t = time.perf_counter(); last = d.page(d.last(), 1)[0]; step("last row", t)
t = time.perf_counter(); measure(d, d.columns(), seed=1); step("statistics of 20,000 rows", t)
t = time.perf_counter(); counting.join(); step("rows counted after", t)
total = d.num_rows()
t = time.perf_counter(); p = d.at_row(total.rows - 1000); d.page(p, PAGE); step("jump to an exact row", t)
assert total.is_exact and d.row_at(p).rows == total.rows - 1000
w = d.wanted("score > 0.999999")
t = time.perf_counter(); selection.first(d, w, 10**9, d.start); step("condition on a number, whole file", t)
w = d.wanted(text=needle)
t = time.perf_counter(); f = selection.first(d, w, 2, d.start); step("search of the whole file", t)
assert [r.place for r in f.rows] == [last.place]
seconds["rows"] = total.rows
done()
"""
DUCKDB = """
import duckdb
t = time.perf_counter()
rows = duckdb.sql(f"select * from '{path}' limit {PAGE}").fetchall(); step("open and first page", t)
assert len(rows) == PAGE
done()
"""
POLARS = """
import polars
t = time.perf_counter()
scan = polars.scan_parquet(path) if path.endswith("parquet") else polars.scan_ndjson(path)
rows = scan.head(PAGE).collect(); step("open and first page", t)
assert len(rows) == PAGE
done()
"""

if __name__ == "__main__":
    main()
