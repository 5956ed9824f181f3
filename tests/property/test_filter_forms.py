"""A filter says the same of a text whether it is given one document or a column of them."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.heuristic_filters import FILTERS, HARD_TEXTS, PIECES

from gristmill.stages.text.judging.document_filter import has_column_form
from gristmill.stages.text.judging.statistics import TextColumn, measure

pytestmark = pytest.mark.slow

IN_COLUMNS = [judge for judge in FILTERS if has_column_form(judge)]
STATISTICS = {statistic for judge in IN_COLUMNS for statistic in judge.statistics()}

# Not `st.characters`: making its table takes Hypothesis seconds on a fresh checkout.
characters = st.integers(0, 0x10FFFF).filter(lambda code: not 0xD800 <= code <= 0xDFFF).map(chr)
texts = st.lists(st.sampled_from(PIECES) | characters, max_size=40).map("".join)


def both_forms(documents):
    counts = measure(TextColumn.of(pa.chunked_array([documents], pa.string())), STATISTICS)
    for judge in IN_COLUMNS:
        scores = judge.score_counts(counts)
        yield judge, scores.tolist(), [judge.score_document("" if text is None else text) for text in documents]
        kept = judge.keep_column(scores).tolist()
        yield judge, kept, [judge.keep_document(score) for score in scores.tolist()]


@settings(max_examples=300, deadline=None)
@given(documents=st.lists(texts, min_size=1, max_size=4))
def test_both_forms_agree_on_any_text(documents):
    for judge, in_column, one_by_one in both_forms(documents):
        assert in_column == one_by_one, judge


def test_both_forms_agree_on_hard_texts():
    for judge, in_column, one_by_one in both_forms([*HARD_TEXTS.values(), None]):
        assert in_column == one_by_one, judge


@pytest.mark.parametrize("size", [61, 62, 63, 64, 65, 127, 128, 129])
@pytest.mark.parametrize("piece", ["a", "\u3000", "\xa0", "é", " ", "the ", "# ", "\u2028x"])
def test_both_forms_agree_wherever_a_block_of_bytes_ends(size, piece):
    documents = ["a" * (size - k) + piece + tail for k in range(4) for tail in ("", "b", " b", "\u3000")]
    for judge, in_column, one_by_one in both_forms(documents):
        assert in_column == one_by_one, judge
