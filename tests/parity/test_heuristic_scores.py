"""The heuristic filters give the scores and decisions recorded from the tool users compare with, in both forms.

Each row of the data holds a text and, for every filter that gave an answer on it, the score and whether it was kept.
"""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.stages.text.filters import heuristic
from gristmill.stages.text.judging.statistics import TextColumn, measure

DATA = Path(__file__).parents[1] / "data" / "heuristic_scores.jsonl"
ROWS = [json.loads(line) for line in DATA.read_bytes().splitlines()]  # bytes: texts hold U+2028, a line end to str
FILTERS = sorted({name for row in ROWS for name in row["scores"]})
PARAMETER = re.compile(r"(\w+)=([^,)]+)")


def make(name):
    """`WordCountFilter`, or a filter with its parameters: `RepeatingTopNGramsFilter(n=2, ...)`."""
    parameters = {key: json.loads(value.lower()) for key, value in PARAMETER.findall(name)}
    return getattr(heuristic, name.partition("(")[0])(**parameters)


@pytest.mark.parametrize("name", FILTERS)
def test_scores_and_decisions_of_single_documents_equal_the_recorded_ones(name):
    judge = make(name)
    recorded = [(row["text"], *row["scores"][name]) for row in ROWS if name in row["scores"]]
    found = [judge.score_document(text) for text, _, _ in recorded]

    assert found == pytest.approx([score for _, score, _ in recorded], rel=0, abs=1e-12)
    assert [judge.keep_document(score) for score in found] == [kept for _, _, kept in recorded]


@pytest.mark.slow
@pytest.mark.parametrize("name", FILTERS)
def test_scores_and_decisions_of_a_column_equal_the_recorded_ones(name):
    judge = make(name)
    recorded = [(row["text"], *row["scores"][name]) for row in ROWS if name in row["scores"]]
    texts = TextColumn.of(pa.chunked_array([[text for text, _, _ in recorded]], pa.string()))
    found = judge.score_counts(measure(texts, judge.statistics()))

    assert found.tolist() == pytest.approx([score for _, score, _ in recorded], rel=0, abs=1e-12)
    assert judge.keep_column(found).tolist() == [kept for _, _, kept in recorded]


def test_every_shipped_filter_without_required_parameters_is_compared():
    assert set(heuristic.__all__) - {name.partition("(")[0] for name in FILTERS} == {"SubstringFilter"}
