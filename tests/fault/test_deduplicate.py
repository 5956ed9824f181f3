"""`kill -9` in each phase of a deduplication, then the same command: outputs as if nothing had happened."""

import json

import pytest
from tests.fault.deduplicate import KINDS, STAGES, run
from tests.fault.processes import finish, wait_until
from tests.jsonl_files import contents, write_documents
from tests.near_duplicates import make_corpus

from gristmill.testing.tiny_models import WORDS

pytestmark = [pytest.mark.fault, pytest.mark.slow]

DEADLINE_S = 200  # the first to need a kernel compiles it

# A file of each phase: once it is there, the program is killed. A workflow does what a stage does, without putting its
# documents down: most phases are the same.
EXACT, FUZZY, SEMANTIC = (f"search/{kind}_deduplication" for kind in ("exact", "fuzzy", "semantic"))
LEDGER = "ledger.jsonl"
PHASES = {
    "exact": [f"exact/{EXACT}/identify/segment-1/{LEDGER}", f"exact/segment-1/{LEDGER}"],
    "exact-stage": [
        f"exact-stage/segment-1/{LEDGER}",
        f"exact-stage/{EXACT}/identify/segment-1/{LEDGER}",
        f"exact-stage/{EXACT}/identify/segment-2/{LEDGER}",
        f"exact-stage/segment-2/{LEDGER}",
        f"../../out-index/*/run/{LEDGER}",
    ],
    "fuzzy": [f"fuzzy/{FUZZY}/sketch/{LEDGER}", f"fuzzy/segment-1/{LEDGER}", f"../../out-index/*/run/{LEDGER}"],
    "fuzzy-stage": [
        f"fuzzy-stage/segment-1/{LEDGER}",
        f"fuzzy-stage/{FUZZY}/sketch/{LEDGER}",
        f"fuzzy-stage/{FUZZY}/clusters",
        f"fuzzy-stage/{FUZZY}/verify/segment-1/{LEDGER}",
        f"fuzzy-stage/{FUZZY}/verify/segment-2/{LEDGER}",
        f"fuzzy-stage/segment-2/{LEDGER}",
    ],
    "semantic": [f"semantic/{SEMANTIC}/extract/{LEDGER}"],
    "semantic-stage": [
        f"semantic-stage/{SEMANTIC}/centroids-*.npy",
        f"semantic-stage/{SEMANTIC}/pairs/segment-1/{LEDGER}",
        f"semantic-stage/{SEMANTIC}/pairs/segment-2/{LEDGER}",
        f"semantic-stage/segment-2/{LEDGER}",
    ],
    "text-semantic": [f"text-semantic/{SEMANTIC}/extract/{LEDGER}", f"text-semantic/segment-1/{LEDGER}"],
    "parts": [
        f"lines/search/part_deduplication/identify/segment-1/{LEDGER}",
        f"lines/search/part_deduplication/identify/segment-2/{LEDGER}",
        f"lines/segment-1/{LEDGER}",
    ],
}


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
    found = {kind: contents(work / kind) for kind in KINDS}
    return found | {kind: found[kind.removesuffix("-stage")] for kind in STAGES}


@pytest.mark.parametrize("kind", PHASES)
def test_a_deduplication_killed_in_one_phase_after_another_continues(scene, corpus, undisturbed, kind):
    command = ("-m", "tests.fault.deduplicate", kind, corpus, scene.work / "out")

    def has_begun(phase):
        return any(mark.stat().st_size > 0 for mark in (scene.work / "out" / ".gristmill").glob(phase))

    kills = 0
    for phase in PHASES[kind]:
        if has_begun(phase):  # the phase before it was over before the program was
            continue
        program = scene.start(*command)
        assert wait_until(lambda phase=phase: has_begun(phase), what=phase, program=program, deadline_s=DEADLINE_S)
        program.kill()
        program.communicate()
        kills += 1
    finish(scene.start(*command), deadline_s=DEADLINE_S)

    assert kills > len(PHASES[kind]) // 2
    assert contents(scene.work / "out") == undisturbed[kind]
    assert undisturbed[kind]
