"""A crash between two steps of publication, made by hand: no kill hits such a moment reliably.

The order is: temporary file, ledger line, rename, and at the very end line numbers and the report.
"""

import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import run
from tests.fault.traces import contents, ledger, temporary_files

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 16


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    source = tmp_path_factory.mktemp("corpus") / "raw"
    make_corpus(source, PARTITIONS)
    return source


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed")
    run(corpus, work, work_ms=1)
    return contents(work)


@pytest.fixture
def finished(corpus, tmp_path):
    run(corpus, tmp_path, work_ms=1)
    return tmp_path


def as_if_killed_before_the_end(work):
    """The driver writes the report last of all."""
    (work / "run" / "report.json").unlink()


def test_a_rename_the_crash_prevented_is_done_by_the_next_run(finished, corpus, undisturbed):
    last = ledger(finished)[-1]
    for file in [*last["files"], *last["side_files"]]:
        staged = finished / file["temporary"]
        staged.parent.mkdir(parents=True, exist_ok=True)
        (finished / file["final"]).rename(staged)
    as_if_killed_before_the_end(finished)
    result = run(corpus, finished, work_ms=1)

    assert result.already_finished
    assert contents(finished) == undisturbed
    assert temporary_files(finished) == []


def test_files_without_a_ledger_line_are_orphans_and_written_again(finished, corpus, undisturbed):
    path = finished / "run" / "ledger.jsonl"
    kept = path.read_text().splitlines(keepends=True)[:-3]
    path.write_text("".join(kept))
    orphan = finished / "out" / ".gristmill" / "tmp" / "earlier-session" / "part-0001.jsonl.0"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("half a docu")
    as_if_killed_before_the_end(finished)
    result = run(corpus, finished, work_ms=1)

    assert result.resumed
    assert not result.already_finished
    assert contents(finished) == undisturbed
    assert temporary_files(finished) == []


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_ledger_line_is_as_if_it_had_not_been_written(finished, corpus, undisturbed, cut):
    path = finished / "run" / "ledger.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    as_if_killed_before_the_end(finished)
    run(corpus, finished, work_ms=1)

    assert contents(finished) == undisturbed
    assert {line["root"] for line in ledger(finished)} == set(range(PARTITIONS))


def test_line_numbers_are_completed_if_the_crash_came_before(finished, corpus, undisturbed):
    for name in contents(finished):
        if name.startswith("run/quarantine") and b'"block_start":null' in undisturbed[name]:
            file = finished / name
            # What a reader writes: the first block's own numbers are the file's already.
            file.write_bytes(file.read_bytes().replace(b'"block_start":null', b'"block_start":0'))
    assert contents(finished) != undisturbed
    as_if_killed_before_the_end(finished)
    run(corpus, finished, work_ms=1)

    assert contents(finished) == undisturbed
    assert (finished / "run" / "report.json").exists()


def test_a_directory_that_holds_only_a_lock_is_a_run_that_never_began(corpus, tmp_path, undisturbed):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").write_text("12345")
    (tmp_path / "run" / ".header.json.tmp").write_text("{")
    run(corpus, tmp_path, work_ms=1)

    assert contents(tmp_path) == undisturbed
