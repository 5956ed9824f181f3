"""ScoreFilter drops what filters refuse and says why, with the measure and the threshold."""

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.pipeline.compile import stage_config
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
from gristmill.stages.text.filters.heuristic import MeanWordLengthFilter, RepeatedLinesFilter, WordCountFilter
from gristmill.tasks import DocumentBatch


def batch(*texts, **columns):
    return DocumentBatch("test", pa.table({"text": pa.array(texts, pa.string()), **columns}))


def texts(result):
    return result.column("text").to_pylist()


def run(stage, documents):
    stage.context.keep_rejects = True
    return stage.process(documents)


def test_documents_inside_the_bounds_stay():
    assert texts(ScoreFilter(WordCountFilter(2, 3)).process(batch("a", "a b", "a b c", "a b c d"))) == ["a b", "a b c"]


def test_invert_keeps_what_would_be_dropped():
    assert texts(ScoreFilter(WordCountFilter(2, 3), invert=True).process(batch("a", "a b"))) == ["a"]


def test_a_dropped_document_is_reported_with_reason_value_and_threshold():
    stage = ScoreFilter(WordCountFilter(min_words=2))
    run(stage, batch("a", "a b"))
    [reject] = stage.context.rejects

    assert stage.context.dropped == {"word_count": 1}
    assert (reject.reason, reject.values, reject.threshold) == ("word_count", (1,), "2 ≤ words ≤ 100000")
    assert texts(reject.items) == ["a"]


def test_filters_of_a_list_run_in_order_and_the_first_refusal_is_the_reason():
    stage = ScoreFilter([WordCountFilter(min_words=2), MeanWordLengthFilter(min_mean_word_length=2)])
    kept = run(stage, batch("a", "a b", "aa bb"))

    assert texts(kept) == ["aa bb"]
    assert stage.context.dropped == {"word_count": 1, "mean_word_length": 1}


def test_a_score_column_holds_the_measures_of_what_is_kept():
    kept = ScoreFilter(WordCountFilter(2), score_field="words").process(batch("a", "a b"))

    assert kept.column("words").to_pylist() == [2]


def test_a_null_text_is_scored_as_empty_and_dropped_for_having_none():
    stage = ScoreFilter(WordCountFilter(min_words=1))
    kept = run(stage, batch(None, "", "a"))

    assert texts(kept) == ["a"]
    assert stage.context.dropped == {"word_count": 1, "null_text": 1}


def test_a_null_text_stays_where_an_empty_text_would():
    assert texts(ScoreFilter(RepeatedLinesFilter()).process(batch(None, ""))) == [None, ""]


def test_an_empty_batch_stays_empty_and_has_the_score_column_typed():
    kept = ScoreFilter([WordCountFilter(), MeanWordLengthFilter()], score_field=["n", "mean"]).process(batch())

    assert kept.num_items == 0
    assert [kept.column(name).type for name in ("n", "mean")] == [pa.int64(), pa.float64()]


def test_other_columns_are_untouched():
    kept = ScoreFilter(WordCountFilter(2)).process(batch("a", "a b", id=pa.array(["00123", "00124"])))

    assert kept.column("id").to_pylist() == ["00124"]


def test_columns_read_and_added_are_declared():
    stage = ScoreFilter([WordCountFilter(), MeanWordLengthFilter()], text_field="body", score_field=["n", None])

    assert (stage.inputs()[1], stage.outputs()[1]) == (["body"], ["n"])


def test_a_users_filter_works_without_bounds():
    class Shouting(DocumentFilter[bool]):
        def score_document(self, text):
            return text.isupper()

        def keep_document(self, score):
            return not score

    stage = ScoreFilter(Shouting())
    kept = run(stage, batch("A", "a"))

    assert texts(kept) == ["a"]
    assert (stage.context.rejects[0].values, stage.context.rejects[0].threshold) == ((True,), None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"filter_obj": len}, "expected filter_obj to be a DocumentFilter; got <built-in function len>"),
        ({"filter_obj": []}, "expected at least one filter"),
        ({"filter_obj": [WordCountFilter()] * 2, "score_field": "n"}, "expected score_field to be a list of 2"),
        ({"filter_obj": [WordCountFilter()] * 2, "score_field": ["n", "n"]}, "a different score_field for each"),
        ({"filter_obj": [WordCountFilter()] * 2, "invert": [True]}, "one for each of 2 filters"),
    ],
)
def test_a_wrong_combination_is_refused_when_the_stage_is_made(arguments, message):
    with pytest.raises(ConfigError, match=message):
        ScoreFilter(**arguments)


def test_a_changed_threshold_changes_the_fingerprint():
    configs = [stage_config(ScoreFilter(WordCountFilter(least))) for least in (1, 2, 1)]

    assert configs[0] == configs[2] != configs[1]


def test_a_changed_limit_of_a_users_filter_changes_the_fingerprint():
    class Limited(DocumentFilter[int]):
        def __init__(self, limit):
            self._limit = limit

    assert stage_config(ScoreFilter(Limited(1))) != stage_config(ScoreFilter(Limited(2)))


def test_a_stage_is_named_after_its_filters():
    names = [ScoreFilter(f).name for f in (WordCountFilter(), [WordCountFilter(), MeanWordLengthFilter()])]

    assert names == ["word_count", "word_count_and_1_more"]
