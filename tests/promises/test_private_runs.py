"""Nobody else reads a run directory, which holds documents in quarantine, unless that was asked for."""

import os

import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.exchange import Exchange
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def curate(work, *, exchange, workers=0, **options):
    write_documents(work / "in" / "a.jsonl", [{"text": "one"}, {"text": "one two three"}])
    with (work / "in" / "a.jsonl").open("a") as file:
        file.write("{broken\n")
    middle = [Exchange("text", 2)] if exchange else []
    stages = [JsonlReader(str(work / "in")), ScoreFilter(WordCountFilter(min_words=2)), *middle]
    pipeline = Pipeline("p", stages=[*stages, JsonlWriter(str(work / "out"))])
    executor = LocalExecutor(num_workers=workers)
    return pipeline.run(executor, rejects_path=str(work / "rejects"), max_quarantined=None, quiet=True, **options)


def modes(directory):
    """The modes of a directory and everything below it: of directories, and of files."""
    found = [directory, *directory.rglob("*")]
    return {path.stat().st_mode & 0o777 for path in found if path.is_dir()}, {
        path.stat().st_mode & 0o777 for path in found if path.is_file()
    }


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("place", ["out/.gristmill", "run"])
@pytest.mark.usefixtures("usual_umask")
def test_a_run_directory_is_its_users_only_and_outputs_are_as_the_umask_says(tmp_path, exchange, place):
    options = {} if place == "out/.gristmill" else {"checkpoint_path": tmp_path / "state" / place}
    run_dir = tmp_path / place if not options else options["checkpoint_path"]
    result = curate(tmp_path, exchange=exchange, **options)

    assert result.quarantine_files
    assert modes(run_dir) == ({0o700}, {0o600})
    published = [*result.output_files, *result.rejects_files]
    assert {os.stat(path).st_mode & 0o777 for path in published} == {0o644}  # noqa: PTH116
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("usual_umask")
def test_a_shared_run_directory_is_as_the_umask_says(tmp_path):
    curate(tmp_path, exchange=False, shared=True)

    assert modes(tmp_path / "out") == ({0o755}, {0o644})


@pytest.mark.usefixtures("usual_umask")
def test_a_directory_of_an_older_version_becomes_private_and_others_stay_as_they_are(tmp_path):
    (tmp_path / "out" / ".gristmill").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    curate(tmp_path, exchange=False)
    assert (tmp_path / "out" / ".gristmill").stat().st_mode & 0o777 == 0o700
    curate(tmp_path, exchange=False, checkpoint_path=tmp_path / "mine")

    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "mine" / "header.json").stat().st_mode & 0o777 == 0o600
