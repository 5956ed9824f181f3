"""What is written as plain text is read again as it was; what cannot be a line is not made one."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jsonl_files import read_documents, write_documents
from tests.strategies import texts

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, StageError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, TextReader, TextWriter
from gristmill.tasks import DocumentBatch

HERE = LocalExecutor(num_workers=0)
hostile = texts | st.sampled_from(["", "\ufeff", "\ufeffa\n", "\r\n", "\n", "a\rb", "last\r", "\x00"])
lines = texts.filter(lambda text: text.strip(" \t\r") and "\n" not in text and not text.endswith("\r"))


def batch_of(texts, task_id="part-0"):
    batch = DocumentBatch("d", pa.table({"id": [*map(str, range(len(texts)))], "text": pa.array(texts, pa.string())}))
    batch.task_id = task_id
    return batch


def written(directory, texts, **options):
    return [Path(path) for path in TextWriter(str(directory), **options).process(batch_of(texts)).data]


def read(directory, **options):
    listing, reading = TextReader(str(directory), **options).decompose()
    batches = [reading.process(task) for task in listing.partitions()]
    assert not reading.context.quarantined
    return [text for batch in batches for text in batch.column("text").to_pylist()]


@given(st.lists(hostile, min_size=1, max_size=6))
def test_a_file_for_each_document_is_read_again_as_it_was(documents):
    with tempfile.TemporaryDirectory() as directory:
        written(directory, documents)
        assert read(directory) == documents


@given(st.lists(lines | st.sampled_from(["\ufeffa", "\ufeff"]), min_size=1, max_size=6), st.integers(1, 60))
def test_a_line_for_each_document_is_read_again_as_it_was(documents, most):
    with tempfile.TemporaryDirectory() as directory:
        [file] = written(f"{directory}/one", documents, document_per="line")
        several = written(f"{directory}/several", documents, document_per="line", max_file_bytes=most)
        assert read(file.parent, document_per="line") == documents
        if not any(text.startswith("\ufeff") for text in documents[1:]):  # at the start of a file it is a mark
            assert read(several[0].parent, document_per="line") == documents


def test_files_are_named_after_the_batch(tmp_path):
    assert [file.name for file in written(tmp_path / "a", ["x"])] == ["part-0.txt"]
    assert [file.name for file in written(tmp_path / "b", ["x", "y"])] == ["part-0.0000.txt", "part-0.0001.txt"]
    assert (tmp_path / "b" / "part-0.0001.txt").read_bytes() == b"y"


@pytest.mark.parametrize("text", ["two\nlines", "", "  ", "ends\r", None])
def test_a_text_that_cannot_be_a_line_is_named(tmp_path, text):
    with pytest.raises(StageError, match="text_writer: expected"):
        written(tmp_path, ["good", text], document_per="line")


def test_in_a_run_only_the_texts_that_cannot_be_written_go_to_quarantine(tmp_path):
    documents = [{"id": str(n), "body": body} for n, body in enumerate(["one", "two\nlines", "three", None, "four"])]
    write_documents(tmp_path / "in" / "a.jsonl", documents)
    writer = TextWriter(str(tmp_path / "out"), text_field="body", document_per="line")
    pipeline = Pipeline("lines", stages=[JsonlReader(str(tmp_path / "in")), writer])
    result = pipeline.run(HERE, quiet=True, max_quarantined=None)

    assert (tmp_path / "out" / "a.txt").read_text() == "one\nthree\nfour\n"
    assert (result.written, result.quarantined, result.balanced) == (3, 2, True)
    assert len(read_documents(tmp_path / "out" / ".gristmill" / "quarantine")) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"document_per": "page"},
        {"max_file_bytes": 10},
        {"fields": ["text"]},
        {"document_per": "line", "max_file_bytes": "x"},
    ],
)
def test_a_mistake_is_named_when_the_writer_is_made(options):
    with pytest.raises(ConfigError, match="text_writer"):
        TextWriter("out", **options)
