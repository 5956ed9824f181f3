"""Somebody removes a directory a run is using: it ends with words, and the same command gives everything."""

import shutil
from pathlib import Path

import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import run
from tests.fault.processes import finish, wait_until
from tests.fault.traces import contents

pytestmark = [pytest.mark.fault, pytest.mark.slow]

PARTITIONS = 4


def staging(work):
    return [work / place / ".gristmill" / "tmp" for place in ("out", "rejects", "run/quarantine")]


def is_gone(directory):
    """Remove it; what the run puts there at the same moment is removed next time."""
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


@pytest.mark.parametrize("removed", ["out", "run", "rejects", "out/.gristmill", "run/quarantine"])
def test_a_run_whose_directory_is_removed_ends_with_words(scene, tmp_path, removed):
    corpus, work = tmp_path / "raw", tmp_path / "work"
    make_corpus(corpus, PARTITIONS)
    run(corpus, tmp_path / "undisturbed", work_ms=1, workers=0)
    ledger, held_at = work / "run" / "ledger.jsonl", tmp_path / "held at"
    held_at.write_text("0")
    command = ("-m", "tests.fault.curate", corpus, work)
    program = scene.start(*command, hold=(held_at, ledger))
    wait_until(lambda: all(map(Path.exists, (ledger, *staging(work)))), what="the run to begin", program=program)
    wait_until(lambda: is_gone(work / removed), what="the directory to be gone", program=program)
    held_at.write_text("1000000")
    output, errors = program.communicate(timeout=60)

    assert program.returncode == 1, output
    said = errors.splitlines()[-1]
    assert said.startswith("gristmill.errors.MachineFailed: curate: ")
    assert str(work / removed) in said
    assert "run the same command again to go on" in said
    finish(scene.start(*command))
    assert contents(work) == contents(tmp_path / "undisturbed")
