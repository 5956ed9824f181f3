"""`kill -9` in each phase of a deduplication, then the same command: outputs as if nothing had happened."""

import pytest
from tests.fault.deduplicate import run
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents
from tests.near_duplicates import make_corpus

pytestmark = [pytest.mark.fault, pytest.mark.slow]

DEADLINE_S = 200  # the first to need a kernel compiles it

# A file of each phase: once it is there, the program is killed.
PHASES = [
    ("exact", "exact/identify/segment-1/ledger.jsonl"),
    ("exact", "exact/identify/segment-2/ledger.jsonl"),
    ("exact", "exact/remove/ledger.jsonl"),
    ("fuzzy", "fuzzy/sketch-run/ledger.jsonl"),
    ("fuzzy", "fuzzy/clusters"),
    ("fuzzy", "fuzzy/verify-run/segment-1/ledger.jsonl"),
    ("fuzzy", "fuzzy/verify-run/segment-2/ledger.jsonl"),
    ("fuzzy", "fuzzy/remove/ledger.jsonl"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(num_documents=120).write(tmp_path_factory.mktemp("corpus") / "raw", num_files=12)


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed")
    for kind in ("exact", "fuzzy"):
        run(kind, corpus, work / kind, workers=0)
    return {kind: contents(work / kind) for kind in ("exact", "fuzzy")}


@pytest.mark.parametrize(("kind", "phase"), PHASES)
def test_a_killed_deduplication_continues(scene, corpus, undisturbed, kind, phase):
    command = ("-m", "tests.fault.deduplicate", kind, corpus, scene.work / "out")
    program = scene.start(*command)
    mark = scene.work / "out" / ".gristmill" / phase
    reached = wait_until(
        lambda: mark.exists() and mark.stat().st_size > 0, what=str(mark), program=program, deadline_s=DEADLINE_S
    )
    program.kill()
    program.communicate()
    finish(scene.start(*command), deadline_s=DEADLINE_S)

    assert reached
    assert contents(scene.work / "out") == undisturbed[kind]
    assert undisturbed[kind]
