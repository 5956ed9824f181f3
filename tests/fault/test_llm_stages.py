"""Runs that make and translate texts, killed: nothing is lost, nothing is doubled, and the bytes are the same."""

import json
import os
import signal

import pytest
from tests.fault.processes import finish, wait_until
from tests.fault.synthesize import run
from tests.fault.test_remote_calls import workers_of
from tests.fault.traces import contents
from tests.llm_tasks import PAGE, answer_task

from gristmill.testing.llm_server import MisbehavingServer, lognormal_s

pytestmark = [pytest.mark.fault, pytest.mark.slow]

FILES, DOCUMENTS = 5, 3


@pytest.fixture
def corpus(tmp_path):
    directory = tmp_path / "raw"
    directory.mkdir()
    for number in range(FILES):
        names = [f"{number}-{row}" for row in range(DOCUMENTS)]
        lines = [json.dumps({"id": name, "text": PAGE.replace("{name}", name)}) for name in names]
        (directory / f"part-{number:03d}.jsonl").write_text("\n".join(lines) + "\n")
    return directory


def test_killed_runs_go_on_and_give_the_same_bytes(scene, corpus, tmp_path):
    with MisbehavingServer(
        answer=answer_task, delay=lognormal_s(0.02, 0.8), failing_share=0.1, kinds=("500", "cut", "no_choice")
    ) as server:
        command = ("-m", "tests.fault.synthesize", corpus, scene.work, server.url)
        program = scene.start(*command, start_new_session=True)
        wait_until(lambda: len(server.log) >= 40, what="40 requests", program=program)
        for worker in workers_of(program):
            worker.send_signal(signal.SIGKILL)
        wait_until(lambda: len(server.log) >= 150, what="150 requests", program=program)
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        wait_until(lambda: not scene.processes(), what="every process to end")
        answered = len(server.answered)
        finish(scene.start(*command))
        asked_in_all = len(server.answered)
        server.delay = lambda _: 0.0

        undisturbed = run(corpus, tmp_path / "undisturbed", server.url)
    print(f"{answered} of {asked_in_all} questions were answered when the run was killed")
    assert 0 < answered < asked_in_all
    assert contents(scene.work) == contents(tmp_path / "undisturbed")
    rows = [
        json.loads(line)
        for file in sorted((scene.work / "out").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    wanted = [
        f"{n}-{r}{kind}"
        for n in range(FILES)
        for r in range(DOCUMENTS)
        for kind in ("", "#diverse_qa", "#knowledge_list")
    ]
    assert [row["id"] for row in rows] == wanted
    assert all(row["translated_text"] == row["text"].upper() for row in rows)
    assert undisturbed.written == undisturbed.read + undisturbed.created == len(wanted)
