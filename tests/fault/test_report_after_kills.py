"""A run that was killed and continued tells the same about its documents as one that was not."""

import os
import signal
import subprocess
import sys

import pytest
from tests.jsonl_files import write_documents

from gristmill.cli.run_files import find_runs
from gristmill.dashboard.report import Report
from gristmill.dashboard.report_documents import documents_sections
from gristmill.dashboard.run_data import read_run

pytestmark = pytest.mark.slow

SCRIPT = """
import os, signal, sys
from pathlib import Path
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch

work, out, kills = sys.argv[1:]

class Dies(ProcessingStage[DocumentBatch, DocumentBatch]):
    name = "dies"
    def process(self, task):
        number = task.column("part").to_pylist()[0]
        marker = Path(out + f"-killed-{number}")
        if str(number) in kills.split(",") and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 2:
            raise ValueError("a bad part")
        return task

stages = [JsonlReader(work + "/in"), Dies(), ScoreFilter(WordCountFilter(min_words=5)), JsonlWriter(out)]
Pipeline("killed", stages=stages).run(LocalExecutor(num_workers=0), checkpoint_path=out + "-run")
"""


def run_until_done(work, out, kills):
    """Start the program again each time it was killed; return how often it was."""
    for times in range(5):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(work), str(out), kills], capture_output=True, env=os.environ, check=False
        )
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 0, done.stderr.decode()
            return times
    raise AssertionError("killed more often than it should be")


def reported(run):
    return Report.of([read_run(found) for found in find_runs(str(run), who="report")]).runs[0]


def test_the_sections_about_documents_have_the_same_bytes(tmp_path):
    for part in range(6):
        documents = [{"id": f"{part}-{n}", "part": part, "text": "word " * n} for n in range(10)]
        write_documents(tmp_path / "in" / f"{part}.jsonl", documents)

    assert run_until_done(tmp_path, tmp_path / "quiet", "") == 0
    assert run_until_done(tmp_path, tmp_path / "killed", "1,4") == 2
    quiet, killed = reported(tmp_path / "quiet-run"), reported(tmp_path / "killed-run")
    assert documents_sections(killed.run) == documents_sections(quiet.run)
    assert killed.verdict.documents == quiet.verdict.documents
    assert killed.run.documents == quiet.run.documents
    assert killed.run.documents.books.quarantined == 10
    assert killed.run.time.resumed
