"""With compat=True, texts of papers equal those recorded from NeMo Curator 1.4 (tools/arxiv_fixture.py)."""

import json
from pathlib import Path

import pytest

from gristmill.stages.text.download.arxiv.as_nemo_curator import as_nemo_curator

DATA = Path(__file__).parents[1] / "data" / "arxiv_texts.jsonl"
ROWS = [json.loads(line) for line in DATA.read_bytes().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["files"][0][:40])
def test_the_text_is_the_recorded_one(row):
    assert as_nemo_curator(row["files"]) == row["text"]
