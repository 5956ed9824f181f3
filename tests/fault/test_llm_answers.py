"""Answers that were paid for: not lost, not doubled, not paid for again, whatever becomes of the run or the server."""

import json
import os
import re
import signal
import time
from bisect import bisect_right

import pytest
from tests.fault.ask_llm import run
from tests.fault.processes import finish, wait_until
from tests.fault.test_full_disk import IMPATIENT as WITHOUT_PATIENCE
from tests.fault.test_full_disk import mount
from tests.fault.test_remote_calls import workers_of
from tests.fault.traces import contents, ledger

from gristmill.errors import MachineFailed, SpendingLimitReached
from gristmill.models.client.response_cache import ResponseCache
from gristmill.testing.llm_server import MisbehavingServer, lognormal_s, prompt_of

pytestmark = [pytest.mark.fault, pytest.mark.slow]

FILES, DOCUMENTS = 12, 32
IMPATIENT = WITHOUT_PATIENCE + "from tests.fault.ask_llm import main; main()"

__all__ = ["mount"]  # a fixture


def make_corpus(directory, *, files=FILES, documents=DOCUMENTS):
    directory.mkdir(parents=True)
    for number in range(files):
        lines = [json.dumps({"id": f"{number}-{row}", "text": f"word{number}x{row}"}) for row in range(documents)]
        (directory / f"part-{number:03d}.jsonl").write_text("\n".join(lines) + "\n")
    return directory


@pytest.fixture
def corpus(tmp_path):
    return make_corpus(tmp_path / "raw")


def written(work):
    files = sorted((work / "out").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def assert_complete(work, *, without=()):
    rows = written(work)
    assert [row["id"] for row in rows] == [
        f"{n}-{r}" for n in range(FILES) for r in range(DOCUMENTS) if (n, r) not in without
    ]
    assert all(row["answer"] == f"SAY {row['text'].upper()} AGAIN" for row in rows)


def test_a_run_that_is_killed_pays_again_for_what_was_in_flight_and_the_last_moment(scene, corpus):
    cache = scene.work / "cache"
    with MisbehavingServer(delay=lognormal_s(0.05, 0.8)) as server:
        given = ("--url", server.url, "--cache", cache)
        program = scene.start("-m", "tests.fault.ask_llm", corpus, scene.work, *given, start_new_session=True)
        wait_until(lambda: len(server.log) >= 150, what="150 answers", program=program)
        os.killpg(program.pid, signal.SIGKILL)
        killed = time.monotonic()
        program.communicate()
        wait_until(lambda: not scene.processes(), what="every process to end")
        in_flight = 32
        wait_until(lambda: server.in_flight == 0, what="the server to notice")
        before = server.answered
        on_disk = ResponseCache(cache)
        kept = len(on_disk)
        on_disk.close()
        ended = sorted(seen.ended for seen in server.log if seen.kind == "answered" and seen.ended <= killed)
        # Where answers stood in line, on a machine that ten others want, the last moment is the busiest one.
        moment = max(bisect_right(ended, since + 0.1) - number for number, since in enumerate(ended))

        finish(scene.start("-m", "tests.fault.ask_llm", corpus, scene.work, *given))
        sent_again = sum(count - 1 for count in server.answered.values())
        total = sum(before.values())
        print(f"{total} answered, at most {moment} of them in 0.1 s; {kept} on disk; {sent_again} sent again")
        assert sent_again <= in_flight + max(moment, in_flight)
        assert total - kept == sent_again
        assert max(server.answered.values()) <= 2

        server.forget()
        finish(scene.start("-m", "tests.fault.ask_llm", corpus, scene.work / "again", *given))
        assert server.requests == 0
    assert_complete(scene.work)
    assert_complete(scene.work / "again")


def test_a_worker_that_is_killed_is_replaced_and_the_output_is_the_same(scene, corpus, tmp_path):
    with MisbehavingServer(delay=lognormal_s(0.03, 0.8), failing_share=0.1, kinds=("500", "cut", "html")) as server:
        program = scene.start(
            "-m", "tests.fault.ask_llm", corpus, scene.work, "--url", server.url, "--cache", scene.work / "cache"
        )
        for due in (60, 160):
            wait_until(lambda due=due: len(server.log) >= due, what=f"{due} requests", program=program)
            for worker in workers_of(program):
                worker.send_signal(signal.SIGKILL)
        finish(program)
        undisturbed = tmp_path / "undisturbed"
        run(corpus, undisturbed, url=server.url, stage_workers=3)
    assert_complete(scene.work)
    assert contents(scene.work) == contents(undisturbed)


def test_a_wrong_key_ends_the_run_within_ten_requests_and_the_right_one_continues_it(corpus, tmp_path):
    with MisbehavingServer(api_key="right") as server:
        with pytest.raises(MachineFailed, match=f"401 from {re.escape(server.url)} for the last 10 requests") as caught:
            run(corpus, tmp_path, url=server.url, api_key="sk-wrong-key")
        assert server.requests <= 10
        assert "sk-wrong-key" not in str(caught.value)
        assert ledger(tmp_path) == []
        result = run(corpus, tmp_path, url=server.url, api_key="right")
    assert result.quarantined == 0
    assert_complete(tmp_path)


def test_a_wrong_key_is_found_with_fewer_documents_than_ten(tmp_path):
    few = make_corpus(tmp_path / "raw", files=1, documents=3)
    with MisbehavingServer(api_key="right") as server, pytest.raises(MachineFailed, match=re.escape(server.url)):
        run(few, tmp_path, url=server.url, api_key="sk-wrong-key")
    assert ledger(tmp_path) == []


def test_a_request_that_always_fails_is_one_row_in_quarantine(corpus, tmp_path):
    def refuse(request):
        return 503 if "word7x5 " in prompt_of(request) else None

    with MisbehavingServer(refuse=refuse, delay=lambda _: 0.02) as server:
        result = run(corpus, tmp_path, url=server.url, max_retries=2, stage_workers=3)
        assert server.max_in_flight <= 30  # of 32, shared by three workers
    assert result.quarantined == 1
    (error,) = result.errors
    assert "got status 503 after 3 requests" in error.error
    assert_complete(tmp_path, without={(7, 5)})
    assert result.counts["llm"].counted["llm_answers"] == FILES * DOCUMENTS - 1


def test_max_total_cost_stops_cleanly_and_a_higher_one_continues(corpus, tmp_path):
    options = {"cache": tmp_path / "cache", "prices": {"m": (0.0, 1e6)}}  # an answer of three words costs 3
    total = 3 * FILES * DOCUMENTS
    with MisbehavingServer(delay=lambda _: 0.005) as server:
        # The most an answer can cost, 2048, is reserved while it is asked for.
        for limit in (total // 2 + 2048, total // 2 + 2048):
            with pytest.raises(SpendingLimitReached, match="run the same command with a higher limit to continue"):
                run(corpus, tmp_path, url=server.url, max_total_cost=limit, **options)
        spent = 3 * sum(server.answered.values())
        assert total // 2 - 6 <= spent <= total // 2 + 2048
        assert 0 < len(ledger(tmp_path)) < FILES
        run(corpus, tmp_path, url=server.url, max_total_cost=total + 2048, **options)
        assert max(server.answered.values()) == 1
    assert_complete(tmp_path)


def test_a_cache_on_a_full_disk_stops_the_run_in_words_and_room_continues_it(scene, mount, corpus):
    disk = mount(scene.work / "cache", "100k")
    with MisbehavingServer(answer=lambda request: prompt_of(request).upper() + " " * 2000) as server:
        given = (corpus, scene.work, "--url", server.url, "--cache", disk.path)
        _, said = finish(scene.start("-c", IMPATIENT, *given), expected=1)
        assert "MachineFailed" in said
        assert "responses.sqlite: database or disk is full" in said
        disk.make_room()
        finish(scene.start("-m", "tests.fault.ask_llm", *given))
    assert len(written(scene.work)) == FILES * DOCUMENTS
