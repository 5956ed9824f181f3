"""M7: a trained classifier in a pipeline, beside bare loops that only predict.

    python -m benchmarks.models.apply_classifier [--rounds 5] [--documents 40000] [--record]

The pipeline reads JSON lines, scores every document and writes it again with its score, in this process. The bare
loops have all texts in memory: one asks fastText's own library, text by text, with the same model file; the other is
the kernel `ApplyClassifier` uses, without a pipeline around it. M7 is the processor time of fastText's loop by that of
the pipeline; the share against the kernel alone, which shows what reading and writing cost, is told beside it. Sides
take turns in every round; the ratio is that of medians.
"""

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.models.documents import DATA
from benchmarks.record import header, record

from gristmill.backends.local import LocalExecutor
from gristmill.models.fasttext_model import load, predict
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.modifiers.fasttext import one_line
from gristmill.stages.text.quality import ApplyClassifier
from gristmill.stages.text.quality.fasttext_classifier import MODEL_FILE, FastTextClassifier
from gristmill.workflows.training import TrainClassifierWorkflow

HERE = LocalExecutor(num_workers=0)
MARK = 0.8
LEARNT = 6000  # documents the model is trained on
MEDIAN_WORDS, SPREAD, WORDS = 150, 0.8, 30_000
Timed = tuple[float, float]


def make_texts(number: int, *, seed: int, low: bool) -> list[str]:
    """Return texts of words as frequent as Zipf says; the classes differ in which words are frequent."""
    chance = np.random.default_rng(seed)
    lengths = np.exp(chance.normal(np.log(MEDIAN_WORDS), SPREAD, number)).clip(5, 5000).astype(int)
    ranks = np.minimum(chance.zipf(1.3, int(lengths.sum())), WORDS)
    if low:
        ranks = np.where(chance.random(len(ranks)) < 0.05, WORDS - ranks, ranks)
    words = [f"w{rank:x}" for rank in range(WORDS + 1)]
    ends = np.cumsum(lengths)
    return [" ".join(words[rank] for rank in own.tolist()) for own in np.split(ranks, ends[:-1])]


def prepare(directory: Path, documents: int) -> tuple[Path, Path]:
    """Return the model and the documents to apply it to, made once."""
    model, source = directory / "model", directory / f"documents-{documents}"
    if not model.exists():
        for name, low in (("positive", False), ("negative", True)):
            write(directory / name, make_texts(LEARNT // 2, seed=int(low), low=low))
        paths = (str(directory / "positive"), str(directory / "negative"), str(model))
        TrainClassifierWorkflow(*paths).run(HERE, quiet=True)
    if not source.exists():
        half = documents // 2
        write(source, make_texts(half, seed=2, low=False) + make_texts(half, seed=3, low=True))
    return model, source


def write(directory: Path, texts: list[str]) -> None:
    """Write documents as JSON lines."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    (directory / "part-0000.jsonl").write_text("\n".join(lines) + "\n")


def timed(work: Callable[[], object]) -> Timed:
    """Return the processor time and the time of the clock."""
    began = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - began[0], time.perf_counter() - began[1]


def sides(model: Path, source: Path, scratch: Path) -> dict[str, Callable[[], object]]:
    """Return what is compared."""
    texts = [json.loads(line)["text"] for line in (source / "part-0000.jsonl").read_text().splitlines()]
    column = TextColumn.of(pa.chunked_array([pa.array(texts, pa.large_string())]))
    library, kernel = load(str(model / MODEL_FILE)), FastTextClassifier.load(model)

    def pipeline() -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        stages = [JsonlReader(str(source)), ApplyClassifier(str(model)), JsonlWriter(str(scratch))]
        done = Pipeline("apply", stages=stages).run(HERE, quiet=True)
        assert done.written == len(texts)

    return {
        "pipeline": pipeline,
        "fasttext": lambda: [predict(library, one_line(text)) for text in texts],
        "kernel": lambda: kernel.margins(column),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=40_000)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    began = header()
    directory = DATA / "apply_classifier"
    model, source = prepare(directory, chosen.documents)
    compared = sides(model, source, directory / "scored")
    for work in compared.values():
        work()  # compiled, and in the file cache
    rounds = [{name: timed(work) for name, work in compared.items()} for _ in range(chosen.rounds)]
    cpu = {name: [each[name][0] for each in rounds] for name in compared}
    median = {name: statistics.median(values) for name, values in cpu.items()}
    against = [each["fasttext"][0] / each["pipeline"][0] for each in rounds]
    result = {
        "documents": chosen.documents,
        "bytes": (source / "part-0000.jsonl").stat().st_size,
        "documents_per_cpu_s": {name: round(chosen.documents / value) for name, value in median.items()},
        "clock_s": {name: round(statistics.median(each[name][1] for each in rounds), 3) for name in compared},
        "M7": round(median["fasttext"] / median["pipeline"], 2),
        "M7_single_rounds": [round(min(against), 2), round(max(against), 2)],
        "mark": MARK,
        "beside_the_kernel_alone": round(median["kernel"] / median["pipeline"], 2),
    }
    record("models-apply-classifier", began, result)


if __name__ == "__main__":
    main()
