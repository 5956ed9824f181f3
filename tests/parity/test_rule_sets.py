"""Rule sets give the decisions, reasons and texts recorded from datatrove; words and sentences are those of spaCy.

Each row of the data holds a text and what the tools printed for it; `make conformance` records and extends it.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.kernels.tokens.english import split_english
from gristmill.stages.text.rules import ApplyRules, C4Quality, FineWebQuality, GopherQuality, GopherRepetition
from gristmill.stages.text.rules.c4 import count_sentences
from gristmill.tasks import DocumentBatch

DATA = Path(__file__).parents[1] / "data" / "rule_sets.jsonl"
ROWS = [json.loads(line) for line in DATA.read_bytes().splitlines()]
SETS = {
    "GopherQuality": GopherQuality(),
    "GopherRepetition": GopherRepetition(),
    "C4Quality": C4Quality(),
    "C4Quality without end marks": C4Quality(filter_no_terminal_punct=False),
    "FineWebQuality": FineWebQuality(),
    "FineWebQuality of the paper": FineWebQuality(char_duplicates_ratio=0.1),
}


def recorded(name):
    """(text, reason, text that is left) wherever the tool gave an answer."""
    answers = [(row["text"], *row["verdicts"][name]) for row in ROWS if name in row["verdicts"]]
    return [(text, reason, *(rest or [text] * (reason is None))) for text, reason, *rest in answers]


def test_words_and_sentences_equal_the_recorded_ones():
    for row in ROWS:
        words = [token for token in split_english(row["text"]) if not token.isspace()]
        assert words == row.get("words", words)  # recorded for the shorter texts
        assert count_sentences(row["text"]) == row["sentences"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_the_stage_gives_the_recorded_verdicts(name):
    texts = [text for text, *_ in recorded(name)]
    stage = ApplyRules(SETS[name])
    stage.context.keep_rejects = True
    kept = stage.process(DocumentBatch("d", pa.table({"id": range(len(texts)), "text": texts}))).to_pyarrow()
    found = dict(zip(kept["id"].to_pylist(), ([None, text] for text in kept["text"].to_pylist()), strict=True))
    for rejected in stage.context.rejects:
        found |= {row: [rejected.reason] for row in rejected.items.to_pyarrow()["id"].to_pylist()}

    assert [found[row] for row in range(len(texts))] == [answer for _, *answer in recorded(name)]


@pytest.mark.parametrize("name", SETS)
def test_the_definition_gives_the_recorded_verdicts(name):
    for text, *verdict in recorded(name):
        reason = SETS[name].judge_document(text).reason
        assert [reason, *([SETS[name].rewrite_document(text)] if reason is None else [])] == verdict


def test_the_recorded_texts_bring_out_most_reasons():
    seen = {row["verdicts"][name][0] for row in ROWS for name in row["verdicts"]}
    named = {rule.reason for rules in SETS.values() for rule in rules.rules()}

    assert len(named & seen) > len(named) / 2
