"""Ctrl-C and SIGTERM stop a run at once, leave nothing behind, and the same command completes it.

"At once" is without waiting for the work: the workers of the run that is stopped have calls that never end.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.fault.corpus import make_corpus
from tests.fault.curate import run
from tests.fault.processes import finish, wait_until
from tests.fault.traces import contents, ledger, shared_memory, temporary_files

pytestmark = [pytest.mark.fault, pytest.mark.slow]

COMMAND = Path(sys.executable).parent / "gristmill"
PARTITIONS = 30
WORK_MS = 10
RECIPE = """
name: curate
stages:
- JsonlReader: {file_paths: "${input}"}
- tests.fault.curate.Labour: {work_ms: 10}
- ScoreFilter: {filter_obj: {WordCountFilter: {min_words: 3}}}
- JsonlWriter: {path: "${output}"}
"""


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


def script(scene, corpus, **options):
    arguments = ("-m", "tests.fault.curate", corpus, scene.work, "--work-ms", WORK_MS)
    return scene.start(*arguments, start_new_session=True, **options)


def command(scene, corpus, **options):
    work = scene.work
    (work / "recipe.yaml").write_text(RECIPE)
    paths = ("--input", corpus, "--output", work / "out", "--rejects", work / "rejects", "--run-dir", work / "run")
    allowed = ("--allow-module", "tests.fault.curate")
    arguments = ("run", work / "recipe.yaml", *allowed, *paths, "--workers", 2, "--json")
    return scene.start(str(COMMAND), *arguments, start_new_session=True, **options)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize(("start", "code"), [(script, 1), (command, 130)], ids=["script", "command"])
def test_a_signal_stops_at_once_and_the_same_command_continues(scene, corpus, undisturbed, start, code, number):
    shared_before = shared_memory()
    program = start(scene, corpus, hold=(4, scene.work / "run" / "ledger.jsonl"))
    wait_until(lambda: len(ledger(scene.work)) >= 4, what="4 ledger lines", program=program)
    os.killpg(program.pid, number)  # as a terminal does: to everything in the foreground
    _, errors = finish(program, expected=code)
    committed = len(ledger(scene.work))

    assert 4 <= committed < PARTITIONS
    wait_until(lambda: not scene.processes(), what="every process to end")
    assert f"stopped; {committed} of {PARTITIONS} source partitions are committed" in errors
    assert "Run the same command again to continue." in errors
    assert temporary_files(scene.work) == []
    assert list(scene.temporary.iterdir()) == []
    assert shared_memory() <= shared_before

    out, _ = finish(start(scene, corpus))
    assert json.loads(out.splitlines()[-1])["resumed"]
    assert contents(scene.work) == undisturbed
    assert sorted(line["root"] for line in ledger(scene.work)) == list(range(PARTITIONS)), "finished work was redone"


def test_a_status_after_ctrl_c_says_stopped(scene, corpus):
    program = command(scene, corpus, hold=(1, scene.work / "run" / "ledger.jsonl"))
    wait_until(lambda: ledger(scene.work), what="a ledger line", program=program)
    os.killpg(program.pid, signal.SIGINT)
    finish(program, expected=130)

    assert json.loads((scene.work / "run" / "status.json").read_text())["state"] == "stopped"


def test_ctrl_c_before_any_work_is_done_leaves_nothing(scene, corpus):
    program = command(scene, corpus)
    wait_until((scene.work / "run" / "lock").exists, what="the run to begin", program=program)
    os.killpg(program.pid, signal.SIGINT)
    _, errors = finish(program, expected=130)

    assert "Traceback" not in errors
    wait_until(lambda: not scene.processes(), what="every process to end")
    assert temporary_files(scene.work) == []


def test_a_program_keeps_its_own_handler_of_signals(corpus, tmp_path):
    called = []
    before = signal.signal(signal.SIGTERM, lambda *_: called.append("mine"))
    try:
        run(corpus, tmp_path, work_ms=1, observer=lambda _: signal.raise_signal(signal.SIGTERM))
        mine = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert called
    assert mine is not before
