"""MB/s of each modifier and model filter on one core, beside the same work one Python string at a time.

    python -m benchmarks.text.modifiers [--megabytes 50] [--record]

The yardstick of a modifier is `modify_document` of every text, column to column, measured in turns with it; that of a
filter is decoding the column, which all of them pay.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import pyarrow as pa
from benchmarks.corpus import corpus
from benchmarks.record import header, record

from gristmill.stages.text.filters.fasttext import FastTextLangId
from gristmill.stages.text.filters.heuristic import code
from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.stages.text.judging.judge import score_texts
from gristmill.stages.text.modifiers import (
    BoilerPlateStringModifier,
    DocumentModifier,
    LineRemover,
    MarkdownRemover,
    NewlineNormalizer,
    PiiModifier,
    QuotationRemover,
    Slicer,
    UnicodeReformatter,
    UrlRemover,
)
from gristmill.stages.text.modifiers.modify_columns import modify_column
from gristmill.tasks.text_columns import from_texts

ROUNDS = 3
SLICE_BYTES = 8_000_000  # enough for a steady figure; the slowest takes seconds for it
MODIFIERS: list[DocumentModifier] = [
    UnicodeReformatter(),
    NewlineNormalizer(),
    UrlRemover(),
    MarkdownRemover(),
    QuotationRemover(),
    BoilerPlateStringModifier(),
    LineRemover(["Table of Contents", "Next", "Previous"]),
    Slicer(0, 2000),
    PiiModifier(),
]
FILTERS: list[DocumentFilter[object]] = [
    FastTextLangId(),
    FastTextLangId(first_chars=1000),
    code.AlphaFilter(),
    code.HTMLBoilerplateFilter(),
    code.GeneralCommentToCodeFilter("text/x-c"),
]


def texts(megabytes: int) -> pa.ChunkedArray:
    """Return the first texts of the corpus as a column."""
    found: list[str | None] = []
    size = 0
    for path in sorted(corpus(megabytes).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            found.append(json.loads(line)["text"])
            size += len(line)
            if size >= SLICE_BYTES:
                return pa.chunked_array([from_texts(found)])
    return pa.chunked_array([from_texts(found)])


def rate(column: pa.ChunkedArray, work: Callable[[], object]) -> float:
    """Return MB/s of one round."""
    started = time.perf_counter()
    work()
    return column.nbytes / 1e6 / (time.perf_counter() - started)


def one_at_a_time(modifier: DocumentModifier, column: pa.ChunkedArray) -> pa.Array:
    """What `Modify` would cost without looking for candidates."""
    return from_texts([modifier.modify_document(text) for text in column.to_pylist()])


def measure(modifier: DocumentModifier, column: pa.ChunkedArray) -> dict[str, object]:
    """Measure a modifier and its yardstick in turns."""
    pairs = [
        (rate(column, lambda: modify_column(modifier, column)), rate(column, lambda: one_at_a_time(modifier, column)))
        for _ in range(ROUNDS)
    ]
    own, plain = (statistics.median(side) for side in zip(*pairs, strict=True))
    asked = modifier.find_candidates(column)
    share = 1.0 if asked is None else float(asked.mean())
    return {"mb_per_s": round(own, 1), "one_at_a_time": round(plain, 1), "candidates": round(share, 3)}


def main() -> None:
    """Measure them all and print a table as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--record", action="store_true")
    began = header()
    column = texts(parser.parse_args().megabytes)
    result: dict[str, object] = {"megabytes": round(column.nbytes / 1e6, 1), "documents": len(column)}
    result["decode"] = round(statistics.median(rate(column, column.to_pylist) for _ in range(ROUNDS)), 1)
    for modifier in MODIFIERS:
        result[modifier.name] = measure(modifier, column)
    for judge in FILTERS:
        rates = [rate(column, lambda judge=judge: score_texts(judge, column)) for _ in range(ROUNDS)]
        result[f"{judge!r}"] = round(statistics.median(rates), 1)
    record("text_modifiers", began, result)


if __name__ == "__main__":
    main()
