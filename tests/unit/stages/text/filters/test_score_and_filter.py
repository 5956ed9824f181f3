"""Score adds measures and drops nothing; Filter drops by a column that is there."""

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.filters import Filter, Score
from gristmill.stages.text.filters.heuristic import MeanWordLengthFilter, WordCountFilter
from gristmill.tasks import DocumentBatch


def batch(**columns):
    return DocumentBatch("test", pa.table(columns))


def is_even(number):
    return number % 2 == 0


def test_a_function_and_a_filter_score_side_by_side():
    scored = Score([len, WordCountFilter()], score_field=["chars", "words"]).process(batch(text=["a b", None]))

    assert scored.column("chars").to_pylist() == [3, 0]
    assert scored.column("words").to_pylist() == [2, 0]


def test_each_filter_of_a_score_needs_its_own_column():
    with pytest.raises(ConfigError, match="a score_field of its own for each of 2 filters; got 'n'"):
        Score([len, len], score_field="n")


def test_what_is_neither_filter_nor_function_cannot_score():
    with pytest.raises(ConfigError, match="expected score_fn to be a DocumentFilter or a function; got 'len'"):
        Score("len", score_field="n")


def test_a_function_filters_by_a_column_and_is_the_reason():
    stage = Filter(is_even, "n")
    kept = stage.process(batch(n=[1, 2, 3]))

    assert kept.column("n").to_pylist() == [2]
    assert stage.context.dropped == {"is_even": 2}


def test_a_function_is_given_missing_values():
    assert Filter(lambda n: n is None, "n").process(batch(n=[1, None])).column("n").to_pylist() == [None]


def test_a_filter_object_never_keeps_a_missing_value_and_says_so():
    stage = Filter(WordCountFilter(1), "n")
    kept = stage.process(batch(n=[0, 1, None]))

    assert kept.column("n").to_pylist() == [1]
    assert stage.context.dropped == {"word_count": 1, "null_score": 1}


def test_several_columns_are_judged_in_order():
    judges = [WordCountFilter(2), MeanWordLengthFilter(1, 2)]
    kept = Filter(judges, ["n", "mean"]).process(batch(n=[1, 2, 3], mean=[1.0, 5.0, 2.0]))

    assert kept.column("n").to_pylist() == [3]


def test_invert_turns_a_function_around():
    assert Filter(is_even, "n", invert=True).process(batch(n=[1, 2])).column("n").to_pylist() == [1]


def test_scoring_and_filtering_apart_equal_doing_both_at_once():
    from gristmill.stages.text.filters import ScoreFilter

    documents = batch(text=["a", "a b", "a b c"])
    apart = Filter(WordCountFilter(2), "n").process(Score(WordCountFilter(2), "n").process(documents))
    at_once = ScoreFilter(WordCountFilter(2), score_field="n").process(documents)

    assert apart.to_pyarrow().equals(at_once.to_pyarrow())
