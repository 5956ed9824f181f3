"""Answers as texts to train on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.synthetic.nemotron_cc.answer_texts import (
    QA_PREFIX,
    after_prefix,
    choose_pairs,
    list_items,
    question_answer_pairs,
    without_passage_labels,
    without_quotes,
)

PAIRS = [f"Question: q{n}?\nAnswer: a{n}." for n in range(10)]


def words(text):
    return len(text.split())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Paraphrased Text: So it was.", "So it was."),
        ('**Paraphrased Text:**\n"So it was."', "So it was."),
        ("Paraphrased Text:", ""),
        ("So it was.", None),
        ("Sure! Paraphrased Text: So it was.", None),
    ],
)
def test_an_answer_has_to_begin_with_its_prefix(answer, text):
    assert after_prefix(answer, "Paraphrased Text:") == text


@pytest.mark.parametrize(
    ("text", "bare"),
    [('"a"', "a"), ("“a b”", "a b"), ('"a" and "b"', '"a" and "b"'), ('"a', '"a'), ('"', '"'), ("", "")],
)
def test_only_quotes_around_the_whole_are_removed(text, bare):
    assert without_quotes(text) == bare


def test_labels_of_passages_are_removed_and_what_follows_one_stays():
    answer = "Passage 1:\nThe mill.\n\n**Passage 2:** The river.\nPassage 4: stays"

    assert without_passage_labels(answer) == "The mill.\n\nThe river.\nPassage 4: stays"


def test_a_list_loses_its_bullets_and_the_line_that_introduces_it():
    assert list_items("Here is the list:\n- one\n  more of one\n* **two**\n") == "one\nmore of one\ntwo"
    assert list_items("- one") == "one"
    assert list_items("") == ""


def test_questions_are_taken_with_their_answers():
    answer = f"{QA_PREFIX}\n- Question: Why?\n- Answer: So.\n\nQuestion: How?\nAnswer: Thus,\nand thus.\nQuestion: Who?"

    assert question_answer_pairs(answer) == ["Question: Why?\nAnswer: So.", "Question: How?\nAnswer: Thus,\nand thus."]
    assert question_answer_pairs("I cannot do that.\nQuestion: Why?\nAnswer: So.") == []
    assert question_answer_pairs("") == []


def test_pairs_are_chosen_by_the_text_and_not_by_chance():
    text = "the mill by the river " * 60

    chosen = choose_pairs(PAIRS, text, 10, words)
    assert chosen == choose_pairs(PAIRS, text, 10, words)
    assert chosen != choose_pairs(PAIRS, text, 10, words, seed=1)
    assert sorted(chosen) != chosen or len(chosen) == 1  # in an order of their own


def test_a_short_text_gets_one_pair_and_long_ones_differ_in_how_many():
    assert len(choose_pairs(PAIRS, "two words", 10, words)) == 1
    numbers = {len(choose_pairs(PAIRS, f"{n} " + "word " * 149, 10, words)) for n in range(200)}
    assert numbers == set(range(1, 11))


@given(st.lists(st.text(max_size=5), max_size=6), st.text(max_size=20))
def test_what_is_chosen_was_there_and_is_there_once(pairs, text):
    chosen = choose_pairs(pairs, text, 10, words)

    assert len(chosen) <= len(pairs)
    assert all(chosen.count(pair) <= pairs.count(pair) for pair in chosen)
    assert bool(chosen) == bool(pairs)
