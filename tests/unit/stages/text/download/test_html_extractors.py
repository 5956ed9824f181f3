"""What extractors promise beside their results: parameters, independence of order, time, stop words."""

import inspect

import pytest
from tests.parity.html_pages import ENGLISH, PAGES, STOP_WORDS

from gristmill.errors import ConfigError
from gristmill.stages.text.download.html_extractors import (
    CascadeExtractor,
    HTMLExtractorAlgorithm,
    JusTextExtractor,
    ResiliparseExtractor,
    TrafilaturaExtractor,
)
from gristmill.stages.text.download.html_extractors.base import keep_by_stop_words
from gristmill.stages.text.download.html_extractors.cascade import short_line_share

# Names, order and defaults that users have in their scripts.
PARAMETERS = {
    JusTextExtractor: {
        "length_low": 70,
        "length_high": 200,
        "stopwords_low": 0.30,
        "stopwords_high": 0.32,
        "max_link_density": 0.2,
        "max_heading_distance": 200,
        "no_headings": False,
        "is_boilerplate": None,
    },
    ResiliparseExtractor: {"required_stopword_density": 0.32, "main_content": True, "alt_texts": False},
    TrafilaturaExtractor: {
        "required_stopword_density": 0.32,
        "min_extracted_size": 250,
        "min_extracted_comm_size": 1,
        "min_output_size": 1,
        "min_output_comm_size": 1,
        "max_tree_size": None,
        "min_duplcheck_size": 100,
        "max_repetitions": 2,
    },
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters_are_those_users_know(kind):
    given = inspect.signature(kind).parameters.values()
    known = {each.name: each.default for each in given if each.kind is each.POSITIONAL_OR_KEYWORD}

    assert known == PARAMETERS[kind]
    assert list(known) == list(PARAMETERS[kind])


def test_trafilatura_drops_repetitions_unless_it_is_told_otherwise():
    assert TrafilaturaExtractor().extract_kwargs == {"deduplicate": True}
    assert TrafilaturaExtractor(deduplicate=False, fast=True).extract_kwargs == {"deduplicate": False, "fast": True}


def test_a_text_does_not_depend_on_the_pages_before_it():
    language, page = PAGES["article"]
    extractor = TrafilaturaExtractor()
    texts = [extractor.extract_text(page, STOP_WORDS[language], language) for _ in range(5)]

    assert texts[0]
    assert all(text == texts[0] for text in texts)


def test_a_table_of_fifty_thousand_cells_has_an_end():
    cells = "<table><tr>" + "<td>cell</td>" * 50_000 + "</tr></table>"
    page = f"<p>{' '.join(ENGLISH[:3])}</p>{cells}<p>{' '.join(ENGLISH[3:6])}</p>"

    paragraphs = JusTextExtractor().extract_text(page, STOP_WORDS["ENGLISH"], "ENGLISH")
    assert paragraphs[0] == " ".join(ENGLISH[:3])
    assert len(paragraphs) == 50_002


@pytest.mark.parametrize(
    ("paragraph", "density", "casefold", "kept"),
    [
        ("the man and the dog", 0.6, False, True),
        ("the man and the dog", 0.61, False, False),
        ("The man And the dog", 0.3, False, False),
        ("The man And the dog", 0.6, True, True),
        ("   ", 0.0, False, False),
        ("dog", 0.0, False, True),
    ],
)
def test_a_paragraph_stays_if_it_has_enough_stop_words(paragraph, density, casefold, kept):
    stop_words = frozenset({"the", "and"})

    assert keep_by_stop_words([paragraph], stop_words, density, casefold=casefold) == [paragraph] * kept


def test_only_rules_that_count_stop_words_need_a_list():
    assert JusTextExtractor().uses_stop_words
    assert ResiliparseExtractor().uses_stop_words
    assert not ResiliparseExtractor(required_stopword_density=0).uses_stop_words
    assert not TrafilaturaExtractor(0).uses_stop_words
    assert not CascadeExtractor().uses_stop_words
    assert CascadeExtractor(first=ResiliparseExtractor()).uses_stop_words


class Said(HTMLExtractorAlgorithm):
    """Says what it was told to."""

    def __init__(self, paragraphs):
        self.paragraphs = paragraphs

    def extract_text(self, html, stop_words, language):
        return self.paragraphs


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (["x" * 100], ["other"], ["x" * 100]),
        (["x" * 80, "y" * 20], ["other"], ["other"]),
        (["x" * 90, "y" * 10], ["other"], ["x" * 90, "y" * 10]),
        (["short"], None, ["short"]),
        ([], ["other"], ["other"]),
        (None, None, None),
    ],
)
def test_the_second_is_asked_where_the_first_found_short_lines(first, then, expected):
    assert CascadeExtractor(Said(first), Said(then), 0.15).extract_text("", frozenset(), "ENGLISH") == expected


def test_the_share_of_short_lines_is_of_characters():
    assert short_line_share([]) == 0
    assert short_line_share(["x" * 60]) == 0
    assert short_line_share(["x" * 59]) == 1
    assert short_line_share(["x" * 75, "y" * 25, "  "]) == 0.25


def test_a_share_that_cannot_be_one_is_refused():
    with pytest.raises(ConfigError, match=r"^CascadeExtractor: expected short_line_share between 0 and 1; got 15$"):
        CascadeExtractor(short_line_share=15)
