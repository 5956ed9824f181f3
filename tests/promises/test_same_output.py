"""Same input, same recipe: byte-identical output, however it is run."""

import json
import os
import subprocess
import sys

import pytest
from tests.jsonl_files import contents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import NonAlphaNumericFilter, WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

pytestmark = pytest.mark.slow


class SplitsInThree(ProcessingStage[DocumentBatch, DocumentBatch]):
    """In processes of its own, so that batches travel."""

    name = "splits_in_three"
    fusible = False

    def process(self, task):
        third = max(1, task.num_items // 3)
        return [task.slice(start, third) for start in range(0, task.num_items, third)]


class FailsOnMultiplesOf97(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "fails_on_multiples_of_97"

    def process(self, task):
        bad = [n for n in task.column("n").to_pylist() if n % 97 == 0]
        if bad:
            raise ValueError(f"cannot do {bad}")
        return task


def stages(work, out):
    return [
        JsonlReader(str(work / "in"), blocksize="8KB"),
        ScoreFilter(WordCountFilter(min_words=3), score_field="words"),
        SplitsInThree(),
        FailsOnMultiplesOf97(),
        Score(len, "chars"),
        ScoreFilter(NonAlphaNumericFilter(0.4)),
        JsonlWriter(str(out)),
    ]


def run(work, out, executor):
    result = Pipeline("same", stages=stages(work, out)).run(executor, rejects_path=out / "rejects")
    # The run directory is hidden; what it says of quarantined documents belongs to the output all the same.
    quarantine = {path.name: path.read_bytes() for path in sorted((out / ".gristmill" / "quarantine").iterdir())}
    return contents(out), without_tracebacks(quarantine), result


def without_tracebacks(files):
    """Tracebacks differ between a process of its own and this one by the frames below the stage."""
    kept = {}
    for name, text in files.items():
        entries = [json.loads(line) for line in text.splitlines()]
        kept[name] = [{k: v for k, v in entry.items() if k != "traceback"} for entry in entries]
    return kept


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = tmp_path_factory.mktemp("same")
    for part in range(3):
        numbers = range(300 * part, 300 * part + 300)
        documents = [{"n": n, "text": "word, " * (n % 11) + "!" * (n % 5)} for n in numbers]
        write_documents(work / "in" / f"part-{part}.jsonl", documents)
    return work


@pytest.fixture(scope="module")
def reference(work):
    return run(work, work / "reference", LocalExecutor(num_workers=1))


EXECUTORS = {
    "two workers": LocalExecutor(num_workers=2),
    "four workers": LocalExecutor(num_workers=4),
    "no worker": LocalExecutor(num_workers=0),
    "stage after stage": LocalExecutor(num_workers=2, execution_mode="batch"),
}


@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_the_output_is_the_same_bytes_whatever_runs_it(work, reference, executor, tmp_path):
    """Byte-identical output, whatever the number of workers, the executor or the order things happen in."""
    files, quarantine, result = run(work, tmp_path / "out", executor)

    assert len(files) > 20
    assert files == reference[0]
    assert quarantine == reference[1]
    assert names(result.output_files) == names(reference[2].output_files)
    assert result.dropped == reference[2].dropped
    assert result.quarantined == reference[2].quarantined == 8


def names(paths):
    return [path.rpartition("/")[2] for path in paths]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_final_tasks_come_in_the_order_of_their_sources(work, workers):
    """Nothing depends on the order of arrival."""
    pipeline = Pipeline("order", stages=[JsonlReader(str(work / "in"), blocksize="8KB"), SplitsInThree()])
    result = pipeline.run(LocalExecutor(num_workers=workers))

    assert [n for task in result for n in task.to_pyarrow()["n"].to_pylist()] == list(range(900))


SCRIPT = """
import sys
from pathlib import Path
from gristmill.backends.local import LocalExecutor
from tests.promises.test_same_output import run
run(Path(sys.argv[1]), Path(sys.argv[2]), LocalExecutor(num_workers=2))
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_hash_seed_does_not_matter(work, reference, seed, tmp_path):
    """Byte-identical output, whatever the hash seed."""
    environment = {
        **os.environ,
        "PYTHONHASHSEED": seed,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    out = tmp_path / "out"
    subprocess.run([sys.executable, "-c", SCRIPT, str(work), str(out)], env=environment, check=True)

    assert contents(out) == reference[0]
