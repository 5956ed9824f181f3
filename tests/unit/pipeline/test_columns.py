"""A column nobody provides is found before the run, and no column is missed that may be there."""

import pytest
from tests.jsonl_files import write_documents

from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import Filter, Score, ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io.reader import JsonlReader, ParquetReader
from gristmill.stages.text.io.writer import JsonlWriter
from gristmill.tasks import DocumentBatch


@pytest.fixture
def source(tmp_path):
    write_documents(tmp_path / "a.jsonl", [{"id": 1, "text": "a b"}, {"id": 2, "title": "t"}])
    return str(tmp_path / "a.jsonl")


def planned(*stages):
    return Pipeline("p", stages=list(stages)).plan()


def test_an_unknown_column_is_an_error_with_the_nearest_name(source):
    message = (
        r"^word_count: expected a column 'txt' from jsonl_reader; got \['id', 'text', 'title'\]; did you mean 'text'\?$"
    )
    with pytest.raises(ConfigError, match=message):
        planned(JsonlReader(source), ScoreFilter(WordCountFilter(), text_field="txt"))


def test_a_column_not_among_the_fields_read_is_an_error(source):
    with pytest.raises(ConfigError, match="expected a column 'text' from jsonl_reader"):
        planned(JsonlReader(source, fields=["id"]), ScoreFilter(WordCountFilter()))


def test_a_parquet_files_columns_are_known(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"body": ["a"]}), tmp_path / "a.parquet")

    with pytest.raises(ConfigError, match=r"expected a column 'text' from parquet_reader; got \['body'\]"):
        planned(ParquetReader(str(tmp_path)), ScoreFilter(WordCountFilter()))


def test_a_column_an_earlier_stage_adds_is_there(source):
    planned(JsonlReader(source), Score(len, "chars"), Filter(bool, "chars"))


def test_a_misspelt_column_of_an_earlier_stage_is_an_error(source):
    with pytest.raises(ConfigError, match=r"did you mean 'chars'\?$"):
        planned(JsonlReader(source), Score(len, "chars"), Filter(bool, "chart"))


class _AddsAnything(ProcessingStage[DocumentBatch, DocumentBatch]):
    def process(self, task):
        return task


def test_behind_a_users_own_stage_any_column_may_exist(source):
    planned(JsonlReader(source), _AddsAnything(), Filter(bool, "whatever"))


def test_a_writer_checks_the_fields_it_writes(source, tmp_path):
    with pytest.raises(ConfigError, match=r"expected a column 'titel'.*did you mean 'title'\?$"):
        planned(JsonlReader(source), JsonlWriter(str(tmp_path / "out"), fields=["titel"]))
