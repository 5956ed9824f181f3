"""`kill -9` before and behind a barrier, then the same command: buckets and edges are as if nothing had happened."""

import json

import pytest
from tests.fault.bucket_rows import run
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents, write_documents

pytestmark = [pytest.mark.fault, pytest.mark.slow]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    source = tmp_path_factory.mktemp("corpus") / "raw"
    for file in range(20):
        documents = [{"id": f"{file}-{row}", "score": (file * 25 + row) * 61 % 503, "text": "x"} for row in range(25)]
        write_documents(source / f"{file:02d}.jsonl", documents)
    return source


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed")
    run(corpus, work)
    return contents(work / "out"), (work / "run" / "buckets.json").read_bytes()


@pytest.mark.parametrize(("segment", "lines"), [(1, 12), (2, 1), (2, 15)])
def test_a_run_killed_beside_a_barrier_continues_with_the_same_edges(scene, corpus, undisturbed, segment, lines):
    work = scene.work / "killed"
    ledger = work / "run" / f"segment-{segment}" / "ledger.jsonl"
    program = scene.start("-m", "tests.fault.bucket_rows", corpus, work, hold=(lines, ledger))
    reached = wait_until(
        lambda: ledger.exists() and ledger.read_bytes().count(b"\n") >= lines, what=f"{ledger.name}", program=program
    )
    program.kill()
    program.communicate()
    out, _ = finish(scene.start("-m", "tests.fault.bucket_rows", corpus, work))

    assert reached
    report = json.loads(out)
    assert report["balanced"]
    assert report["resumed"]
    assert (report["read"], report["written"]) == (500, 500)
    assert (contents(work / "out"), (work / "run" / "buckets.json").read_bytes()) == undisturbed
