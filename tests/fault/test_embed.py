"""`kill -9` of the workers that hold a model, then of the run: embeddings as if nothing had happened."""

import contextlib
import signal

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from tests.fault.embed import run
from tests.fault.hold import hold_until
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents, write_documents

from gristmill.testing.tiny_models import WORDS, write_tiny_encoder

pytestmark = [pytest.mark.fault, pytest.mark.slow]

FILES, ROWS = 40, 8
DEADLINE_S = 120


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Documents, a model, and what comes of them undisturbed."""
    work = tmp_path_factory.mktemp("given")
    (work / "in").mkdir()
    rng = np.random.default_rng(4)
    for number in range(FILES):
        texts = [" ".join(rng.choice(WORDS, rng.integers(1, 50))) for _ in range(ROWS - 1)]
        documents = [{"id": f"{number}-{row}", "text": text} for row, text in enumerate([*texts, None])]
        write_documents(work / "in" / f"{number:02d}.jsonl", documents)
    model = write_tiny_encoder(work / "model")
    run(work / "in", model, work / "out", workers=0)
    return work


def test_killed_workers_and_a_killed_run_change_no_byte(scene, given):
    ledger = scene.work / "out" / ".gristmill" / "ledger.jsonl"
    passed, limit = scene.work / "passed", scene.work / "limit"
    hold_until(limit, 2)
    command = ("-m", "tests.fault.embed", given / "in", given / "model", scene.work / "out")
    program = scene.start(*command, hold=(limit, passed))

    def lines(file):
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def both_workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            _, *workers = psutil.Process(program.pid).children(recursive=True)  # the first is the fork server
            alive = [worker for worker in workers if worker.status() != psutil.STATUS_ZOMBIE]
            return alive if len(alive) == 2 else None

    def wait_for(condition, what):
        return wait_until(condition, what=what, program=program, deadline_s=DEADLINE_S)

    for due in (2, 4):
        assert wait_for(lambda due=due: lines(passed) >= due, "calls")
        for worker in wait_for(both_workers, "workers"):
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.send_signal(signal.SIGKILL)
        hold_until(limit, lines(passed) + 2)

    def has_committed():
        # What a quick call gave may be told with what comes after it, so another may pass until something is told.
        hold_until(limit, lines(passed) + 1)
        return lines(ledger) >= 1

    assert wait_for(has_committed, "commits after the kills")
    program.kill()
    program.communicate()
    before = lines(ledger)
    finish(scene.start(*command), deadline_s=DEADLINE_S)

    assert before < FILES
    assert contents(scene.work / "out") == contents(given / "out")
    assert pq.read_table(scene.work / "out").num_rows == FILES * ROWS
