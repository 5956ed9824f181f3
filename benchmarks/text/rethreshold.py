"""Other thresholds on a million scored documents: `gristmill rethreshold english-heuristics`, start to exit.

    python -m benchmarks.text.rethreshold [--documents 1000000] [--record]

The corpus is scored once by `gristmill score`, with a column for every filter; its rows are then repeated until there
are enough. Texts are cut to a few characters: rethreshold does not read them.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.corpus import corpus
from benchmarks.process_tree import TreeUse, measure
from benchmarks.record import ROOT, header, record

OUT = ROOT / "benchmarks" / "out" / "rethreshold"
RECIPE = "english-heuristics"
GRISTMILL = str(Path(sys.executable).with_name("gristmill"))
ROUNDS = 3


def main() -> None:
    """Score, repeat the rows, apply thresholds; print seconds and memory of the last step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    began = header()
    columns = _scored_documents(options.documents)
    uses = [_rethreshold() for _ in range(ROUNDS)]
    best = min(uses, key=lambda use: use.wall_s)
    seconds = {"seconds": round(best.wall_s, 2), "cpu_s": round(best.cpu_s, 2)}
    result = {"documents": options.documents, "columns": columns, **seconds, "peak_mb": best.peak_bytes // 1_000_000}
    record("rethreshold", began, result)


def _scored_documents(number: int) -> int:
    """Write the directory of scored documents; return how many columns of scores there are."""
    shutil.rmtree(OUT, ignore_errors=True)
    scored, many = OUT / "scored", OUT / "many"
    many.mkdir(parents=True)
    subprocess.run([GRISTMILL, "score", RECIPE, "-i", str(corpus(50)), "-o", str(scored), "--quiet"], check=True)
    table = pa.concat_tables([pq.read_table(path) for path in sorted(scored.glob("*.parquet"))])
    table = table.set_column(table.column_names.index("text"), "text", pa.array(["text"] * len(table)))
    times = -(-number // len(table))
    pq.write_table(pa.concat_tables([table] * times).slice(0, number), many / "00000.parquet")
    return table.num_columns - 2  # id and text


def _rethreshold() -> TreeUse:
    return measure([GRISTMILL, "rethreshold", RECIPE, str(OUT / "many"), "--set", "word_count.min_words=80"])


if __name__ == "__main__":
    main()
