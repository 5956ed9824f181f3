"""A report says by which versions, where and when the run was made, and how much memory it had at most."""

import json
import platform
import time

from gristmill import __version__
from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter


def test_the_report_of_a_run_names_its_setting(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    stages = [JsonlReader(str(tmp_path / "in.jsonl")), JsonlWriter(str(tmp_path / "out"))]
    before = time.time()
    snapshots = []
    Pipeline("demo", stages=stages).run(LocalExecutor(num_workers=0), observer=snapshots.append, quiet=True)
    report = json.loads((tmp_path / "out" / ".gristmill" / "report.json").read_text())

    assert report["versions"]["gristmill"] == __version__
    assert report["versions"]["python"] == platform.python_version()
    assert report["versions"]["pyarrow"]
    assert report["host"]["cpus"] >= 1
    assert before - 0.1 <= report["started_at"] <= report["ended_at"] <= time.time() + 0.1
    assert report["peak_memory_bytes"] > 0
    assert snapshots[-1].peak_memory_bytes > 0
