"""Semantic deduplication removes what is close to a kept document, and nothing else."""

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests import deduplication_forms
from tests.deduplication_forms import FORMS
from tests.jsonl_files import contents

from gristmill.backends.local import LocalExecutor
from gristmill.deduplication.semantic_deduplication import _sample
from gristmill.errors import ConfigError, ResumeRefused, StageBroken
from gristmill.kernels.kmeans import assign, find_similar, fit, normalize
from gristmill.stages.deduplication.semantic import RankingStrategy

DIMENSIONS = 16


@pytest.fixture
def corpus(tmp_path):
    """Twelve directions far apart; of every third document there is a copy that is a little off."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(DIMENSIONS, DIMENSIONS)))[0][:12]
    rows = []
    for number in range(120):
        vector = directions[number % 12] + rng.normal(size=DIMENSIONS) * 0.15
        rows.append((f"{number:03d}", vector))
        if number % 3 == 0:
            rows.append((f"{number:03d}-copy", vector * 3 + rng.normal(size=DIMENSIONS) * 0.003))
    (tmp_path / "in").mkdir()
    for part in range(3):
        own = rows[part::3]
        vectors = pa.array([vector.tolist() for _, vector in own], pa.list_(pa.float32()))
        keys = [key for key, _ in own]
        is_copy = [float(key.endswith("copy")) for key in keys]
        table = pa.table({"id": keys, "text": keys, "embeddings": vectors, "is_copy": is_copy})
        pq.write_table(table, tmp_path / "in" / f"{part}.parquet")
    return tmp_path / "in"


@pytest.fixture(params=FORMS)
def deduplicate(request):
    return partial(deduplication_forms.deduplicate, request.param, "semantic", n_clusters=12, eps=0.01)


def workflow(corpus, out, **options):
    given = {"n_clusters": 12, "eps": 0.01, **options}
    return deduplication_forms.deduplicate("workflow", "semantic", corpus, out, **given)


def test_of_each_close_pair_one_is_removed(deduplicate, corpus, tmp_path):
    result = deduplicate(corpus, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "duplicates.parquet").to_pylist()

    assert result.metadata["num_duplicates"] == 40
    assert result.metadata["num_kept"] == 120
    assert all(row["id"].removesuffix("-copy") == row["kept_id"].removesuffix("-copy") for row in rows)
    assert all(0.99 <= row["similarity"] <= 1.0001 for row in rows)
    kept = pq.read_table(tmp_path / "out" / "deduplicated").column("id").to_pylist()
    assert len({key.removesuffix("-copy") for key in kept}) == len(kept) == 120


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 8])
def test_workers_do_not_change_a_byte(deduplicate, corpus, tmp_path, workers):
    deduplicate(corpus, tmp_path / "here")
    deduplicate(corpus, tmp_path / "out", executor=LocalExecutor(num_workers=workers))

    assert contents(tmp_path / "here")
    assert contents(tmp_path / "out") == contents(tmp_path / "here")


def test_what_is_written_is_written_as_asked(corpus, tmp_path):
    workflow(corpus, tmp_path / "out", write_kwargs={"compression": "gzip"})
    [file, *_] = sorted((tmp_path / "out" / "deduplicated").glob("*.parquet"))

    assert pq.read_metadata(file).row_group(0).column(0).compression == "GZIP"


@pytest.mark.parametrize("verbose", [False, True])
def test_it_speaks_while_it_runs_unless_told_not_to(corpus, tmp_path, capfd, verbose):
    workflow(corpus, tmp_path / "out", verbose=verbose)

    assert bool(capfd.readouterr().err) == verbose


def test_a_dataset_of_embeddings_alone_needs_no_text(deduplicate, corpus, tmp_path):
    (tmp_path / "bare").mkdir()
    for file in corpus.iterdir():
        pq.write_table(pq.read_table(file).drop_columns(["text"]), tmp_path / "bare" / file.name)
    assert deduplicate(tmp_path / "bare", tmp_path / "out").metadata["num_duplicates"] == 40


def test_a_wider_eps_removes_more(deduplicate, corpus, tmp_path):
    close = deduplicate(corpus, tmp_path / "close").metadata["num_duplicates"]
    assert deduplicate(corpus, tmp_path / "wide", eps=0.3).metadata["num_duplicates"] > close


def test_the_choice_of_whom_to_keep_decides_who_stays(deduplicate, corpus, tmp_path):
    deduplicate(corpus, tmp_path / "hard", which_to_keep="hard")
    deduplicate(corpus, tmp_path / "easy", which_to_keep="easy")
    hard, easy = (pq.read_table(tmp_path / name / "duplicates.parquet").column("id") for name in ("hard", "easy"))
    assert hard.to_pylist() != easy.to_pylist()


@pytest.mark.parametrize(("ascending", "copies_lost"), [(True, 40), (False, 0)])
def test_columns_can_decide_who_stays(deduplicate, corpus, tmp_path, ascending, copies_lost):
    ranking = RankingStrategy.metadata_based(["is_copy"], ascending=ascending)
    deduplicate(corpus, tmp_path / "out", ranking_strategy=ranking)
    lost = pq.read_table(tmp_path / "out" / "duplicates.parquet").column("id").to_pylist()
    assert sum(key.endswith("copy") for key in lost) == copies_lost


def test_the_same_call_gives_the_same_result(deduplicate, corpus, tmp_path):
    for name in ("a", "b"):
        deduplicate(corpus, tmp_path / name)
    tables = [pq.read_table(tmp_path / name / "duplicates.parquet") for name in ("a", "b")]
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("block", [1, 3, 64])
def test_blocks_do_not_change_who_loses_to_whom(block):
    vectors = normalize(np.random.default_rng(1).normal(size=(50, 3)).astype(np.float32))
    lost_to, cosine = find_similar(vectors, 0.9, block=block)
    kept = []
    for i, vector in enumerate(vectors):
        similar = [(float(vector @ vectors[j]), -j) for j in kept]
        best = max(similar, default=(-1.0, 0))
        if best[0] >= 0.9:
            assert cosine[i] == pytest.approx(best[0], abs=1e-6)
            assert lost_to[i] == -best[1]
        else:
            assert lost_to[i] == -1
            kept.append(i)
    assert 0 < len(kept) < 50


def test_k_means_finds_separate_groups():
    centres = normalize(np.eye(4, dtype=np.float32))
    noise = np.random.default_rng(2).normal(size=(200, 4)).astype(np.float32) * 0.05
    vectors = normalize(centres[np.arange(200) % 4] + noise)
    nearest, _ = assign(vectors, fit(vectors, 4, seed=0, max_iter=50, tol=1e-4))
    assert {len(set(nearest[group::4].tolist())) for group in range(4)} == {1}
    assert len(set(nearest[:4].tolist())) == 4


def test_fewer_different_vectors_than_clusters_is_no_problem():
    assert len(fit(np.ones((5, 2), np.float32) / 2**0.5, 3, seed=0, max_iter=5, tol=1e-4)) == 1


@pytest.mark.parametrize("options", [{"eps": 1.5}, {"which_to_keep": "best"}])
def test_a_mistake_is_named_before_anything_runs(deduplicate, tmp_path, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        deduplicate(tmp_path, tmp_path / "out", **options)


@pytest.mark.parametrize("options", [{"eps": None}, {"distance_metric": "l2"}])
def test_a_mistake_about_the_workflow_is_named_too(tmp_path, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        workflow(tmp_path, tmp_path / "out", **options)


def write_vectors(directory, name, vectors):
    """One file of documents: a vector each, or None."""
    directory.mkdir(exist_ok=True)
    column = pa.array(vectors, pa.list_(pa.float32()))
    keys = [f"{name}-{row}" for row in range(len(vectors))]
    pq.write_table(pa.table({"id": keys, "embeddings": column}), directory / f"{name}.parquet")


def kept_ids(out):
    return pq.read_table(out / "deduplicated").column("id").to_pylist()


def test_documents_without_an_embedding_stay_even_if_a_whole_file_has_none(deduplicate, tmp_path):
    write_vectors(tmp_path / "in", "a", [None, None])
    write_vectors(tmp_path / "in", "b", [[1.0, 0.0, 0.0], None, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    write_vectors(tmp_path / "in", "c", [])
    result = deduplicate(tmp_path / "in", tmp_path / "out", n_clusters=2)

    assert result.metadata["num_documents"] == 6
    assert kept_ids(tmp_path / "out") in (["a-0", "a-1", "b-0", "b-1", "b-3"], ["a-0", "a-1", "b-1", "b-2", "b-3"])


def test_without_any_embedding_everything_stays(deduplicate, tmp_path):
    write_vectors(tmp_path / "in", "a", [None, None])
    deduplicate(tmp_path / "in", tmp_path / "out")

    assert kept_ids(tmp_path / "out") == ["a-0", "a-1"]


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_an_embedding_that_is_not_finite_spoils_no_cluster(deduplicate, tmp_path, odd):
    vectors = [[1.0, 0.0], [1.0, 0.001], [0.0, 1.0], [0.001, 1.0]]
    write_vectors(tmp_path / "in", "a", [[odd, 1.0], *vectors, [1.0, odd]])
    result = deduplicate(tmp_path / "in", tmp_path / "out", n_clusters=2)

    assert result.metadata["num_duplicates"] == 2
    assert {"a-0", "a-5"} < set(kept_ids(tmp_path / "out"))


def test_embeddings_of_two_lengths_are_refused_wherever_they_are(deduplicate, tmp_path):
    vectors = [[1.0, float(row), 0.0] for row in range(200)]
    write_vectors(tmp_path / "in", "a", [*vectors, [1.0, 2.0], [1.0, 2.0, 3.0, 4.0]])

    with pytest.raises(StageBroken, match="expected embeddings of one length"):
        deduplicate(tmp_path / "in", tmp_path / "out", n_clusters=2)


def test_other_clusters_are_not_those_of_the_run_before(deduplicate, corpus, tmp_path):
    deduplicate(corpus, tmp_path / "out")

    with pytest.raises(ResumeRefused, match="random_state"):
        deduplicate(corpus, tmp_path / "out", random_state=7)


def test_the_sample_counts_over_all_files(tmp_path):
    """Of files with one embedding each it is every n-th file, not one embedding of each."""
    files = []
    for number in range(10):
        table = pa.table({"vector": pa.array([[float(number), 1.0]], pa.large_list(pa.float32()))})
        files.append(str(tmp_path / f"{number}.arrow"))
        with pa.OSFile(files[-1], "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    assert _sample(files, 0.5)[:, 0].tolist() == [0, 2, 4, 6, 8]
    assert _sample(files, 0.1)[:, 0].tolist() == [0]
