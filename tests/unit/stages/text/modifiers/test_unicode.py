"""UnicodeReformatter answers as ftfy does, asking it only where it must."""

import ftfy
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import ConfigError
from gristmill.stages.text.modifiers import UnicodeReformatter

PLAIN = (
    "a",
    "B",
    " ",
    "\n",
    "\r\n",
    "&",
    "&amp;",
    "&eacute;",
    "&#x2019;",
    "AT&T;",
    "<",
    "\x1b[36m",
    "\x00",
    "\x07",
    "\x7f",
)
BAD = (
    "Ã",
    "Â",
    "Ã©",
    "â€™",
    "â€œ",
    "Ã ",
    "Â ",
    "сРё",
    "вЂ",
    "œ",
    "Œ1",
    "‚Ä",
    "√±",
    "à²",
    "ØÙ",
    "×²",
    "°",
    "Ã¡",
    "\x85",
)
OTHER = (
    "é",
    "ﬁ",
    "ＬＯ",
    "ｱ",
    "’",
    "“",
    "…",
    "\u2028",
    "\ufeff",
    "\ufffc",
    "e\u0301",
    "中文",
    "\U0001f4a9",
    "\u206a",
    "ʼn",
    "\ud800",
)
pieces = st.sampled_from(PLAIN + BAD + OTHER)
texts = st.lists(pieces, max_size=10).map("".join)
OPTIONS = [
    {},
    {"unescape_html": False},
    {"unescape_html": True},
    {"fix_encoding": False, "fix_c1_controls": False},
    {"fix_latin_ligatures": True, "fix_character_width": True, "uncurl_quotes": True, "fix_line_breaks": True},
    {"normalization": "NFC"},
    {"normalization": "NFKD", "remove_control_chars": False, "remove_terminal_escapes": False},
    {"max_decode_length": 3},
    {"fix_encoding": False, "fix_c1_controls": False, "unescape_html": False, "remove_control_chars": False}
    | {"remove_terminal_escapes": False, "fix_surrogates": False},
    {"explain": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(text=texts)
def test_the_answer_is_ftfys(options, text):
    config = ftfy.TextFixerConfig(**{"normalization": None, "uncurl_quotes": False, **_off(), **options})

    assert UnicodeReformatter(**options).modify_document(text) == ftfy.fix_text(text, config)


def _off():
    return {"fix_latin_ligatures": False, "fix_character_width": False, "fix_line_breaks": False}


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@given(texts=st.lists(texts, max_size=4))
def test_every_text_that_would_change_is_a_candidate(options, texts):
    modifier = UnicodeReformatter(**options)
    texts = [text.replace("\ud800", "") for text in texts]  # a column cannot hold it
    candidates = modifier.find_candidates(pa.chunked_array([pa.array(texts, pa.string())]))

    assert all(may or modifier.modify_document(text) == text for may, text in zip(candidates, texts, strict=True))


def test_good_text_is_not_even_looked_at():
    column = pa.chunked_array([pa.array(["Fish & chips;\n\tnothing else.", "it’s “好” naïve", "itâ€™s", "\x07"])])

    assert UnicodeReformatter().find_candidates(column).tolist() == [False, False, True, True]


def test_a_config_object_stands_for_all_options():
    modifier = UnicodeReformatter(ftfy.TextFixerConfig(uncurl_quotes=True))

    assert modifier.modify_document("it’s") == "it's"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_decode_length": 0}, "expected max_decode_length ≥ 1; got 0"),
        ({"unescape_html": "no"}, "expected unescape_html 'auto', true or false; got 'no'"),
    ],
)
def test_an_impossible_option_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        UnicodeReformatter(**options)
