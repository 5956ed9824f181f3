"""Columns nobody declared stay untouched and types survive every way through."""

import json

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter, ParquetWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)

# A Parquet column of whole and other numbers holds floats, so "x" has no whole ones.
LINES = [
    '{"id": "00123", "date": "2024-01-01", "text": "one two", "big": 123456789012345678901234567890, "x": 1.0}',
    '{"id":"1e5","date":"2024-01-01T00:00:00Z","text":"three","big":9007199254740993,"nested":{"b":[1,null],"a":{}}}',
    '{ "id" : "true", "date":"null", "text":"\\u00e9\\ud83d\\ude00 \\n", "big":-1, "x":0.1, "flag":false, "": ""}',
    '{"text": "only text", "extra": [], "nested": null, "x": 3.5}',
]


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text("".join(line + "\n" for line in LINES), encoding="utf-8")
    return tmp_path / "in"


def run(*stages):
    return Pipeline("types", stages=list(stages)).run(HERE)


def test_jsonl_to_jsonl_keeps_every_byte(source, tmp_path):
    """Unknown fields pass through JSONL byte for byte; big integers stay exact; ids and dates stay strings."""
    run(JsonlReader(str(source)), ScoreFilter(WordCountFilter(min_words=1)), JsonlWriter(str(tmp_path / "out")))

    assert (tmp_path / "out" / "a.jsonl").read_bytes() == (source / "a.jsonl").read_bytes()


def test_an_added_column_leaves_the_text_of_the_others(source, tmp_path):
    """A stage never changes a column it did not declare."""
    run(JsonlReader(str(source)), Score(len, "chars"), JsonlWriter(str(tmp_path / "out")))
    written = (tmp_path / "out" / "a.jsonl").read_text(encoding="utf-8").splitlines()

    for line, before in zip(written, LINES, strict=True):
        assert line.startswith(before.rstrip().removesuffix("}").rstrip())
        assert json.loads(line) == {**json.loads(before), "chars": len(json.loads(before)["text"])}


def test_jsonl_to_parquet_to_jsonl_keeps_every_value(source, tmp_path):
    """Types survive: "00123" stays a string, "2024-01-01" stays a string, big integers stay exact."""
    run(JsonlReader(str(source)), ParquetWriter(str(tmp_path / "parquet")))
    run(ParquetReader(str(tmp_path / "parquet")), JsonlWriter(str(tmp_path / "back")))
    back = [json.loads(line) for line in (tmp_path / "back" / "a.jsonl").read_text(encoding="utf-8").splitlines()]

    for after, line in zip(back, LINES, strict=True):
        before = json.loads(line)
        assert {key: value for key, value in after.items() if value is not None} == {
            key: value for key, value in before.items() if value is not None
        }
        assert [(key, type(after[key])) for key in before] == [(key, type(before[key])) for key in before]


class LooksAtTheBeginning(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Judges the first three characters, through pandas, and adds a label."""

    name = "looks_at_the_beginning"

    def process(self, task):
        frame = task.to_pandas()
        frame["label"] = frame["text"].str[:3]
        return DocumentBatch(task.dataset_name, frame)


def test_a_stage_that_goes_through_pandas_changes_only_what_it_adds(source, tmp_path):
    """A classifier that looks at the first characters leaves the text whole."""
    run(JsonlReader(str(source)), LooksAtTheBeginning(), JsonlWriter(str(tmp_path / "out")))
    written = (tmp_path / "out" / "a.jsonl").read_text(encoding="utf-8").splitlines()

    for line, before in zip(written, LINES, strict=True):
        assert line.startswith(before.rstrip().removesuffix("}").rstrip())
        assert json.loads(line)["label"] == json.loads(before)["text"][:3]
