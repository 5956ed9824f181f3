"""`kill -9` in each phase of a deduplication, then the same command: outputs as if nothing had happened."""

import json

import pytest
from tests.fault.deduplicate import KINDS, run
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents, write_documents
from tests.near_duplicates import make_corpus

from gristmill.testing.tiny_models import WORDS

pytestmark = [pytest.mark.fault, pytest.mark.slow]

DEADLINE_S = 200  # the first to need a kernel compiles it

# A file of each phase: once it is there, the program is killed.
PHASES = [
    ("exact", "exact/identify/segment-1/ledger.jsonl"),
    ("exact", "exact/identify/segment-2/ledger.jsonl"),
    ("exact", "exact/remove/ledger.jsonl"),
    ("exact", "../../out-index/*/run/ledger.jsonl"),
    ("fuzzy", "fuzzy/sketch-run/ledger.jsonl"),
    ("fuzzy", "fuzzy/clusters"),
    ("fuzzy", "fuzzy/verify-run/segment-1/ledger.jsonl"),
    ("fuzzy", "fuzzy/verify-run/segment-2/ledger.jsonl"),
    ("fuzzy", "fuzzy/remove/ledger.jsonl"),
    ("fuzzy", "../../out-index/*/run/ledger.jsonl"),
    ("semantic", "semantic/extract-run/ledger.jsonl"),
    ("semantic", "semantic/centroids-*.npy"),
    ("semantic", "semantic/pairs-run/segment-1/ledger.jsonl"),
    ("semantic", "semantic/pairs-run/segment-2/ledger.jsonl"),
    ("semantic", "semantic/remove/ledger.jsonl"),
    ("text-semantic", "text-semantic/extract-run/ledger.jsonl"),
    ("text-semantic", "text-semantic/remove/ledger.jsonl"),
    ("parts", "lines/identify/segment-1/ledger.jsonl"),
    ("parts", "lines/identify/segment-2/ledger.jsonl"),
    ("parts", "lines/remove/ledger.jsonl"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Near-duplicates for some, repeated lines and vectors for the others."""
    directory = make_corpus(num_documents=120).write(tmp_path_factory.mktemp("corpus") / "raw", num_files=12)
    for file in directory.iterdir():
        documents = [json.loads(line) for line in file.read_text().splitlines()]
        for row, document in enumerate(documents):
            document["text"] += f"\nA footer of few, number {row}"
            document["words"] = " ".join(WORDS[(31 * row + 7 * n) % len(WORDS)] for n in range(6))
            document["embeddings"] = [float(row % 7), float(row % 5), 1.0]
        write_documents(file, documents)
    return directory


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("undisturbed")
    for kind in KINDS:
        run(kind, corpus, work / kind, workers=0)
    return {kind: contents(work / kind) for kind in KINDS}


@pytest.mark.parametrize(("kind", "phase"), PHASES)
def test_a_killed_deduplication_continues(scene, corpus, undisturbed, kind, phase):
    command = ("-m", "tests.fault.deduplicate", kind, corpus, scene.work / "out")
    program = scene.start(*command)

    def has_begun():
        return any(mark.stat().st_size > 0 for mark in (scene.work / "out" / ".gristmill").glob(phase))

    reached = wait_until(has_begun, what=phase, program=program, deadline_s=DEADLINE_S)
    program.kill()
    program.communicate()
    finish(scene.start(*command), deadline_s=DEADLINE_S)

    assert reached
    assert contents(scene.work / "out") == undisturbed[kind]
    assert undisturbed[kind]
