"""Buckets: exact shares, edges that carry over, every document and file kept, on any number of workers."""

import gzip
import json
import math
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageBroken
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter, ParquetReader, ParquetWriter
from gristmill.stages.text.quality import BucketScores, CombineScores
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)


def score(number):
    """A number that looks random and is different for each document."""
    return (number * 7919 % 10_007) / 10_007


@pytest.fixture
def corpus(tmp_path):
    for file in range(4):
        documents = [{"id": f"{file}-{row}", "score": score(file * 2500 + row), "odd": 1.50} for row in range(2500)]
        write_documents(tmp_path / "in" / f"{file}.jsonl", documents)
    return tmp_path / "in"


def bucketed(source, out, *stages, executor=HERE, **options):
    pipeline = Pipeline("bucket", stages=[JsonlReader(str(source)), *stages, JsonlWriter(str(out))])
    return pipeline.run(executor, quiet=True, **options)


def buckets_of(out):
    return [document["bucketed_results"] for document in read_documents(out)]


def scored(tmp_path, values):
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": str(n), "score": v} for n, v in enumerate(values)])
    return tmp_path / "in"


def test_shares_are_within_one_document_of_exact_on_10_000(corpus, tmp_path):
    result = bucketed(corpus, tmp_path / "out", BucketScores("score"))
    found = buckets_of(tmp_path / "out")

    assert (result.read, result.written, result.dropped_total) == (10_000, 10_000, 0)
    assert set(Counter(found).values()) == {500}
    assert sorted(Counter(found)) == list(range(20))
    levels = Counter(document["quality_level"] for document in read_documents(tmp_path / "out"))
    assert levels == {"low": 6_000, "medium": 3_000, "high": 1_000}
    assert result.counts["bucket_scores"].counted["level high"] == 1_000


def test_a_higher_score_is_never_in_a_lower_bucket(corpus, tmp_path):
    bucketed(corpus, tmp_path / "out", BucketScores("score", buckets=7, level_field=None))
    ordered = sorted(read_documents(tmp_path / "out"), key=lambda document: document["score"])

    assert [document["bucketed_results"] for document in ordered] == sorted(buckets_of(tmp_path / "out"))
    assert "quality_level" not in ordered[0]


def test_the_output_has_the_files_lines_and_order_of_the_input(corpus, tmp_path):
    bucketed(corpus, tmp_path / "out", BucketScores("score"))

    assert list(contents(tmp_path / "out")) == list(contents(corpus))
    for name, before in contents(corpus).items():
        after = contents(tmp_path / "out")[name].splitlines()
        assert all(new.startswith(old[:-1]) for old, new in zip(before.splitlines(), after, strict=True))


def test_a_file_that_is_read_in_many_batches_comes_back_in_order(tmp_path):
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"id": str(n), "score": score(n), "text": "word " * 200}) for n in range(1000)]
    (tmp_path / "in" / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    reader, writer = JsonlReader(str(tmp_path / "in"), blocksize="64KiB"), JsonlWriter(str(tmp_path / "out"))
    result = Pipeline("stream", stages=[reader, BucketScores("score"), writer]).run(HERE, quiet=True)

    assert len(result.output_files) > 10
    assert [document["id"] for document in read_documents(tmp_path / "out")] == [str(n) for n in range(1000)]


def test_batches_in_memory_get_buckets_too():
    batches = [DocumentBatch("x", pa.table({"score": [k, k + 10]})) for k in range(5)]
    stage = BucketScores("score", buckets=2, level_field=None)
    result = Pipeline("memory", stages=[stage]).run(HERE, batches, quiet=True)

    assert [task.column("bucketed_results").to_pylist() for task in result] == [[0, 1]] * 5


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(corpus, tmp_path, workers):
    stages = [CombineScores(["score", "odd"], "mean"), BucketScores("quality")]
    bucketed(corpus, tmp_path / "alone", *stages)
    bucketed(corpus, tmp_path / "several", *stages, executor=LocalExecutor(num_workers=workers))

    assert contents(tmp_path / "alone") == contents(tmp_path / "several")
    for name in ("buckets.json", "quantiles.json"):
        kept = [(tmp_path / out / ".gristmill" / name).read_bytes() for out in ("alone", "several")]
        assert kept[0] == kept[1]


def test_a_second_delivery_is_judged_by_the_edges_of_the_first(corpus, tmp_path):
    bucketed(corpus, tmp_path / "first", BucketScores("score"))
    edges = tmp_path / "first" / ".gristmill" / "buckets.json"
    better = [{"id": str(n), "score": 0.905 + score(n) / 25} for n in range(50)]
    write_documents(tmp_path / "more" / "a.jsonl", [*better, {"id": "best", "score": 7}, {"id": "worst", "score": -7}])
    bucketed(tmp_path / "more", tmp_path / "second", BucketScores("score", edges=str(edges)))
    bucketed(corpus, tmp_path / "again", BucketScores("score", edges=str(edges)))

    *found, best, worst = buckets_of(tmp_path / "second")
    assert set(found) == {18}
    assert (best, worst) == (19, 0)
    assert contents(tmp_path / "again") == contents(tmp_path / "first")
    # With edges nothing has to wait, so nothing goes through an exchange.
    assert not (tmp_path / "second" / ".gristmill" / "segment-1").exists()


def test_scores_that_are_missing_or_not_a_number_are_unscored_and_count_for_nothing(tmp_path):
    values = [0.1, None, math.nan, 0.9, 3, -1e300]
    bucketed(
        scored(tmp_path, values), tmp_path / "out", BucketScores("score", buckets=2, levels={"a": (0, 0), "b": (1, 1)})
    )

    assert buckets_of(tmp_path / "out") == [0, None, None, 1, 1, 0]
    levels = [document["quality_level"] for document in read_documents(tmp_path / "out")]
    assert levels == ["a", "unscored", "unscored", "b", "b", "a"]


@pytest.mark.parametrize("values", [[None, None], [None, math.nan]], ids=["null", "nan"])
@pytest.mark.parametrize("by", ["quantile", "range"])
def test_a_dataset_without_any_score_goes_through(tmp_path, values, by):
    result = bucketed(scored(tmp_path, values), tmp_path / "out", BucketScores("score", by=by))

    assert result.written == len(values)
    assert set(buckets_of(tmp_path / "out")) == {None}


@pytest.mark.parametrize("by", ["quantile", "range"])
def test_infinite_scores_are_at_the_ends(tmp_path, by):
    source = scored(tmp_path, [1.0, 2.0, 3.0, 4.0])
    (source / "a.jsonl").write_text((source / "a.jsonl").read_text().replace("4.0", "1e999").replace("1.0", "-1e999"))
    bucketed(source, tmp_path / "out", BucketScores("score", buckets=4, by=by, level_field=None))

    assert buckets_of(tmp_path / "out") == ([0, 1, 2, 3] if by == "quantile" else [0, 0, 3, 3])


def test_buckets_of_a_range_are_equally_wide(tmp_path):
    source = scored(tmp_path, [0, 1, 2, 2, 2, 2, 2, 9, 10])
    bucketed(source, tmp_path / "out", BucketScores("score", buckets=5, by="range", level_field=None))

    assert buckets_of(tmp_path / "out") == [0, 0, 1, 1, 1, 1, 1, 4, 4]


def test_scores_that_are_mostly_equal_are_in_the_middle_of_the_buckets_they_fill(tmp_path):
    source = scored(tmp_path, [0.0] * 90 + [n / 10 for n in range(1, 11)])
    bucketed(source, tmp_path / "out", BucketScores("score"))
    documents = read_documents(tmp_path / "out")

    # 90 % of all, so buckets 0 to 17: not on top, where the most frequent score would be weighted as the best one.
    assert {d["bucketed_results"] for d in documents if d["score"] == 0} == {9}
    assert {d["quality_level"] for d in documents if d["score"] == 0} == {"low"}
    assert [d["bucketed_results"] for d in documents if d["score"] > 0] == [18] * 5 + [19] * 5


def test_columns_of_any_number_type_are_scores(tmp_path):
    (tmp_path / "in").mkdir()
    columns = {"i": pa.array([1, None, 3], pa.int8()), "u": pa.array([2**64 - 1, 0, 5], pa.uint64())}
    columns |= {"h": pa.array([1, 2, 3], pa.float16()), "d": pa.array([1, 2, 3], pa.decimal128(5, 1))}
    pq.write_table(pa.table(columns), tmp_path / "in" / "a.parquet")
    buckets = [BucketScores(name, f"{name}_bucket", 2, level_field=None) for name in columns]
    Pipeline("kinds", stages=[ParquetReader(str(tmp_path / "in")), *buckets, ParquetWriter(str(tmp_path / "out"))]).run(
        HERE, quiet=True
    )
    found = pq.read_table(tmp_path / "out" / "a.parquet")

    assert found["i_bucket"].to_pylist() == [0, None, 1]
    assert found["u_bucket"].to_pylist() == [1, 0, 1]
    assert found["h_bucket"].to_pylist() == found["d_bucket"].to_pylist() == [0, 1, 1]


def test_a_score_that_is_not_a_number_puts_its_document_into_quarantine(tmp_path):
    result = bucketed(scored(tmp_path, [0.5, "0.7", 0.9, True, {"a": 1}]), tmp_path / "out", BucketScores("score"))

    assert (result.read, result.written, result.quarantined) == (5, 2, 3)
    assert [document["score"] for document in read_documents(tmp_path / "out")] == [0.5, 0.9]


def test_a_column_of_texts_stops_the_run_in_words(tmp_path):
    source = scored(tmp_path, [f"{n}" for n in range(300)])

    with pytest.raises(StageBroken, match=r"check_scores: expected numbers in column 'score'; got '0', str"):
        bucketed(source, tmp_path / "out", BucketScores("score"))


def test_a_column_that_is_not_there_is_refused_before_the_run(corpus, tmp_path):
    with pytest.raises(ConfigError, match=r"expected a column 'scor' from jsonl_reader.*did you mean 'score'"):
        bucketed(corpus, tmp_path / "out", BucketScores("scor"))
    with pytest.raises(ConfigError, match=r"bucket_scores: expected a column 'quality_score' from"):
        bucketed(corpus, tmp_path / "out", BucketScores("quality_score", edges=[1.0], buckets=2, level_field=None))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "quantil"}, r"did you mean 'quantile'"),
        ({"buckets": 0}, r"expected buckets ≥ 1; got 0"),
        ({"buckets": 10}, r"expected each level to have some of the buckets 0 to 9; 'medium' is \(12, 17\)"),
        ({"levels": {"a": (0, 3), "b": (3, 19)}}, r"expected one level for bucket 3; got \['a', 'b'\]"),
        ({"levels": {"a": (0, 3), "b": (5, 19)}}, r"expected one level for bucket 4; got none"),
        ({"levels": {"unscored": (0, 19)}}, r"expected another name for a level"),
        ({"levels": {"a": 3}}, r"expected the first and the last bucket of level 'a'; got 3"),
        ({"output_field": "score"}, r"expected three columns"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_mistake_is_said_when_the_stage_is_made(options, words):
    with pytest.raises(ConfigError, match=words):
        BucketScores("score", **options)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([1, 2], r"expected edges to be 3 numbers; got \[1, 2\]"),
        ([3, 2, 1], r"expected edges in ascending order"),
        ([1, math.nan, 2], r"expected edges to be 3 numbers"),
        ("nowhere.json", r"expected a file that an earlier run has written at 'nowhere.json'"),
    ],
    ids=str,
)
def test_wrong_edges_are_refused_before_the_run(corpus, tmp_path, edges, words):
    with pytest.raises(ConfigError, match=words):
        bucketed(corpus, tmp_path / "out", BucketScores("score", buckets=4, edges=edges, level_field=None))


def test_edges_of_another_number_of_buckets_are_refused(corpus, tmp_path):
    bucketed(corpus, tmp_path / "out", BucketScores("score"))
    edges = str(tmp_path / "out" / ".gristmill" / "buckets.json")

    with pytest.raises(ConfigError, match=r"expected 5 buckets, or buckets=20 as in"):
        bucketed(corpus, tmp_path / "other", BucketScores("score", buckets=5, edges=edges, level_field=None))


def test_two_stages_of_one_run_keep_their_edges_in_one_file(corpus, tmp_path):
    stages = [BucketScores("score"), BucketScores("score", "half", 2, level_field=None)]
    bucketed(corpus, tmp_path / "out", *stages)
    path = tmp_path / "out" / ".gristmill" / "buckets.json"

    kept = json.loads(path.read_text())
    assert {name: len(entry["edges"]) for name, entry in kept.items()} == {"bucketed_results": 19, "half": 1}
    again = [
        BucketScores("score", edges=str(path)),
        BucketScores("score", "half", 2, edges=str(path), level_field=None),
    ]
    bucketed(corpus, tmp_path / "again", *again)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")


def test_edges_of_an_earlier_pipeline_are_not_left_among_those_of_a_fresh_run(corpus, tmp_path):
    bucketed(corpus, tmp_path / "out", BucketScores("score", "old"))
    bucketed(corpus, tmp_path / "out", BucketScores("score", "new"), fresh=True)

    assert list(json.loads((tmp_path / "out" / ".gristmill" / "buckets.json").read_text())) == ["new"]


def combined(tmp_path, documents, *arguments, **options):
    write_documents(tmp_path / "in" / "a.jsonl", documents)
    bucketed(tmp_path / "in", tmp_path / "out", CombineScores(*arguments, **options))
    return [document["quality"] for document in read_documents(tmp_path / "out")]


def test_scores_of_other_scales_count_alike(tmp_path):
    documents = [{"a": n / 1000, "b": 1000 * (10 - n)} for n in range(11)]

    assert combined(tmp_path, documents, ["a", "b"], "mean") == pytest.approx([0.5] * 11)


@pytest.mark.parametrize(
    ("how", "weights", "expected"),
    [("max", None, 1.0), ("mean", None, 0.5), ("weights", {"a": 3, "b": 1}, 0.25)],
    ids=str,
)
def test_quantiles_are_combined_in_three_ways(tmp_path, how, weights, expected):
    documents = [{"a": n, "b": -n} for n in range(11)]

    assert combined(tmp_path, documents, ["a", "b"], how, weights=weights)[0] == pytest.approx(expected)


def test_a_missing_score_leaves_the_decision_to_the_others(tmp_path):
    documents = [{"a": n, "b": -n} for n in range(11)] + [{"a": 10}, {"b": math.nan}, {"a": None, "b": 0}]

    assert combined(tmp_path, documents, ["a", "b"], "mean")[-3:] == [
        pytest.approx(0.95, abs=0.06),
        None,
        pytest.approx(0.95, abs=0.06),
    ]


def test_quantiles_of_an_earlier_run_are_used_again(tmp_path):
    combined(tmp_path, [{"a": n, "b": n % 7} for n in range(100)], ["a", "b"], "mean")
    kept = tmp_path / "out" / ".gristmill" / "quantiles.json"
    write_documents(tmp_path / "more" / "a.jsonl", [{"a": 99, "b": 6}, {"a": 1000, "b": 1000}])
    bucketed(tmp_path / "more", tmp_path / "second", CombineScores(["a", "b"], "mean", quantiles=str(kept)))

    low, high = (document["quality"] for document in read_documents(tmp_path / "second"))
    assert 0.9 < low < high == 1.0
    with pytest.raises(ConfigError, match=r"expected quantiles of 'c' in .*; got \['a', 'b'\]"):
        bucketed(tmp_path / "more", tmp_path / "third", CombineScores(["a", "c"], quantiles=str(kept)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fields": "a"}, r"expected a list of different columns"),
        ({"fields": ["a", "a"]}, r"expected a list of different columns"),
        ({"how": "maximum"}, r"expected how to be one of .*did you mean 'max'"),
        ({"how": "weights"}, r"expected weights with how='weights' only"),
        ({"weights": {"a": 1}}, r"expected weights with how='weights' only"),
        ({"how": "weights", "weights": {"a": 1, "bb": 1}}, r"got 'bb'; did you mean 'b'"),
        ({"how": "weights", "weights": {"a": 1}}, r"expected a weight for each field; got none for \['b'\]"),
        ({"how": "weights", "weights": {"a": 1, "b": 0}}, r"expected a weight above 0 for 'b'; got 0"),
        ({"output_field": "a"}, r"expected output_field to be a new column"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_mistake_in_combining_is_said_when_the_stage_is_made(options, words):
    with pytest.raises(ConfigError, match=words):
        CombineScores(**{"fields": ["a", "b"], **options})
