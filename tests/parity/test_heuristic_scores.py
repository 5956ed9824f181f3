"""The heuristic filters give the scores and decisions recorded from the tool users compare with.

Each row of the data holds a text and, for every filter that gave an answer on it, the score and whether it was kept.
"""

import json
from pathlib import Path

import pytest

from gristmill.stages.text.filters import heuristic
from gristmill.stages.text.filters.heuristic import CommonEnglishWordsFilter

DATA = Path(__file__).parents[1] / "data" / "heuristic_scores.jsonl"
ROWS = [json.loads(line) for line in DATA.read_bytes().splitlines()]  # bytes: texts hold U+2028, a line end to str
FILTERS = sorted({name for row in ROWS for name in row["scores"]})
WITH_PARAMETERS = {"CommonEnglishWordsFilter(stop_at_false=False)": CommonEnglishWordsFilter(stop_at_false=False)}


@pytest.mark.parametrize("name", FILTERS)
def test_scores_and_decisions_equal_the_recorded_ones(name):
    judge = WITH_PARAMETERS.get(name) or getattr(heuristic, name)()
    recorded = [(row["text"], *row["scores"][name]) for row in ROWS if name in row["scores"]]
    found = [(text, judge.score_document(text)) for text, _, _ in recorded]

    assert [score for _, score in found] == pytest.approx([score for _, score, _ in recorded], rel=0, abs=1e-12)
    assert [judge.keep_document(score) for _, score in found] == [kept for _, _, kept in recorded]


def test_every_shipped_filter_without_required_parameters_is_compared():
    assert set(heuristic.__all__) - {name.partition("(")[0] for name in FILTERS} == {"SubstringFilter"}
