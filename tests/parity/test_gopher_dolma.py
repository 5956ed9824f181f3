"""The measures of `DolmaGopher` are the attributes recorded from the taggers gopher_v1 and gopher_v2 of dolma 1.2.1."""

import json
from pathlib import Path

import pytest

from gristmill.stages.text.rules import DolmaGopher

DATA = Path(__file__).parents[1] / "data" / "gopher_dolma.jsonl"
ROWS = [json.loads(line) for line in DATA.read_bytes().splitlines()]


@pytest.mark.parametrize("tagger", ["gopher_v1", "gopher_v2"])
def test_measures_equal_the_recorded_attributes(tagger):
    rules = DolmaGopher(tagger=tagger)
    for row in ROWS:
        measures = rules.measure_document(row["text"])
        found = {rule.reason: measures[rule.measure] for rule in rules.rules() if rule.reason in row[tagger]}

        assert found == pytest.approx(row[tagger], rel=0, abs=1e-12)


def test_a_text_too_short_for_an_ngram_has_no_repeated_one():
    short = next(row for row in ROWS if row["text"] == "a")

    assert "fraction_of_characters_in_duplicate_5grams" not in short["gopher_v2"]
    assert DolmaGopher().measure_document("a")["share_of_duplicated_5_grams"] == 0
