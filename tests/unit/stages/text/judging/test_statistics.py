"""Counting in compiled code is exact for every character there is, and for texts of every size."""

import numpy as np
import pyarrow as pa
import pytest
from tests.heuristic_filters import HARD_TEXTS

from gristmill.kernels.text.layout import FILLED_LINES
from gristmill.stages.text.judging import statistics as s
from gristmill.stages.text.judging.statistics import TextColumn, measure
from gristmill.stages.text.judging.tables import letters, phrase_table

pytestmark = pytest.mark.slow

EVERY_CHARACTER = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]


def column(texts):
    return TextColumn.of(pa.chunked_array([texts], pa.string()))


def test_a_small_pass_counts_what_the_larger_one_does():
    texts = column([*HARD_TEXTS.values(), None, *(f"{c}\n a{c}\n\n{c}{c}" for c in EVERY_CHARACTER[:0x3100])])
    small, larger = (s.NUM_CHARS, *s.pieces(FILLED_LINES)), (s.PLAIN_CHARS, s.BULLET_LINES)
    alone, together = measure(texts, small), measure(texts, [*small, *larger])

    assert set(alone) == set(small)
    assert set(together) > {*small, *larger}
    for found in small:
        assert alone[found].tolist() == together[found].tolist(), found
    shapes = measure(texts, [s.short_lines(30), s.HASHES])
    assert shapes[s.NUM_LINES].tolist() == alone[s.NUM_LINES].tolist()
    assert shapes[s.NUM_CHARS].tolist() == alone[s.NUM_CHARS].tolist()


def test_every_character_separates_words_if_and_only_if_it_is_white_space():
    counts = measure(column([f"a{character}b" for character in EVERY_CHARACTER]), [s.NUM_WORDS])

    assert counts[s.NUM_WORDS].tolist() == [len(f"a{character}b".split()) for character in EVERY_CHARACTER]


def test_every_character_is_a_letter_if_and_only_if_python_says_so():
    counts = measure(column(EVERY_CHARACTER), [s.WORDS_WITH_LETTER])

    assert counts[s.WORDS_WITH_LETTER].tolist() == [character.isalpha() for character in EVERY_CHARACTER]


def test_no_letter_is_beyond_the_table_of_letters():
    assert not any(chr(code).isalpha() for code in range(len(letters()) * 8, 0x110000))


def test_every_character_is_blank_at_the_end_of_a_line_if_and_only_if_it_is_white_space():
    counts = measure(column([f"a.{character}" for character in EVERY_CHARACTER]), [s.LINES_WITHOUT_END_MARK])
    expected = [not f"a.{c}".rstrip().endswith((".", "?", "!", '"', "'")) for c in EVERY_CHARACTER]

    assert counts[s.LINES_WITHOUT_END_MARK].tolist() == expected


def test_a_pass_counts_only_the_rows_it_is_given():
    texts = column(["one", "one two", "one two three"]).take(np.array([0, 2]))

    assert measure(texts, [s.NUM_WORDS])[s.NUM_WORDS].tolist() == [1, 3]


@pytest.mark.parametrize("texts", [[], [""], [None], ["", None, "a"]])
def test_columns_without_text_count_as_empty(texts):
    counts = measure(column(texts), [s.NUM_WORDS, s.NUM_LINES, s.NUM_PARAGRAPHS, s.duplicate_ngram_chars(2)])

    assert counts[s.NUM_WORDS].tolist() == [int(bool(text)) for text in texts]
    assert counts[s.NUM_PARAGRAPHS].tolist() == [1] * len(texts)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.null()])
def test_all_types_of_text_count_alike(kind):
    texts = [None, None] if kind == pa.null() else ["a b", None]
    chunked = pa.chunked_array([pa.array(texts[:1], kind), pa.array(texts[1:], kind)])

    assert measure(TextColumn.of(chunked), [s.NUM_WORDS])[s.NUM_WORDS].tolist() == [2 * (kind != pa.null()), 0]


def test_what_lies_behind_a_null_is_not_counted():
    data, offsets = pa.py_buffer(b"hidden words"), pa.py_buffer(np.array([0, 12], np.int32))
    hidden = pa.Array.from_buffers(pa.string(), 1, [pa.py_buffer(b"\x00"), offsets, data])

    assert measure(TextColumn.of(pa.chunked_array([hidden])), [s.NUM_WORDS])[s.NUM_WORDS].tolist() == [0]


def test_numbers_are_no_texts():
    assert TextColumn.of(pa.chunked_array([[1, 2]])) is None


def test_a_slice_of_a_column_is_counted_from_where_it_begins():
    sliced = pa.chunked_array([pa.array(["a", "b c", "d e f"]).slice(1)])

    assert measure(TextColumn.of(sliced), [s.NUM_WORDS])[s.NUM_WORDS].tolist() == [2, 3]


def test_ten_megabytes_on_one_line_are_counted():
    text = " ".join(f"w{k}" for k in range(1_300_000))
    wanted = [s.NUM_CHARS, s.NUM_WORDS, s.NUM_LINES, s.duplicate_ngram_chars(2), s.top_ngram_chars(2)]
    counts = {found.name: values.tolist() for found, values in measure(column([text]), wanted).items()}

    assert counts["num_chars"] == [len(text)]
    assert (counts["num_words"], counts["num_lines"]) == ([1_300_000], [1])
    # Nothing repeats, so the top n-gram is the first, "w0 w1", which also begins what follows w0 nowhere else.
    assert counts["duplicate_ngram_chars"] == [0]
    assert counts["top_ngram_chars"] == [text.count("w0 w1") * 5]


def test_a_million_lines_are_counted():
    counts = measure(column(["line\n" * 1_000_000]), [s.NUM_LINES, s.DISTINCT_LINES, s.NUM_PARAGRAPHS])

    assert counts[s.NUM_LINES].tolist() == [1_000_000]
    assert counts[s.DISTINCT_LINES].tolist() == [1]


@pytest.mark.parametrize("phrases", [[("a", 0)], [("x" * 256, 0)]])
def test_phrases_of_impossible_length_are_refused(phrases):
    with pytest.raises(ValueError, match="expected phrases of 2 to 255 bytes"):
        phrase_table(phrases)
