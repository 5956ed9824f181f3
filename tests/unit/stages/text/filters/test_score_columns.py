"""A score of several parts is a typed column for each, and can be judged again from those columns."""

import json
from typing import ClassVar, TypedDict

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import DocumentFilter, Filter, Score, ScoreFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch


class Guess(TypedDict):
    script: str
    share: float


class ScriptFilter(DocumentFilter[Guess]):
    """Keep texts that are mostly Latin."""

    score_type: ClassVar[pa.DataType] = pa.struct([("script", pa.string()), ("share", pa.float64())])

    def score_document(self, text):
        share = sum(character.isascii() for character in text) / len(text) if text else 0.0
        return {"script": "latin" if share > 0.5 else "other", "share": share}

    def keep_document(self, score):
        return score["script"] == "latin" and score["share"] >= 0.9


def batch(*texts):
    return DocumentBatch("test", pa.table({"text": pa.array(texts, pa.string())}))


@pytest.mark.parametrize("stage", [Score(ScriptFilter(), "script"), ScoreFilter(ScriptFilter(), score_field="script")])
def test_every_part_is_a_column_of_its_own_type(stage):
    result = stage.process(batch("abcd"))

    assert stage.outputs() == (["data"], ["script", "script_share"])
    assert [result.column(name).type for name in ("script", "script_share")] == [pa.string(), pa.float64()]
    assert [result.column(name).to_pylist() for name in ("script", "script_share")] == [["latin"], [1.0]]


def test_an_empty_batch_has_the_columns_too():
    result = ScoreFilter(ScriptFilter(), score_field="script").process(batch())

    assert result.get_columns() == ["text", "script", "script_share"]


def test_the_columns_can_be_judged_later():
    scored = Score(ScriptFilter(), "script").process(batch("abcd", "äöüx", "abcdefghijklmnopqrsä"))
    stage = Filter(ScriptFilter(), "script")

    assert stage.inputs() == (["data"], ["script", "script_share"])
    assert stage.process(scored).column("script_share").to_pylist() == [1.0, 0.95]


def test_a_missing_first_part_is_a_missing_score():
    table = pa.table({"script": pa.array([None, "latin"]), "script_share": pa.array([1.0, 1.0])})
    stage = Filter(ScriptFilter(), "script")

    assert stage.process(DocumentBatch("test", table)).num_items == 1
    assert stage.context.dropped == {"null_score": 1}


def test_a_reject_is_written_with_all_parts(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "äöüx"}\n')
    stages = [JsonlReader(str(tmp_path / "in.jsonl")), ScoreFilter(ScriptFilter()), JsonlWriter(str(tmp_path / "out"))]
    Pipeline("rejects", stages=stages).run(LocalExecutor(num_workers=0), rejects_path=tmp_path / "rejects")
    [file] = (tmp_path / "rejects").rglob("*.jsonl")

    assert json.loads(json.loads(file.read_text())["reject_value"]) == {"script": "other", "share": 0.25}


def test_a_reject_shows_all_parts():
    stage = ScoreFilter(ScriptFilter())
    stage.context.keep_rejects = True
    stage.process(batch("äöüx"))

    assert stage.context.rejects[0].values == ({"script": "other", "share": 0.25},)
