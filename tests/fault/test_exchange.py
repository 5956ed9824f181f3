"""`kill -9` on either side of an exchange, then the same command: the output is as if nothing had happened."""

import json

import pytest
from tests.fault.exchange_rows import run
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents, write_documents

pytestmark = [pytest.mark.fault, pytest.mark.slow]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    source = tmp_path_factory.mktemp("corpus") / "raw"
    for file in range(20):
        documents = [{"id": f"{file}-{row}", "text": f"text {row * row}"} for row in range(25)]
        write_documents(source / f"{file:02d}.jsonl", documents)
    return source


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed")
    run(corpus, work)
    return contents(work / "out")


@pytest.mark.parametrize(("segment", "lines"), [(1, 1), (1, 12), (2, 1), (2, 15)])
def test_a_run_killed_in_a_segment_continues_there(scene, corpus, undisturbed, segment, lines):
    ledger = scene.work / "killed" / "run" / f"segment-{segment}" / "ledger.jsonl"
    program = scene.start("-m", "tests.fault.exchange_rows", corpus, scene.work / "killed", hold=(lines, ledger))
    reached = wait_until(
        lambda: ledger.exists() and ledger.read_bytes().count(b"\n") >= lines, what=f"{ledger.name}", program=program
    )
    program.kill()
    program.communicate()
    out, _ = finish(scene.start("-m", "tests.fault.exchange_rows", corpus, scene.work / "killed"))

    assert reached
    report = json.loads(out)
    assert report["balanced"]
    assert report["resumed"]
    assert (report["read"], report["written"]) == (500, 500)
    assert contents(scene.work / "killed" / "out") == undisturbed
