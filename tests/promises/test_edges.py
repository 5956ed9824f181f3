"""Empty text, missing text, null text, an empty batch, an empty file: every stage handles them."""

import pyarrow as pa
import pytest
from tests.jsonl_files import contents, read_documents, write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.pipeline import Pipeline
from gristmill.stages.text.filters import Filter, Score, ScoreFilter, heuristic
from gristmill.stages.text.io.reader import ArrowReader, CsvReader, JsonlReader, ParquetReader, TextReader
from gristmill.stages.text.io.writer import ArrowWriter, JsonlWriter, ParquetWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
NEEDED = {"SubstringFilter": ("a", "any")}
FILTERS = [getattr(heuristic, name)(*NEEDED.get(name, ())) for name in heuristic.__all__]
ODD = ["", None, " ", "\n\n\n", "\t", "\u00a0", "\u200b", "\U0001f600", "\ud800".encode("utf-8", "replace").decode()]


def batch(*texts):
    return DocumentBatch("odd", pa.table({"text": pa.array(texts, pa.string())}))


def is_known(value):
    return value is not None


STAGES = [
    *(ScoreFilter(judge, score_field="score") for judge in FILTERS),
    *(Score(judge, "score") for judge in FILTERS),
    Score(len, "chars"),
    Filter(is_known, "text"),
    ScoreFilter(FILTERS),
]


def named(stage):
    return stage.stage_name()


@pytest.mark.parametrize("stage", STAGES, ids=named)
def test_texts_without_words_are_kept_or_dropped_and_never_fail(stage):
    """Empty text, missing text, null text: every stage handles them."""
    result = Pipeline("odd", stages=[stage]).run(HERE, initial_tasks=[batch(text) for text in ODD])

    assert result.quarantined == 0
    assert result.written + result.dropped_total == len(ODD)


@pytest.mark.parametrize("stage", STAGES, ids=named)
@pytest.mark.parametrize("empty", [batch(), batch("a b").filter([False])], ids=["made empty", "filtered to nothing"])
def test_an_empty_batch_passes_every_stage_with_its_columns(stage, empty):
    """An empty batch: every stage handles it."""
    (task,) = Pipeline("empty", stages=[stage]).run(HERE, initial_tasks=[empty])

    assert task.num_items == 0
    assert set(task.get_columns()) >= {"text", *stage.outputs()[1]}


@pytest.mark.slow
def test_documents_without_the_text_field_are_read_filtered_and_counted(tmp_path):
    """Missing text: every stage handles it."""
    write_documents(tmp_path / "in" / "a.jsonl", [{"id": 1, "text": "a b c"}, {"id": 2}, {"id": 3, "text": None}])
    write_documents(tmp_path / "in" / "b.jsonl", [{"id": 4}])
    stages = [JsonlReader(str(tmp_path / "in")), ScoreFilter(heuristic.WordCountFilter(min_words=2))]
    result = Pipeline("p", stages=[*stages, JsonlWriter(str(tmp_path / "out"))]).run(HERE)

    assert read_documents(tmp_path / "out") == [{"id": 1, "text": "a b c"}]
    assert result.dropped == {"word_count": {"null_text": 3}}


READERS = [
    (JsonlReader, "a.jsonl", b""),
    (JsonlReader, "a.jsonl", b"\n \n\n"),
    (CsvReader, "a.csv", b""),
    (CsvReader, "a.csv", b"id,text\n"),
    (TextReader, "a.txt", b""),
]


@pytest.mark.parametrize(("reader", "name", "content"), READERS)
def test_an_empty_file_is_read_and_changes_nothing(reader, name, content, tmp_path):
    """An empty file: every reader handles it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(content)
    stages = [reader(str(tmp_path / "in")), Score(len, "chars"), JsonlWriter(str(tmp_path / "out"))]
    result = Pipeline("p", stages=stages).run(HERE)

    assert result.quarantined == 0
    assert result.read == result.written


@pytest.mark.parametrize(
    ("writer", "reader"), [(JsonlWriter, JsonlReader), (ParquetWriter, ParquetReader), (ArrowWriter, ArrowReader)]
)
def test_a_reader_accepts_what_the_writer_made_of_nearly_nothing(writer, reader, tmp_path):
    """A reader never rejects the file its own writer made."""
    tasks = [batch(), batch(None), batch("")]
    result = Pipeline("p", stages=[writer(str(tmp_path / "a"))]).run(HERE, initial_tasks=tasks)
    again = Pipeline("p", stages=[reader(str(tmp_path / "a")), writer(str(tmp_path / "b"))]).run(HERE)

    assert (result.written, again.read, again.written) == (2, 2, 2)
    assert list(contents(tmp_path / "a").values()) == list(contents(tmp_path / "b").values())
