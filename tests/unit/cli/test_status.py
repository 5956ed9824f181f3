"""Status reads a run directory, or says that it is none."""

import json
from dataclasses import asdict, replace

import pytest

from gristmill.cli.run_files import RunFiles, find_run
from gristmill.cli.status import read_documents, read_snapshot
from gristmill.errors import ConfigError
from gristmill.metrics.snapshot import RunSnapshot, StageSnapshot
from gristmill.metrics.snapshot_view import where_time_went

SNAPSHOT = RunSnapshot(
    "demo", "finished", 1.5, 1, 1, 10, 8, 1, 1, 0, 100, 100, 0, 0, None, (StageSnapshot("a", 0, 10, 9),), ("done",)
)


@pytest.fixture
def output(tmp_path):
    (tmp_path / ".gristmill").mkdir()
    (tmp_path / ".gristmill" / "status.json").write_text(json.dumps(asdict(SNAPSHOT)))
    return tmp_path


def test_a_snapshot_is_read_as_it_was_written(output):
    assert read_snapshot(RunFiles(str(output / ".gristmill"))) == SNAPSHOT


def test_the_output_directory_is_as_good_as_the_run_directory_in_it(output):
    assert find_run(str(output), who="status").place == str(output / ".gristmill")


def test_the_report_is_part_of_the_documents_once_it_is_there(output):
    (output / ".gristmill" / "report.json").write_text('{"read": 10}')
    documents = read_documents(RunFiles(str(output / ".gristmill")))

    assert documents["report"] == {"read": 10}
    assert documents["status"]["written"] == 8


def test_it_says_where_the_time_went_largest_part_first():
    shares = {"useful": 0.7, "setup": 0.1, "starved": 0.196, "wasted": 0.004}
    running = replace(SNAPSHOT, state="running", resource="gpu", shares=shares, bound_s=61.0)

    assert where_time_went(running) == "gpu time: useful 70%, starved 20%, setup 10%"
    assert where_time_went(replace(running, state="finished")).endswith("; at least 1:01 of work and set-up")
    assert where_time_went(SNAPSHOT) == ""


def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"^status: expected the directory of a run \(with status\.json in it\); got "
    ):
        find_run(str(tmp_path), who="status")


def test_a_file_of_another_shape_is_refused(output):
    (output / ".gristmill" / "status.json").write_text('{"state": 5}')

    with pytest.raises(ConfigError, match="to be written by this version of gristmill"):
        read_snapshot(RunFiles(str(output / ".gristmill")))


def test_a_run_on_a_store_is_read_like_one_on_a_disk():
    import fsspec

    fsspec.filesystem("memory").pipe("/statuses/out/.gristmill/status.json", json.dumps(asdict(SNAPSHOT)).encode())
    found = find_run("memory://statuses/out", who="status")

    assert found.place == "memory://statuses/out/.gristmill"
    assert read_snapshot(found) == SNAPSHOT
    assert found.silence_s() < 3600
