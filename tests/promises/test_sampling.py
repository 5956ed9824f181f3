"""Sampling by level: copies with ids of their own, the same choice everywhere, and nothing left out in silence."""

import itertools
from collections import Counter

import pyarrow as pa
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageBroken, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.function_decorators import processing_stage
from gristmill.stages.mixing import SampleByBucket
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.modules import AddId
from gristmill.stages.text.quality import BucketScores
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
LEVELS = ("low", "medium", "high", None)


@pytest.fixture
def corpus(tmp_path):
    for file in range(4):
        documents = [{"id": f"{file}-{row}", "quality_level": LEVELS[row % 4], "odd": 1.50} for row in range(1000)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)
    return tmp_path / "in"


def sampled(source, out, *stages, executor=HERE, **options):
    pipeline = Pipeline("sample", stages=[JsonlReader(str(source)), *stages, JsonlWriter(str(out))])
    return pipeline.run(executor, quiet=True, **options)


def batch(levels, ids=None):
    ids = [f"d{n}" for n in range(len(levels))] if ids is None else ids
    return DocumentBatch("x", pa.table({"id": ids, "quality_level": pa.array(levels, pa.string())}))


def ids_of(made):
    return made.column("id").to_pylist()


def test_weight_2_5_gives_two_or_three_copies_with_ids_of_their_own(corpus, tmp_path):
    result = sampled(corpus, tmp_path / "out", SampleByBucket({"high": 2.5}))
    documents = read_documents(tmp_path / "out")
    times = Counter(document["id"].partition("#")[0] for document in documents if document["quality_level"] == "high")

    assert set(times.values()) == {2, 3}
    assert sum(times.values()) == pytest.approx(2500, rel=0.03)
    assert len({document["id"] for document in documents}) == len(documents)
    assert {document["id"].partition("#")[2] for document in documents} == {"", "1", "2"}
    assert result.created == len(documents) - 4000
    assert result.read + result.created == result.written
    assert result.dropped_total == 0


def test_the_first_copy_is_the_document_as_it_was(corpus, tmp_path):
    sampled(corpus, tmp_path / "out", SampleByBucket({"high": 2}))
    lines = [line for content in contents(tmp_path / "out").values() for line in content.splitlines()]
    before = [line for content in contents(corpus).values() for line in content.splitlines()]

    assert [line for line in lines if b"#" not in line] == before
    assert lines[2:4] == [before[2], b'{"id":"0-2#1","quality_level":"high","odd":1.5}']


def test_copies_of_documents_whose_id_and_level_were_added_have_them_too(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"score": n, "text": "x"} for n in range(4)])
    stages = [AddId("id"), BucketScores("score", buckets=2, levels={"low": (0, 0), "high": (1, 1)})]
    sampled(tmp_path / "in", tmp_path / "out", *stages, SampleByBucket({"high": 2, "low": 0}))

    assert [document["id"] for document in read_documents(tmp_path / "out")] == ["a_2", "a_2#1", "a_3", "a_3#1"]
    assert {document["quality_level"] for document in read_documents(tmp_path / "out")} == {"high"}


def test_what_is_left_out_is_dropped_with_its_level_and_can_be_kept(corpus, tmp_path):
    weights = {"low": 0, "medium": 0.25}
    stage = SampleByBucket(weights)
    result = sampled(corpus, tmp_path / "out", stage, rejects_path=str(tmp_path / "rejects"))
    dropped = result.counts["sample_by_bucket"].dropped
    rejects = read_documents(tmp_path / "rejects")

    assert dropped["low_sampled_out"] == 1000
    assert dropped["medium_sampled_out"] == pytest.approx(750, rel=0.06)
    assert set(dropped) == {"low_sampled_out", "medium_sampled_out"}
    assert result.read == result.written + result.dropped_total == 4000
    assert len(rejects) == result.dropped_total


def test_a_level_without_a_weight_and_a_document_without_a_level_are_kept_once(corpus, tmp_path):
    result = sampled(corpus, tmp_path / "out", SampleByBucket({"high": 0}))

    assert result.counts["sample_by_bucket"].dropped == {"high_sampled_out": 1000}
    assert Counter(document["quality_level"] for document in read_documents(tmp_path / "out")) == {
        "low": 1000,
        "medium": 1000,
        None: 1000,
    }


@pytest.mark.parametrize("workers", [1, 3])
def test_the_choice_does_not_depend_on_workers(corpus, tmp_path, workers):
    stage = SampleByBucket({"high": 3.3, "low": 0.4})
    sampled(corpus, tmp_path / "alone", stage)
    sampled(corpus, tmp_path / "several", stage, executor=LocalExecutor(num_workers=workers))

    assert contents(tmp_path / "alone") == contents(tmp_path / "several")


def test_the_choice_depends_on_the_id_and_the_seed_alone():
    one = batch(["low"] * 100)
    shuffled = batch(["low"] * 100, ids=ids_of(one)[::-1])

    assert set(ids_of(SampleByBucket({"low": 0.5})(one))) == set(ids_of(SampleByBucket({"low": 0.5})(shuffled)))
    assert ids_of(SampleByBucket({"low": 0.5})(one)) != ids_of(SampleByBucket({"low": 0.5}, seed=43)(one))
    # Stored mixtures stay the same in later releases.
    assert ids_of(SampleByBucket({"low": 0.1})(one))[:4] == ["d10", "d14", "d17", "d28"]


def test_a_higher_weight_never_takes_a_document_out():
    many = batch(["low"] * 500)
    kept = [set(ids_of(SampleByBucket({"low": weight})(many))) for weight in (0.1, 0.3, 0.9, 1, 1.2, 2.7)]

    assert all(fewer <= more for fewer, more in itertools.pairwise(kept))


def test_buckets_are_names_too():
    made = DocumentBatch("x", pa.table({"id": ["a", "b"], "bucketed_results": [3, 19]}))

    assert ids_of(SampleByBucket({"19": 2, "3": 0}, field="bucketed_results")(made)) == ["b", "b#1"]


def test_an_empty_batch_stays_empty():
    assert SampleByBucket({"high": 2.5})(batch([])).num_items == 0


def test_ids_are_needed_only_where_something_is_chosen_or_copied():
    whole = DocumentBatch("x", pa.table({"quality_level": ["high", "low"]}))
    stage = SampleByBucket({"low": 0})

    assert stage.inputs()[1] == ["quality_level"]
    assert stage(whole).num_items == 1


def test_a_document_without_an_id_goes_to_quarantine_and_not_into_a_random_choice(tmp_path):
    documents = [{"id": None if n % 100 == 0 else f"{n}", "quality_level": "low"} for n in range(1000)]
    write_documents(tmp_path / "in" / "a.jsonl", documents)
    result = sampled(tmp_path / "in", tmp_path / "out", SampleByBucket({"low": 2}))

    assert (result.quarantined, result.created, result.written) == (10, 990, 1980)
    assert result.read + result.created == result.written + result.quarantined


def test_ids_that_are_numbers_can_be_chosen_by_but_not_copied():
    numbers = DocumentBatch("x", pa.table({"id": list(range(100)), "quality_level": ["low"] * 100}))

    assert 30 < SampleByBucket({"low": 0.5})(numbers).num_items < 70
    with pytest.raises(StageError, match=r"expected ids that are text in column 'id'.*got int64\. AddId gives"):
        SampleByBucket({"low": 2})(numbers)


def test_without_any_id_the_run_stops_in_words(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": None, "quality_level": "low"}] * 500)

    with pytest.raises(StageBroken, match=r"expected an id in column 'id'; got null\. AddId gives every document one"):
        sampled(tmp_path / "in", tmp_path / "out", SampleByBucket({"low": 0.5}))


@pytest.mark.parametrize("weight", [-1, float("inf"), float("nan"), "2", True, None], ids=str)
def test_a_weight_is_a_number_from_0_on(weight):
    with pytest.raises(ConfigError, match=r"sample_by_bucket: expected the weight of 'low' to be a number from 0 on"):
        SampleByBucket({"low": weight})


def test_a_level_that_no_stage_makes_is_refused_before_the_run(tmp_path):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": "a", "score": 1}])
    own = BucketScores("score", buckets=2, levels={"poor": (0, 0), "fine": (1, 1)})

    with pytest.raises(ConfigError, match=r"'low', 'medium', 'high', 'unscored'\]; got 'hihg'; did you mean 'high'"):
        sampled(tmp_path / "in", tmp_path / "out", BucketScores("score"), SampleByBucket({"hihg": 2}))
    with pytest.raises(ConfigError, match=r"\['poor', 'fine', 'unscored'\]; got 'high'"):
        sampled(tmp_path / "in", tmp_path / "out", own, SampleByBucket({"high": 2}))


def test_a_stage_in_between_may_have_made_other_levels(tmp_path):
    @processing_stage(name="rename_levels")
    def rename_levels(task: DocumentBatch) -> DocumentBatch:
        return task.with_column("quality_level", pa.array(["best"] * task.num_items))

    write_documents(tmp_path / "in" / "a.jsonl", [{"id": "a", "score": 1}])
    stages = [BucketScores("score"), rename_levels, SampleByBucket({"best": 2})]

    assert sampled(tmp_path / "in", tmp_path / "out", *stages).written == 2


def test_a_column_that_is_not_there_is_refused_before_the_run(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"sample_by_bucket: expected a column 'level' from jsonl_reader"):
        sampled(corpus, tmp_path / "out", SampleByBucket({"high": 2}, field="level"))
    with pytest.raises(ConfigError, match=r"sample_by_bucket: expected a column 'doc_id' from jsonl_reader"):
        sampled(corpus, tmp_path / "out", SampleByBucket({"high": 2}, id_field="doc_id"))
