"""polars' and DuckDB's side: exact deduplication in memory, and rensa's: signatures of word 5-grams.

python benchmarks/dedup/with_frames.py polars|duckdb|rensa INPUT OUTPUT REPORT      (in an environment of its own)

polars and DuckDB read the same JSONL, keep one row of each text, which is hashing the column, and write JSONL, all of
it in memory. rensa hashes: one core, texts in
memory, 128 positions; a second number leaves out making the 5-grams in Python, which is most of it.
"""

import json
import sys
import time
from pathlib import Path

NGRAM = 5
POSITIONS = 128


def with_polars(source: str, output: str) -> None:
    import polars as pl

    frame = pl.read_ndjson(f"{source}/*.jsonl")
    frame.unique(subset=["text"], keep="first", maintain_order=True).write_ndjson(f"{output}/out.jsonl")


def with_duckdb(source: str, output: str) -> None:
    import duckdb

    rows = f"read_json_auto('{source}/*.jsonl', format='newline_delimited')"
    query = f"SELECT * FROM {rows} QUALIFY row_number() OVER (PARTITION BY text) = 1"
    duckdb.sql(f"COPY ({query}) TO '{output}/out.jsonl' (FORMAT json)")


def with_rensa(source: str) -> dict[str, float]:
    from rensa import RMinHash

    texts = [json.loads(line)["text"] for file in sorted(Path(source).glob("*.jsonl")) for line in file.open()]
    started = time.process_time()
    grams = []
    for text in texts:
        words = text.split()
        grams.append([" ".join(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)])
    shingled = time.process_time()
    for own in grams:
        made = RMinHash(POSITIONS, 42)
        made.update(own)
        made.digest()
    ended = time.process_time()
    return {"docs_per_s": len(texts) / (ended - started), "docs_per_s_given_ngrams": len(texts) / (ended - shingled)}


def main() -> None:
    kind, source, output, report = sys.argv[1:]
    if kind == "rensa":
        Path(report).write_text(json.dumps(with_rensa(source)))
        return
    {"polars": with_polars, "duckdb": with_duckdb}[kind](source, output)
    Path(report).write_text(json.dumps({"kept": output}))


if __name__ == "__main__":
    main()
