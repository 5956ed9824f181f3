"""Somebody removes a directory a run on a cluster is using, or starts a second run into it: words, and nothing lost."""

import json
import shutil
from pathlib import Path

import pytest
from tests.fault.traces import contents, temporary_files

from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_data import RayDataExecutor
from gristmill.errors import ConfigError, MachineFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch

FILES, ROWS = 3, 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(120),
]
EXECUTORS = {"actors": RayActorPoolExecutor, "ray_data": lambda: RayDataExecutor({"cpus": 2})}


class RemovesADirectory(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Removes a directory before its first document, once; cannot cope with one kind of document."""

    name = "removes_a_directory"

    def __init__(self, victim=None):
        self.victim = victim  # a file whose content is the directory: so what is removed is no parameter of the run

    def process(self, task):
        if self.victim and Path(self.victim).exists():
            doomed = Path(self.victim).read_text()
            shutil.rmtree(doomed, ignore_errors=True)
            if not Path(doomed).exists():
                Path(self.victim).unlink(missing_ok=True)
        if "bad" in task.column("text").to_pylist():
            raise ValueError("will not do: bad")
        return task


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    texts = ["bad", "short", *["five words are quite enough"] * (ROWS - 2)]
    for file in range(FILES):
        lines = [json.dumps({"id": f"{file}-{n}", "text": text}) for n, text in enumerate(texts)]
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "in"


def run(executor, source, work, *, directory="run", observer=None):
    stages = [
        JsonlReader(str(source)),
        RemovesADirectory(str(source.parent / "victim")),
        ScoreFilter(WordCountFilter(min_words=3)),
        JsonlWriter(str(work / "out")),
    ]
    paths = {"checkpoint_path": work / directory, "rejects_path": work / "rejects"}
    return Pipeline("removals", stages=stages).run(executor(), observer=observer, **paths)


@pytest.mark.parametrize(
    ("executor", "removed"),
    [
        pytest.param(EXECUTORS[name], removed, id=f"{name}-{removed}")
        for name, removed in (
            ("actors", "rejects"),
            ("actors", "run/quarantine"),
            ("actors", "run/quarantine/.gristmill"),
            ("ray_data", "run/quarantine/.gristmill"),
        )
    ],
)
def test_a_removed_directory_ends_the_run_with_words_and_costs_nothing(executor, removed, source, tmp_path):
    undisturbed, work = tmp_path / "undisturbed", tmp_path / "work"
    run(lambda: LocalExecutor(num_workers=0), source, undisturbed)
    victim = source.parent / "victim"
    victim.write_text(str(work / removed))
    with pytest.raises(MachineFailed, match=r"^removals: .*run the same command again to go on") as stopped:
        run(executor, source, work)
    assert str(work / removed) in str(stopped.value)
    assert not victim.exists()

    result = run(executor, source, work)
    assert (result.read, result.written, result.quarantined) == (FILES * ROWS, FILES * (ROWS - 2), FILES)
    assert contents(work) == contents(undisturbed)


def test_a_second_run_into_one_output_is_refused_and_disturbs_nothing(source, tmp_path):
    executor = RayActorPoolExecutor
    undisturbed, work, refusals = tmp_path / "undisturbed", tmp_path / "work", []
    run(lambda: LocalExecutor(num_workers=0), source, undisturbed)

    def start_another(snapshot):
        if snapshot.state == "running" and not refusals:
            with pytest.raises(
                ConfigError, match="expected no other run to write to this directory; process"
            ) as refused:
                run(executor, source, work, directory="another")
            refusals.append(str(refused.value))

    run(executor, source, work, observer=start_another)

    assert [words.partition(":")[0] for words in refusals] == [str(work / "out")]
    assert contents(work) == contents(undisturbed)
    assert temporary_files(work) == []
