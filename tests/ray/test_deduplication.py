"""Deduplication on a Ray cluster, as workflows and as stages: recall, verification, order, and kills in every phase.

The rest of what deduplication promises is tested on this machine: here the files are those that one process gives.
"""

import pyarrow.parquet as pq
import pytest
from tests.deduplication_forms import FORMS, deduplicate
from tests.fault.deduplicate import run
from tests.fault.processes import Scene, finish, wait_until
from tests.jsonl_files import contents, read_documents
from tests.near_duplicates import make_corpus, similarity
from tests.parity.executors import ray_actor_pool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.heavy,
    pytest.mark.xdist_group("ray"),
    pytest.mark.usefixtures("ray_cluster"),
]

LEDGER = "ledger.jsonl"
EXACT, FUZZY = (f"search/{kind}_deduplication" for kind in ("exact", "fuzzy"))
PHASES = {
    "exact-stage": [
        f"segment-1/{LEDGER}",
        f"{EXACT}/identify/segment-1/{LEDGER}",
        f"{EXACT}/identify/segment-2/{LEDGER}",
        f"segment-2/{LEDGER}",
    ],
    "fuzzy-stage": [
        f"segment-1/{LEDGER}",
        f"{FUZZY}/sketch/{LEDGER}",
        f"{FUZZY}/clusters",
        f"{FUZZY}/verify/segment-1/{LEDGER}",
        f"{FUZZY}/verify/segment-2/{LEDGER}",
        f"segment-2/{LEDGER}",
    ],
}
DEADLINE_S = 120


@pytest.fixture(scope="module")
def corpus():
    """Near-duplicates of known similarity, and copies."""
    made = make_corpus(num_documents=120)
    made.documents |= {f"{key}-copy": words for key, words in list(made.documents.items())[:20]}
    return made


@pytest.fixture(scope="module")
def source(corpus, tmp_path_factory):
    return corpus.write(tmp_path_factory.mktemp("corpus") / "in", num_files=3, order=1)


@pytest.fixture
def executor(ray_cluster):
    """One for all runs of a test, kept ready between them; afterwards others may have the cluster."""
    with ray_actor_pool().kept_ready() as ready:
        yield ready


@pytest.mark.parametrize("kind", ["exact", "fuzzy"])
@pytest.mark.parametrize("form", FORMS)
def test_all_duplicates_are_found_and_nothing_else_in_any_order(executor, corpus, source, tmp_path, form, kind):
    here, there, shuffled = (tmp_path / name for name in ("here", "there", "shuffled"))
    corpus.write(tmp_path / "in", num_files=4, order=9)
    deduplicate(form, kind, source, here, keep="longest")
    deduplicate(form, kind, source, there, keep="longest", executor=executor)
    deduplicate(form, kind, tmp_path / "in", shuffled, keep="longest", executor=executor)
    rows = pq.read_table(there / "duplicates.parquet").to_pylist()
    kept = {document["id"] for document in read_documents(there / "deduplicated")}

    assert contents(there) == contents(here)
    assert {document["id"] for document in read_documents(shuffled / "deduplicated")} == kept
    assert kept == set(corpus.documents) - {row["id"] for row in rows}
    least = 1 if kind == "exact" else 0.8
    for row in rows:
        exact = similarity(corpus.documents[row["id"]], corpus.documents[row["kept_id"]])
        assert row["similarity"] == pytest.approx(exact, abs=1e-9)
        assert row["similarity"] >= least
        assert row["kept_id"] in kept
    copies = {(key.removesuffix("-copy"), key) for key in corpus.documents if key.endswith("-copy")}
    above = {pair for pair, value in corpus.pairs.items() if value >= 0.82 and kind == "fuzzy"} | copies
    assert len(above) >= (40 if kind == "fuzzy" else 20)
    assert not [pair for pair in above if kept.issuperset(pair)]


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", PHASES)
def test_a_driver_killed_in_one_phase_after_another_changes_nothing(ray_cluster, monkeypatch, source, tmp_path, kind):
    monkeypatch.setenv("RAY_ADDRESS", ray_cluster.address)
    run(kind, source, tmp_path / "undisturbed", workers=0)
    scene, out = Scene(tmp_path), tmp_path / "out"
    command = ("-m", "tests.fault.deduplicate", kind, source, out, "ray")
    try:
        for phase in PHASES[kind]:
            mark = out / ".gristmill" / kind / phase
            program = scene.start(*command)
            assert wait_until(
                lambda mark=mark: mark.exists() and mark.stat().st_size > 0,
                what=phase,
                program=program,
                deadline_s=DEADLINE_S,
            ), program.communicate()
            program.kill()
            program.communicate()
        finish(scene.start(*command), deadline_s=DEADLINE_S)
    finally:
        scene.close()

    assert contents(out) == contents(tmp_path / "undisturbed")
