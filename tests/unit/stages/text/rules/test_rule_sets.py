"""Rule sets measured by the column equal their definition on one text, and are defined on every text there is."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.unit.stages.text.rules.documents import ODD, documents

from gristmill.stages.text.judging.statistics import TextColumn
from gristmill.stages.text.judging.texts import Texts
from gristmill.stages.text.rules import C4Quality, FineWebQuality, GopherQuality, GopherRepetition
from gristmill.tasks.text_columns import from_texts

pytestmark = pytest.mark.slow

TINY = 1e-9  # a limit that everything is above: shares of n-grams are exact where they are above their limit
SETS = [
    GopherQuality(),
    GopherQuality(stop_words=("cat", "Dog", "中", "#")),
    GopherRepetition(),
    GopherRepetition(top_n_grams=((1, TINY),), dup_n_grams=((1, 0.1), (3, 0.2))),
    # Sizes that do not rise: nothing ends with the first that is above its limit.
    GopherRepetition(top_n_grams=((2, TINY), (3, TINY), (4, TINY)), dup_n_grams=((10, TINY), (5, TINY), (1, TINY))),
    C4Quality(),
    C4Quality(filter_no_terminal_punct=False, min_words_per_line=-1, remove_citations=False),
    C4Quality(filter_curly_bracket=False, filter_lorem_ipsum=False, filter_javascript=False, max_word_length=5),
    FineWebQuality(),
    FineWebQuality(line_punct_exclude_zero=True, short_line_length=5),
]


def names(rules):
    return f"{rules.name}-{SETS.index(rules)}"


def column(texts):
    return Texts(TextColumn.of(pa.chunked_array([from_texts(texts)])))


def measured(rules, texts):
    """All measures of all texts by the column form, where a document reaches the rule."""
    known = {}
    for rule in rules.rules():
        rules.measure(rule.measure, texts, np.ones(len(texts), np.bool_), known)
    return known


def assert_equal_to_definition(rules, given_texts):
    texts = column(given_texts)
    found = measured(rules, texts)
    rewritten = rules.rewrite(texts, np.ones(len(texts), np.bool_))
    for row, text in enumerate(given_texts):
        for name, value in rules.measure_document(text).items():
            got = found[name][row]
            assert is_right(rules, name, got, value) or is_past(rules, name, text), name
        if rules.judge_document(text).reason not in ("lorem_ipsum", "curly_bracket"):
            assert rewritten.text(row) == rules.rewrite_document(text)


def is_right(rules, name, got, value):
    """Sentences are counted until there are enough, n-grams where one can be above its limit."""
    if isinstance(rules, C4Quality) and name == "sentences" and got >= rules.min_num_sentences:
        return value >= got
    if isinstance(rules, GopherRepetition) and "gram" in name and got == 0:
        return all(value <= rule.high for rule in rules.rules() if rule.measure == name)
    return got == value or (math.isnan(got) and math.isnan(value))


def is_past(rules, name, text):
    """Whether a text is dropped before this measure of repeated n-grams is asked for."""
    measures = [rule.measure for rule in rules.rules()]
    reasons = [rule.reason for rule in rules.rules()]
    reason = rules.judge_document(text).reason
    return "duplicated" in name and reason in reasons[: measures.index(name)]


@pytest.mark.parametrize("rules", SETS, ids=names)
@given(text=documents)
@settings(deadline=None)
def test_the_column_form_equals_the_definition(rules, text):
    assert_equal_to_definition(rules, ["", text, "after it."])


@pytest.mark.parametrize("rules", SETS, ids=names)
@pytest.mark.parametrize("kind", ODD)
def test_odd_documents_have_the_measures_of_the_definition(rules, kind):
    assert_equal_to_definition(rules, [ODD[kind]])


def test_a_document_without_words_is_judged_where_the_peer_divides_by_zero():
    rules = GopherQuality(min_doc_words=None)

    assert rules.judge_document("").reason == "gopher_below_alpha_threshold"
    assert rules.judge_document("\n\n").reason == "gopher_below_alpha_threshold"


def test_a_bound_of_none_or_zero_switches_a_rule_off():
    text = "# " * 30

    assert GopherQuality(min_doc_words=None).judge_document(text).reason == "gopher_too_many_hashes"
    off = GopherQuality(min_doc_words=0, max_symbol_word_ratio=None, max_non_alpha_words_ratio=0, min_stop_words=None)
    assert off.judge_document(text).reason is None


def test_c4_counts_the_lines_it_drops_by_reason():
    text = (
        "Good line of words.\nno end mark here\nToo few.\nWe use cookies on this site.\nEnable JavaScript, please do.\n"
    )

    assert C4Quality().count_lines(text) == {
        "kept": 1,
        "no_terminal_punct": 1,
        "too_few_words": 1,
        "policy": 1,
        "javascript": 1,
    }
