"""Fuzzy deduplication finds what is similar, removes nothing else, and says why each document went."""

import random
from functools import partial

import pyarrow.parquet as pq
import pytest
from tests import deduplication_forms
from tests.deduplication_forms import FORMS
from tests.jsonl_files import contents, read_documents, write_documents
from tests.near_duplicates import make_corpus, similarity

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=FORMS)
def deduplicate(request):
    return partial(deduplication_forms.deduplicate, request.param, "fuzzy")


def survivors(out):
    return sorted(document["id"] for document in read_documents(out / "deduplicated"))


def removals(out):
    return pq.read_table(out / "duplicates.parquet").to_pylist()


@pytest.fixture(scope="module")
def corpus():
    return make_corpus()


@pytest.fixture(scope="module")
def finished(deduplicate, corpus, tmp_path_factory):
    work = tmp_path_factory.mktemp("fuzzy")
    corpus.write(work / "in")
    deduplicate(work / "in", work / "out")
    return work


def test_nearly_every_pair_above_the_threshold_is_found(corpus, finished):
    kept = set(survivors(finished / "out"))
    above = [pair for pair, value in corpus.pairs.items() if value >= 0.82]
    found = [pair for pair in above if not kept.issuperset(pair)]
    assert len(above) > 60
    assert len(found) / len(above) >= 0.995


def test_no_pair_below_the_threshold_loses_a_document(corpus, finished):
    kept = set(survivors(finished / "out"))
    below = [pair for pair, value in corpus.pairs.items() if value < 0.78]
    assert len(below) > 30
    assert all(kept.issuperset(pair) for pair in below)


def test_nothing_without_a_partner_is_removed(corpus, finished):
    partnered = {key for pair in corpus.pairs for key in pair}
    assert {row["id"] for row in removals(finished / "out")} <= partnered
    assert set(corpus.documents) - partnered <= set(survivors(finished / "out"))


def test_each_removal_names_a_survivor_with_the_exact_similarity(corpus, finished):
    kept = set(survivors(finished / "out"))
    rows = removals(finished / "out")
    assert rows
    for row in rows:
        assert row["kept_id"] in kept
        assert row["id"] not in kept
        exact = similarity(corpus.documents[row["id"]], corpus.documents[row["kept_id"]])
        assert row["similarity"] == pytest.approx(exact, abs=1e-9)
        assert row["similarity"] >= 0.8
        assert 1 <= row["bands_shared"] <= 22


def test_the_longest_stays_unless_told_otherwise(corpus, finished):
    lengths = {key: len(" ".join(words)) for key, words in corpus.documents.items()}
    assert all(lengths[row["kept_id"]] >= lengths[row["id"]] for row in removals(finished / "out"))


@pytest.mark.parametrize(("num_files", "order"), [(1, 5), (7, 6)])
def test_the_survivors_do_not_depend_on_order_and_shards(deduplicate, corpus, finished, tmp_path, num_files, order):
    corpus.write(tmp_path / "in", num_files=num_files, order=order)
    deduplicate(tmp_path / "in", tmp_path / "out")

    assert survivors(tmp_path / "out") == survivors(finished / "out")
    pairs = {(row["id"], row["kept_id"], row["similarity"]) for row in removals(tmp_path / "out")}
    assert pairs == {(row["id"], row["kept_id"], row["similarity"]) for row in removals(finished / "out")}


@pytest.mark.parametrize("workers", [1, 8])
def test_workers_do_not_change_a_byte(deduplicate, finished, tmp_path, workers):
    deduplicate(finished / "in", tmp_path / "out", executor=LocalExecutor(num_workers=workers))
    assert contents(tmp_path / "out") == contents(finished / "out")


def make_templates(directory):
    """200 pages of one template: half of each is boilerplate, half is its own."""
    rng = random.Random(3)
    boilerplate = [f"b{i}" for i in range(80)]
    rows = []
    for page in range(200):
        own = [f"w{rng.randrange(10**6)}" for _ in range(50)]
        rows.append({"id": f"{page:03d}", "text": " ".join(boilerplate[:40] + own + boilerplate[40:])})
    write_documents(directory / "0.jsonl", rows)


def test_different_pages_of_one_template_are_all_kept_and_would_not_be_without_verification(deduplicate, tmp_path):
    make_templates(tmp_path / "in")
    deduplicate(tmp_path / "in", tmp_path / "verified")
    unverified = deduplicate(tmp_path / "in", tmp_path / "believed", verify=False)

    assert len(survivors(tmp_path / "verified")) == 200
    assert unverified.metadata["num_duplicates"] > 150


def test_short_empty_and_missing_texts_follow_the_rule(deduplicate, tmp_path):
    texts = ["", "", None, None, "...", "!!!", "too short", "Too short!", "also short", "one two three four five six"]
    write_documents(tmp_path / "in" / "0.jsonl", [{"id": str(i), "text": text} for i, text in enumerate(texts)])
    deduplicate(tmp_path / "in", tmp_path / "out")

    # Without words: kept. Fewer words than a shingle: a duplicate of its equals only.
    assert [(row["id"], row["kept_id"]) for row in removals(tmp_path / "out")] == [("6", "7")]


def test_copies_follow_their_original_when_that_loses_to_another(deduplicate, tmp_path):
    rng = random.Random(1)
    words = [f"w{rng.randrange(1000)}" for _ in range(150)]
    changed = [*words[:-2], "x", "y"]
    rows = [
        {"id": "longest", "text": " ".join([*words, "more", "at", "the", "end"])},
        {"id": "original", "text": " ".join(changed)},
        {"id": "copy", "text": " ".join(changed).upper()},
        {"id": "other", "text": " ".join(f"o{i}" for i in range(99))},
    ]
    write_documents(tmp_path / "in" / "0.jsonl", rows)
    deduplicate(tmp_path / "in", tmp_path / "out")

    assert survivors(tmp_path / "out") == ["longest", "other"]
    assert {row["kept_id"] for row in removals(tmp_path / "out")} == {"longest"}
    assert len({row["similarity"] for row in removals(tmp_path / "out")}) == 1


def test_ones_own_bands_are_honoured(deduplicate, finished, tmp_path):
    result = deduplicate(finished / "in", tmp_path / "out", num_bands=14, minhashes_per_band=8)
    assert (result.metadata["num_bands"], result.metadata["minhashes_per_band"]) == (14, 8)


def test_character_shingles(deduplicate, corpus, finished, tmp_path):
    deduplicate(finished / "in", tmp_path / "out", shingle="char:24")
    partnered = {key for pair in corpus.pairs for key in pair}
    assert removals(tmp_path / "out")
    assert {row["id"] for row in removals(tmp_path / "out")} <= partnered


def test_the_curve_is_logged_before_the_run(deduplicate, finished, tmp_path, caplog):
    caplog.set_level("INFO", "gristmill")
    deduplicate(finished / "in", tmp_path / "out")
    assert "22 bands of 5" in caplog.text


def test_by_containment_a_part_loses_to_the_whole(deduplicate, tmp_path):
    words = [f"w{i}" for i in range(100)]
    whole = {"id": "whole", "text": " ".join(words)}
    part = {"id": "part", "text": " ".join(words[:70])}  # 66 of 96 shingles
    write_documents(tmp_path / "in" / "a.jsonl", [part, whole])
    bands = {"num_bands": 200, "minhashes_per_band": 2}
    deduplicate(tmp_path / "in", tmp_path / "jaccard", **bands)
    deduplicate(tmp_path / "in", tmp_path / "containment", similarity="containment", **bands)

    assert removals(tmp_path / "jaccard") == []
    assert [(row["id"], row["kept_id"], row["similarity"]) for row in removals(tmp_path / "containment")] == [
        ("part", "whole", 1.0)
    ]


def test_the_second_dataset_loses_to_the_index_what_it_would_lose_to_the_first(deduplicate, corpus, tmp_path):
    parts = {"a": [], "b": []}
    for number, (key, words) in enumerate(corpus.documents.items()):
        parts["a" if key.endswith("near") or number % 5 == 0 else "b"].append({"id": key, "text": " ".join(words)})
    for part, rows in parts.items():
        write_documents(tmp_path / part / f"{part}.jsonl", rows)
    index = {"index": str(tmp_path / "index"), "keep": "first"}
    deduplicate(tmp_path / "a", tmp_path / "out_a", **index)
    deduplicate(tmp_path / "b", tmp_path / "out_b", **index)
    deduplicate([tmp_path / "a", tmp_path / "b"], tmp_path / "both", keep="first")

    ids_of_b = {row["id"] for row in parts["b"]}
    together = {(row["id"], row["kept_id"]) for row in removals(tmp_path / "both") if row["id"] in ids_of_b}
    assert len(together) > 50
    assert {(row["id"], row["kept_id"]) for row in removals(tmp_path / "out_b")} == together


def test_an_index_made_with_other_settings_is_refused(deduplicate, finished, tmp_path):
    deduplicate(finished / "in", tmp_path / "a", index=str(tmp_path / "index"))
    with pytest.raises(ConfigError, match=r"shingle 'word:5'; got shingle 'word:7'"):
        deduplicate(finished / "in", tmp_path / "b", index=str(tmp_path / "index"), shingle="word:7")
    with pytest.raises(ConfigError, match="expected an index"):
        deduplicate(finished / "in", tmp_path / "b", consult=[str(tmp_path / "nowhere")])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jaccard_threshold": 80}, r"expected jaccard_threshold in \(0, 1\]; got 80"),
        ({"shingle": "words:5"}, "expected shingle to read 'word:5' or 'char:24'; got 'words:5'"),
        ({"similarity": "jacard"}, "expected similarity to be one of .*; got 'jacard'; did you mean 'jaccard'"),
        ({"num_bands": 0}, "expected num_bands ≥ 1; got 0"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(deduplicate, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        deduplicate(tmp_path, tmp_path / "out", **options)


def test_an_index_needs_documents_that_stay(tmp_path):
    with pytest.raises(ConfigError, match="expected perform_removal with index"):
        deduplication_forms.deduplicate("workflow", "fuzzy", tmp_path, "out", index="x", perform_removal=False)
