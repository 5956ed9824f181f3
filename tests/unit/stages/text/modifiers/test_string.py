"""Each string modifier does what its definition says, and looks at every text it would change."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.stages.text.modifiers import (
    BoilerPlateStringModifier,
    FastTextLabelModifier,
    LineRemover,
    MarkdownRemover,
    NewlineNormalizer,
    QuotationRemover,
    Slicer,
    UrlRemover,
)

CASES = [
    (NewlineNormalizer(), "a\n\n\n\nb\n\nc", "a\n\nb\n\nc"),
    (NewlineNormalizer(), "a\r\n\r\n\r\nb", "a\r\n\r\nb"),
    (UrlRemover(), "see HTTPS://a.b/c?d=e#f, or Www.x.org.", "see  or "),
    (UrlRemover(), "http://", "http://"),
    (UrlRemover(), "wwwx https:/x", "wwwx https:/x"),
    (MarkdownRemover(), "**bold** *it* __un__ _der_ [text](http://u)", "bold it un der http://u"),
    (MarkdownRemover(), "snake_case_name and 2*3", "snake_case_name and 2*3"),
    (MarkdownRemover(), "*open\nclosed*", "*open\nclosed*"),
    (QuotationRemover(), '"all of it"', "all of it"),
    (QuotationRemover(), '"one"\n"two"', '"one"\n"two"'),
    (QuotationRemover(), '"one\ntwo"', "one\ntwo"),
    (QuotationRemover(), '""', '""'),
    (QuotationRemover(), '"', '"'),
    (Slicer(1, 3), "abcd", "bc"),
    (Slicer(), "  abc ", "abc"),
    (Slicer(None, None, strip=False), " a ", " a "),
    (Slicer("<b>", "</b>"), "x<b>y</b>z</b>w", "<b>y</b>z</b>"),
    (Slicer("<b>", "</b>", include_left=False, include_right=False), "x<b> y </b>z", "y"),
    (Slicer("<b>"), "none", ""),
    (Slicer(right="!"), "none", ""),
    (Slicer(-2), "abcd", "cd"),
    (LineRemover(["x", "y z"]), "x\na\n x\ny z\n", "a\n x\n"),
    (LineRemover([""]), "a\n\nb\n", "a\nb"),
    (FastTextLabelModifier("__label__hq"), "a\n__label__b", "__label__hq a  b"),
    (BoilerPlateStringModifier(), "We USE cookies.\n\na\n\nb\n\nTerms of Use", "a\n\nb"),
    (BoilerPlateStringModifier(), "a\n\nPrivacy policy\n\nb", "a\n\nPrivacy policy\n\nb"),
    (BoilerPlateStringModifier(), "privacy policy", "privacy policy"),
    (BoilerPlateStringModifier(remove_if_at_top_or_bottom=False), "a\n\nuses cookies", ""),
    (BoilerPlateStringModifier(), "a\n\nLorem Ipsum dolor", ""),
    (BoilerPlateStringModifier(), "a private cookie", "a private cookie"),
]


@pytest.mark.parametrize(("modifier", "before", "after"), CASES, ids=lambda v: v.name if hasattr(v, "name") else "")
def test_a_text_becomes_what_the_definition_says(modifier, before, after):
    assert modifier.modify_document(before) == after


MARKS = (
    "a",
    " ",
    "\n",
    "\n\n\n",
    "\r\n",
    "*",
    "**",
    "_",
    "__",
    "[",
    "](",
    ")",
    "www.",
    "WwW.x",
    "http://",
    "hTTps://é",
    '"',
)
PHRASES = ("cookie", "uses CooKies", "privacy policy", "lorem ipsum", "ſ", "K", "İ", "x", "é", "terms of use")
pieces = st.sampled_from(MARKS + PHRASES)
odd_texts = st.lists(pieces, max_size=14).map("".join)


@given(texts=st.lists(odd_texts, max_size=5), modifier=st.sampled_from([case[0] for case in CASES]))
def test_every_text_that_would_change_is_a_candidate(texts, modifier):
    column = pa.chunked_array([pa.array(texts, pa.string())])
    candidates = modifier.find_candidates(column)
    changes = [modifier.modify_document(text) != text for text in texts]

    assert candidates is None or all(may for may, does in zip(candidates, changes, strict=True) if does)


def markdown_by_definition(text):
    lines = []
    for line in text.split("\n"):
        for pattern, kept in [
            (r"\*\*(.*?)\*\*", r"\1"),
            (r"\*(.*?)\*", r"\1"),
            (r"(?<!\w)(__?)(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2"),
            (r"\[.*?\]\((.*?)\)", r"\1"),
        ]:
            line = re.sub(pattern, kept, line)  # noqa: PLW2901
        lines.append(line)
    return "\n".join(lines)


MARKDOWN = st.sampled_from(["a", " ", "\n", "*", "**", "_", "_", "__", "[", "]", "(", ")", "](", "é"])


@given(st.lists(MARKDOWN).map("".join))
def test_markdown_equals_its_regular_expressions(text):
    assert MarkdownRemover().modify_document(text) == markdown_by_definition(text)


@pytest.mark.parametrize("unit", ["[", "_a ", " __a", "_", "](", "*", "[a]("])
def test_markdown_that_nothing_closes_takes_no_longer_than_other_text(unit):
    text = unit * (2_000_000 // len(unit))

    assert len(MarkdownRemover().modify_document(text)) <= len(text)  # or the test times out


def test_a_line_remover_takes_a_list():
    with pytest.raises(ConfigError, match="expected patterns to be a list of lines; got 'abc'"):
        LineRemover("abc")
