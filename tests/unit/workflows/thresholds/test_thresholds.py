"""Scores, thresholds tried on them, and the documents a recipe itself would keep."""

import json
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.jsonl_files import contents

from gristmill.backends.local import LocalExecutor
from gristmill.config.catalog import filters as filters_by_name
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import DocumentFilter, ScoreFilter
from gristmill.stages.text.filters.heuristic import (
    CommonEnglishWordsFilter,
    MeanWordLengthFilter,
    SubstringFilter,
    WordCountFilter,
)
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.workflows.thresholds import FilterRule, apply_rules, rules_of, score_pipeline, with_rules
from gristmill.workflows.thresholds.rule import THRESHOLD_PREFIXES, _names_used_in_measuring, thresholds_of

TEXTS = [
    "the cat sat on the mat and that was that",
    "short",
    "",
    None,
    "extraordinarily incomprehensible institutionalisation notwithstanding the",
    "to be or not to be that is the question with which we have begun",
]


class EvenLength(DocumentFilter[int]):
    def score_document(self, text):
        return len(text)

    def keep_document(self, score):
        return score % 2 == 0


class FirstAndLast(DocumentFilter[dict[str, str]]):
    """A score of two parts."""

    score_type = pa.struct([("first", pa.string()), ("last", pa.string())])

    def score_document(self, text):
        return {"first": text[:1], "last": text[-1:]}

    def keep_document(self, score):
        return score["first"] != "s" and score["last"] != ""


def filters(least=3):
    own = [EvenLength(), FirstAndLast()]
    return [WordCountFilter(min_words=least), MeanWordLengthFilter(), CommonEnglishWordsFilter(), *own]


@pytest.fixture
def documents(tmp_path):
    lines = [json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def filtering(documents, output, least=3):
    stages = [JsonlReader(str(documents / "in.jsonl")), ScoreFilter(filters(least)), JsonlWriter(str(output))]
    return Pipeline("filters", stages=stages)


def run(pipeline):
    return pipeline.run(LocalExecutor(num_workers=0))


def ids(directory):
    return [
        json.loads(line)["id"] for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()
    ]


def scored(documents):
    run(score_pipeline(filtering(documents, documents / "unused"), str(documents / "scored")))
    return str(documents / "scored")


@pytest.mark.parametrize("least", [1, 3, 11])
def test_thresholds_on_scores_keep_what_the_filters_keep(documents, least):
    where = scored(documents)
    rules = rules_of(filtering(documents, documents / "unused"))
    rules[0] = rules[0].with_parameter("min_words", least)
    direct = run(filtering(documents, documents / "direct", least))
    kept = run(with_rules(filtering(documents, documents / "kept"), rules))
    outcome = apply_rules(where, rules)

    assert contents(documents / "kept") == contents(documents / "direct")
    assert (outcome.kept, outcome.dropped()) == (direct.written, direct.dropped) == (kept.written, kept.dropped)


def test_a_pipeline_with_other_rules_is_the_one_that_would_have_been_written(documents):
    rules = rules_of(filtering(documents, documents / "out"))
    rules[0] = rules[0].with_parameter("min_words", 7)
    changed = with_rules(filtering(documents, documents / "out"), rules).plan()

    assert changed.fingerprint == filtering(documents, documents / "out", least=7).plan().fingerprint


def test_every_rule_says_what_it_refuses_first_and_alone(documents):
    outcome = apply_rules(scored(documents), [FilterRule(judge) for judge in filters()])

    by_name = {rule.name: (rule.refused, rule.refused_first, rule.refused_alone) for rule in outcome.rules}
    assert outcome.documents == len(TEXTS)
    assert by_name["word_count"] == (3, 3, 0)
    assert outcome.kept + sum(first for _, first, _ in by_name.values()) == len(TEXTS)


def test_a_score_serves_thresholds_above_the_one_it_was_measured_with(documents):
    where = scored(documents)
    rule = rules_of(filtering(documents, documents / "unused"))[2]

    assert apply_rules(where, [rule.with_parameter("min_num_common_words", 4)]).kept == 2


def test_two_sets_of_rules_differ_where_they_say(documents):
    where = scored(documents)
    loose, strict = [FilterRule(WordCountFilter(min_words=1))], [FilterRule(WordCountFilter(min_words=10))]
    difference = apply_rules(where, loose, against=strict).difference

    assert (difference.kept_here_only, difference.kept_there_only) == (2, 0)
    assert difference.refused_there_by == {"word_count": 2}
    assert difference.examples_here == ["d1", "d4"]


def test_an_inverted_rule_keeps_the_others(documents):
    where = scored(documents)
    judge = WordCountFilter(min_words=3)
    kept = [apply_rules(where, [FilterRule(judge, invert=invert)]).kept for invert in (False, True)]

    assert sum(kept) == len(TEXTS)


def test_a_missing_score_keeps_nothing():
    rule, scores = FilterRule(MeanWordLengthFilter()), pa.chunked_array([[5.0, None, 99.0]])

    assert rule.keep(scores).tolist() == [True, False, False]
    assert FilterRule(MeanWordLengthFilter(), invert=True).keep(scores).tolist() == [False, False, True]


def test_the_name_tells_measures_apart_and_not_thresholds():
    assert FilterRule(WordCountFilter(1)).name == FilterRule(WordCountFilter(2)).name == "word_count"
    assert FilterRule(SubstringFilter("x", "any")).name != FilterRule(SubstringFilter("y", "any")).name
    assert FilterRule(WordCountFilter(1), text_field="title").name == "title_word_count"


def test_a_column_that_is_not_there_names_the_nearest(documents):
    with pytest.raises(ConfigError, match=r"'score_word_count_lang_de'.*did you mean 'score_word_count'"):
        apply_rules(scored(documents), [FilterRule(WordCountFilter(lang="de"))])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 5.0])
@pytest.mark.parametrize("invert", [False, True])
def test_odd_scores_are_decided_on_as_in_a_run(value, invert):
    judge = MeanWordLengthFilter()
    expected = bool(judge.keep_document(value)) != invert

    assert FilterRule(judge, invert=invert).keep(pa.chunked_array([[value]])).tolist() == [expected]


@dataclass
class LongWords(DocumentFilter[int]):
    min_length: int = 3
    min_words: int = 1

    def score_document(self, text):
        return sum(self._is_long(word) for word in text.split())

    def _is_long(self, word):
        return len(word) >= self.min_length

    def bounds(self):
        return self.min_words, None


def test_what_the_measuring_looks_at_is_no_threshold_whatever_it_is_called():
    assert thresholds_of(LongWords()) == ["min_words"]
    assert FilterRule(LongWords(5)).name == "long_words_min_length5"
    with pytest.raises(ConfigError, match=r"expected one of its thresholds \(min_words\); got 'min_length'"):
        FilterRule(LongWords()).with_parameter("min_length", 4)


def test_the_thresholds_of_shipped_filters_are_not_looked_at_while_measuring():
    measured = {
        name: set(_names_used_in_measuring(kind)) for name, kind in filters_by_name().items() if is_dataclass(kind)
    }
    read = {
        (name, field.name)
        for name, kind in filters_by_name().items()
        if name in measured
        for field in fields(kind)
        if field.name.startswith(THRESHOLD_PREFIXES) and field.name in measured[name]
    }

    assert read == {
        ("HTMLBoilerplateFilter", "min_lang_content_num_chars"),  # measures only what is longer
        ("CommonEnglishWordsFilter", "min_num_common_words"),  # has a form for any threshold
        ("CommonEnglishWordsFilter", "stop_at_false"),
    }


def test_only_thresholds_can_be_changed():
    with pytest.raises(ConfigError, match="rule word_count: expected one of its thresholds"):
        FilterRule(WordCountFilter()).with_parameter("lang", 3)


def test_filters_behind_a_stage_that_changes_texts_are_refused(documents):
    pipeline = filtering(documents, documents / "unused")
    pipeline.stages.insert(2, JsonlWriter(str(documents / "x")))
    pipeline.add_stage(ScoreFilter(WordCountFilter()).with_(name="again"))

    with pytest.raises(
        ConfigError, match=r"cannot be scored because of stage jsonl_writer \(JsonlWriter\) between filters:"
    ):
        rules_of(pipeline)


def test_scores_are_read_in_parts_of_a_file(tmp_path):
    words = np.arange(300_000)
    pq.write_table(pa.table({"score_word_count": words}), tmp_path / "many.parquet", row_group_size=100_000)

    assert apply_rules(str(tmp_path), [FilterRule(WordCountFilter(100, 200_000))]).kept == 199_901


def test_a_document_refused_by_two_rules_counts_for_the_first_and_for_none_alone(tmp_path):
    scores = {"score_word_count": [1, 1, 9, 9], "score_mean_word_length": [99.0, 5.0, 99.0, 5.0]}
    pq.write_table(pa.table(scores), tmp_path / "scores.parquet")
    outcome = apply_rules(str(tmp_path), [FilterRule(WordCountFilter(3)), FilterRule(MeanWordLengthFilter())])

    assert [(r.refused, r.refused_first, r.refused_alone) for r in outcome.rules] == [(2, 2, 1), (2, 1, 1)]
    assert (outcome.documents, outcome.kept) == (4, 1)


class AtMostThree(DocumentFilter[int]):
    def bounds(self):
        return None, 3


@pytest.mark.parametrize(
    ("judge", "threshold", "kept"),
    [
        (WordCountFilter(2, 3), "2 ≤ words ≤ 3", [2, 3]),
        (AtMostThree(), "score ≤ 3", [1, 2, 3]),
        (EvenLength(), "as the filter decides", [2, 4]),
    ],
)
def test_a_rule_keeps_what_its_filter_would_and_says_what_that_is(judge, threshold, kept):
    for scores in ([1, 2, 3, 4], [1, 2, None, 3, 4]):
        decided = FilterRule(judge).keep(pa.chunked_array([scores]))
        assert [score for score, keep in zip(scores, decided, strict=True) if keep] == kept
    assert FilterRule(judge).threshold == threshold
