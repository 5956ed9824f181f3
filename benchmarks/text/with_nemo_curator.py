"""NeMo Curator's side of the text benchmark: the 28 filters of `english-heuristics` as one list in one stage.

    python benchmarks/text/with_nemo_curator.py INPUT OUTPUT REPORT      (in an environment of its own)

Run on Ray Data, which of its executors starts fastest and is the only one that takes a machine of two cores as it is.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from nemo_curator.backends.ray_data import RayDataExecutor
from nemo_curator.pipeline import Pipeline
from nemo_curator.stages.text.filters import ScoreFilter, heuristic
from nemo_curator.stages.text.filters.heuristic import repetition
from nemo_curator.stages.text.io.reader import JsonlReader
from nemo_curator.stages.text.io.writer import JsonlWriter

TOP = {2: 0.20, 3: 0.18, 4: 0.16}
DUPLICATE = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}


def _filters() -> list[object]:
    return [
        heuristic.NonAlphaNumericFilter(0.25),
        heuristic.SymbolsToWordsFilter(0.1),
        heuristic.NumbersFilter(0.15),
        heuristic.UrlsFilter(0.2),
        heuristic.WhiteSpaceFilter(0.25),
        heuristic.ParenthesesFilter(0.1),
        heuristic.BoilerPlateStringFilter(max_boilerplate_string_ratio=0.4),
        repetition.RepeatedLinesFilter(0.7),
        repetition.RepeatedParagraphsFilter(0.7),
        repetition.RepeatedLinesByCharFilter(0.8),
        repetition.RepeatedParagraphsByCharFilter(0.8),
        heuristic.WordCountFilter(50, 100_000),
        heuristic.PunctuationFilter(0.85),
        heuristic.WordsWithoutAlphabetsFilter(0.8),
        heuristic.CommonEnglishWordsFilter(2),
        heuristic.MeanWordLengthFilter(3, 10),
        heuristic.LongWordFilter(1000),
        heuristic.EllipsisFilter(0.3),
        *(repetition.RepeatingTopNGramsFilter(n=n, max_repeating_ngram_ratio=r) for n, r in TOP.items()),
        *(
            repetition.RepeatingDuplicateNGramsFilter(n=n, max_repeating_duplicate_ngram_ratio=r)
            for n, r in DUPLICATE.items()
        ),
        heuristic.BulletsFilter(0.9),
    ]


def main() -> None:
    source, output, report = sys.argv[1:]
    pipeline = Pipeline(name="heuristics")
    pipeline.add_stage(JsonlReader(file_paths=source, files_per_partition=1))
    pipeline.add_stage(ScoreFilter(_filters()))
    pipeline.add_stage(JsonlWriter(path=output))
    with tempfile.TemporaryDirectory(prefix="ray-") as directory:
        # A directory that others use may name a cluster that has ended without a word, and Ray would wait for it.
        os.environ["RAY_TMPDIR"] = directory
        started = time.perf_counter()
        pipeline.run(RayDataExecutor())
        run_s = time.perf_counter() - started
    kept = sum(1 for file in Path(output).glob("*.jsonl") for _ in file.open("rb"))
    Path(report).write_text(json.dumps({"run_s": run_s, "kept": kept}))


if __name__ == "__main__":
    main()
