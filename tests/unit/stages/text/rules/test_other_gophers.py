"""The Gopher rules of Dolma and DCLM, and RefinedWeb's corrections of lines, measure what their authors say."""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from tests.unit.stages.text.rules.documents import ODD, documents

from gristmill.errors import ConfigError
from gristmill.stages.text.rules import (
    ApplyRules,
    DclmGopherQuality,
    DclmGopherRepetition,
    DolmaGopher,
    RefinedWebLines,
)
from gristmill.tasks import DocumentBatch

SETS = [DolmaGopher(), DolmaGopher(tagger="gopher_v1"), DclmGopherQuality(), DclmGopherRepetition(), RefinedWebLines()]


@pytest.mark.parametrize("rules", SETS, ids=lambda rules: rules.name)
@given(text=documents)
@example(text="\u2028privacy policy ")
@settings(deadline=None)
def test_every_text_has_every_measure(rules, text):
    measures = rules.measure_document(text)

    assert {rule.measure for rule in rules.rules()} <= set(measures)
    assert all(value >= 0 for value in measures.values())


@pytest.mark.slow
@pytest.mark.parametrize("rules", SETS, ids=lambda rules: rules.name)
@pytest.mark.parametrize("kind", [kind for kind in ODD if kind not in ("one long line", "many lines")])
def test_the_stage_gives_the_verdict_and_the_text_of_the_definition(rules, kind):
    stage = ApplyRules(rules)
    kept = stage.process(DocumentBatch("d", pa.table({"text": [ODD[kind]]}))).to_pyarrow()["text"].to_pylist()
    reason = rules.judge_document(ODD[kind]).reason

    assert stage.context.dropped == ({} if reason is None else {reason: 1})
    assert kept == ([rules.rewrite_document(ODD[kind])] if reason is None else [])


def test_dolma_counts_all_occurrences_over_characters_without_white_space():
    measures = DolmaGopher().measure_document("one two\n\none two\nthree…\n* four")

    assert measures["share_of_repeated_lines"] == 2 / 4
    assert measures["share_of_characters_in_repeated_lines"] == 14 / 23
    assert measures["share_of_top_2_gram"] == 12 / 23
    assert (measures["share_of_ellipsis_lines"], measures["share_of_bullet_lines"]) == (1 / 4, 1 / 4)
    assert DolmaGopher(tagger="gopher_v1").measure_document("a\n\nb")["share_of_repeated_lines"] == 0


def test_dolma_bounds_the_median_and_counts_words_that_contain_a_symbol():
    measures = DolmaGopher().measure_document("a #b## the the extraordinary")

    assert (measures["median_word_length"], measures["symbols_per_word"], measures["required_words"]) == (3, 1 / 5, 2)


def test_dclm_counts_symbols_in_the_text_and_common_words_in_any_case():
    measures = DclmGopherQuality().measure_document("The end . . . of THE #story...")

    assert measures["symbols_per_word"] == 3 / 8
    assert measures["stop_words"] == 3
    assert measures["words"] == 4


def test_dclm_takes_the_longest_of_equally_frequent_ngrams_and_none_that_occurs_once():
    measures = DclmGopherRepetition().measure_document("a b, long words; a b. long words!")

    assert measures["share_of_top_2_gram"] == 2 * 9 / 22
    assert measures["share_of_top_4_gram"] == 1.0
    assert DclmGopherRepetition().measure_document("none of it twice")["share_of_top_2_gram"] == 0


def test_dclm_counts_a_word_once_however_many_repeated_ngrams_hold_it():
    rules = DclmGopherRepetition(dup_n_grams=((2, 0.1),))

    assert rules.measure_document("a b c x a b c")["share_of_duplicated_2_grams"] == 6 / 7


def test_refinedweb_drops_lines_that_are_shouted_numbers_counters_or_one_word():
    text = "A line that stays here.\nBUY NOW TODAY\n12345\n3.5k likes\nMenu\nAnother line that stays."

    assert RefinedWebLines().rewrite_document(text) == "A line that stays here.\nAnother line that stays."
    assert RefinedWebLines().judge_document(text).reason == "word_removal_ratio_filter"


def test_refinedweb_cuts_phrases_out_of_short_lines_only():
    rules = RefinedWebLines()
    long = "Here are ten words and so the phrase stays, read more..."

    assert rules.rewrite_document("Sign-in to the shop\nThree items in cart now\nNews of the day Read more...") == (
        "to the shop\nThree now\nNews of the day"
    )
    assert rules.rewrite_document(long) == long


def test_an_unknown_tagger_is_named():
    with pytest.raises(ConfigError, match="DolmaGopher: expected tagger 'gopher_v1' or 'gopher_v2'; got 'v3'"):
        DolmaGopher(tagger="v3")
