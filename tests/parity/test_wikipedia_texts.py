"""With parser="mwparserfromhell", texts equal those recorded from NeMo Curator 1.4 (tools/wikipedia_fixture.py)."""

import json
from pathlib import Path

import pytest

from gristmill.stages.text.download.wikipedia.extract import WikipediaExtractor

DATA = Path(__file__).parents[1] / "data" / "wikipedia_texts.jsonl"
ROWS = [json.loads(line) for line in DATA.read_bytes().splitlines()]
FIELDS = dict.fromkeys(("title", "id", "url", "language", "source_id"), "x")


def extracted(row, **options):
    return WikipediaExtractor(row["language"], **options).extract({**FIELDS, "raw_content": row["wikitext"]})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["wikitext"][:40])
def test_the_text_is_the_recorded_one(row):
    found = extracted(row, parser="mwparserfromhell")
    if row["text"] is None:
        assert found.reason == "empty"
    else:
        assert found == {**FIELDS, "text": row["text"]}
