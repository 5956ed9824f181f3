"""Models keep the promises too: the same bytes however a run goes, and memory that runs out costs no document."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.classifiers import ContentTypeClassifier, FineWebEduClassifier, QualityClassifier
from gristmill.stages.text.classifiers.models import LabelModelStage
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.stages.text.models import TokenizerStage
from gristmill.stages.text.models.model import MAY_DIFFER
from gristmill.testing.tiny_models import WORDS, FakeRuntime, write_tiny_classifier

pytestmark = pytest.mark.slow
PARTS, DOCUMENTS = 4, 60


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work, chance = tmp_path_factory.mktemp("models"), np.random.default_rng(0)
    write_tiny_classifier(work / "labels")
    write_tiny_classifier(work / "grade", labels=("LABEL_0",), seed=3)
    for part in range(PARTS):
        texts = [" ".join(chance.choice(WORDS, chance.integers(0, 60))) for _ in range(DOCUMENTS)]
        documents = [{"id": f"{part}-{n}", "text": text if n % 13 else None} for n, text in enumerate(texts)]
        write_documents(work / "in" / f"part-{part}.jsonl", documents)
    (work / "in" / "empty.jsonl").write_bytes(b"")
    return work


def between(work, out, *stages):
    return Pipeline("models", stages=[JsonlReader(str(work / "in")), *stages, JsonlWriter(str(out))])


def classified(work, out, executor):
    stages = [
        QualityClassifier(model_path=str(work / "labels"), score_field="scores", mark_truncated=True, max_chars=150),
        ContentTypeClassifier(model_path=str(work / "labels"), max_chars=150),
        FineWebEduClassifier(model_path=str(work / "grade"), filter_by=["high_quality"]),
    ]
    result = between(work, out, *stages).run(executor, quiet=True)
    return contents(out), result


@pytest.fixture(scope="module")
def reference(work):
    return classified(work, work / "reference", LocalExecutor(num_workers=0))


EXECUTORS = {
    "one worker": LocalExecutor(num_workers=1),
    "four workers": LocalExecutor(num_workers=4),
    "batch": LocalExecutor(num_workers=2, execution_mode="batch"),
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_classifier_writes_the_same_bytes_on(name, work, reference, tmp_path):
    """Same input, same recipe: byte-identical output, whatever the number of workers."""
    written, result = classified(work, tmp_path / "out", EXECUTORS[name])

    assert written == reference[0]
    assert result.dropped == reference[1].dropped
    assert result.read == PARTS * DOCUMENTS == result.written + result.dropped_total


@pytest.mark.cluster
@pytest.mark.xdist_group("ray")
def test_a_classifier_writes_the_same_bytes_on_ray(work, reference, tmp_path, ray_cluster):
    """Same input, same recipe: byte-identical output, whatever the executor."""
    from gristmill.backends.ray_actor_pool import RayActorPoolExecutor

    written, result = classified(work, tmp_path / "out", RayActorPoolExecutor())

    assert written == reference[0]
    assert result.dropped == reference[1].dropped


@dataclass
class DiesOnceModelStage(LabelModelStage):
    """Is killed on its way through the first task that some worker is given, as by the kernel."""

    marks: str = ""

    def process(self, task):
        made = super().process(task)
        try:
            (Path(self.marks) / "killed").touch(exist_ok=False)
        except FileExistsError:
            return made
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still here")


def stages_by_hand(work, model, **options):
    return [TokenizerStage(str(work / "labels")), model(str(work / "labels"), **options)]


def test_a_killed_model_worker_changes_nothing(work, tmp_path):
    """kill -9 of any worker: output is as if nothing happened."""
    between(work, tmp_path / "whole", *stages_by_hand(work, LabelModelStage)).run(
        LocalExecutor(num_workers=1), quiet=True
    )
    (tmp_path / "marks").mkdir()
    dying = stages_by_hand(work, DiesOnceModelStage, marks=str(tmp_path / "marks"))
    result = between(work, tmp_path / "killed", *dying).run(LocalExecutor(num_workers=2), quiet=True)

    assert (tmp_path / "marks" / "killed").exists()
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert (result.read, result.written, result.quarantined) == (PARTS * DOCUMENTS, PARTS * DOCUMENTS, 0)


@dataclass
class SixteenRowsModelStage(LabelModelStage):
    """Has memory for 16 rows, and notes with how many each worker begins. The first is killed once it knows that."""

    marks: str = ""

    def open_model(self):
        super().open_model().close()  # for the labels
        self._labels = ["High", "Medium", "Low"]
        runtime = FakeRuntime(max_rows=16)
        answer = runtime.run
        runtime.run = lambda ids, mask: (np.repeat(answer(ids, mask)[0], 3, axis=1) * [0.1, 0.3, 0.2],)
        return runtime

    def setup(self, worker_metadata=None):
        super().setup(worker_metadata)
        begun = Path(self.marks)
        (begun / f"{len(list(begun.iterdir())):03d}").write_text(str(self._limits.rows))

    def process(self, task):
        if self._limits.failures:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().process(task)


def test_memory_for_16_rows_costs_no_document_and_later_workers_begin_there(work, tmp_path):
    """Running out of memory is an event, not an end."""
    marks = tmp_path / "marks"
    marks.mkdir()
    stages = stages_by_hand(work, SixteenRowsModelStage, marks=str(marks), max_batch_tokens=100_000)
    stages[1] = stages[1].with_(num_workers=1)
    executor = LocalExecutor(num_workers=2)
    result = between(work, tmp_path / "out", *stages).run(executor, quiet=True)
    begun = [int(mark.read_text()) for mark in sorted(marks.iterdir())]

    assert (result.read, result.written, result.quarantined) == (PARTS * DOCUMENTS, PARTS * DOCUMENTS, 0)
    answers = [document["preds"] for document in read_documents(tmp_path / "out")]
    assert set(answers) == {"Medium", None}
    counted = result.counts["sixteen_rows_model_stage"].counted

    assert begun == [256, 16]
    assert counted["oom"] == 2  # about 55 rows, then 32: of one task, before the kill
    assert 50 <= counted[MAY_DIFFER] <= DOCUMENTS
    assert "oom" in str(result)


@dataclass
class KilledForRowsModelStage(LabelModelStage):
    """Is killed by a batch of more than 32 rows, as by a kernel that counts whom it kills for memory."""

    marks: str = ""
    kernel: str = ""

    def open_model(self):
        runtime = super().open_model()
        answer = runtime.run

        def run(ids, mask):
            if len(ids) > 32:
                counts = Path(self.kernel) / "memory.events"
                killed = int(counts.read_text().split()[1])
                counts.write_text(f"oom_kill {killed + 1}\n")
                os.kill(os.getpid(), signal.SIGKILL)
            return answer(ids, mask)

        runtime.run = run
        return runtime

    def setup(self, worker_metadata=None):
        super().setup(worker_metadata)
        begun = Path(self.marks)
        (begun / f"{len(list(begun.iterdir())):03d}").write_text(str(self._limits.rows))


def test_after_a_worker_was_killed_for_memory_the_next_begins_with_half(work, tmp_path, monkeypatch):
    """A batch that ends its process costs no document either, and is not tried again as it was."""
    kernel, marks = tmp_path / "kernel", tmp_path / "marks"
    kernel.mkdir()
    marks.mkdir()
    (kernel / "memory.events").write_text("oom_kill 7\n")
    monkeypatch.setattr("gristmill.worker.machine.CGROUP", kernel)
    options = {"max_batch_tokens": 100_000, "model_inference_batch_size": 64}
    stages = stages_by_hand(work, KilledForRowsModelStage, marks=str(marks), kernel=str(kernel), **options)
    stages[1] = stages[1].with_(num_workers=1)
    result = between(work, tmp_path / "out", *stages).run(LocalExecutor(num_workers=2), quiet=True)

    assert [int(mark.read_text()) for mark in sorted(marks.iterdir())] == [64, 32]
    assert (kernel / "memory.events").read_text() == "oom_kill 8\n"
    assert (result.read, result.written, result.quarantined) == (PARTS * DOCUMENTS, PARTS * DOCUMENTS, 0)
