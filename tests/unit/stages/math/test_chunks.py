"""Long texts in chunks, and chunks put together again: nothing is lost without a reason, in one batch or in many."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.context import StageContext
from gristmill.stages.math.modifiers import ChunkMergeStage, TokenSplitterStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch
from gristmill.testing.tiny_models import write_tiny_tokenizer

WORDS = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(directory, WORDS)
    return str(directory)


@pytest.fixture(scope="module")
def splitter(tokenizer):
    return TokenSplitterStage(tokenizer, max_length_tokens=3)


def batch_of(**columns):
    return DocumentBatch("d", pa.table(columns))


def rows_of(batch):
    return batch.to_pyarrow().to_pylist()


# Splitting


def test_a_text_is_cut_between_paragraphs_into_rows_of_few_enough_tokens(splitter):
    rows = rows_of(splitter.process(batch_of(url=["u"], text=["a b\n\nc\n\nd e\n\na"])))

    assert [(row["text"], row["chunk_id"], row["n_tokens"]) for row in rows] == [
        ("a b\n\nc\n\n", 0, 3),
        ("d e\n\na", 1, 3),
    ]
    assert {row["url"] for row in rows} == {"u"}


def test_a_paragraph_that_is_too_long_is_a_row_by_itself(splitter):
    rows = rows_of(splitter.process(batch_of(text=["a\n\na b c d e\n\nb"])))

    assert [(row["text"], row["n_tokens"]) for row in rows] == [("a\n\n", 1), ("a b c d e\n\n", 5), ("b", 1)]


def test_a_text_that_is_missing_or_blank_is_one_row_without_tokens(splitter):
    rows = rows_of(splitter.process(batch_of(text=pa.array([None, "", " \n\n ", "a"], pa.string()))))

    assert [(row["text"], row["chunk_id"], row["n_tokens"]) for row in rows] == [
        (None, 0, 0),
        ("", 0, 0),
        (" \n\n ", 0, 0),
        ("a", 0, 1),
    ]


def test_an_empty_batch_goes_through(splitter):
    assert rows_of(splitter.process(batch_of(text=pa.array([], pa.string())))) == []


@given(paragraphs=st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join), max_size=12))
def test_joined_the_rows_are_the_text_without_its_blank_paragraphs(splitter, paragraphs):
    rows = rows_of(splitter.process(batch_of(text=["\n\n".join(paragraphs)])))
    whole = "".join(row["text"] for row in rows)

    expected = [paragraph for paragraph in paragraphs if paragraph.strip()]
    assert [part for part in whole.split("\n\n") if part] == expected
    assert [row["chunk_id"] for row in rows] == list(range(len(rows)))
    assert all(row["n_tokens"] <= 3 or "\n\n" not in row["text"].strip() for row in rows)
    assert sum(row["n_tokens"] for row in rows) == sum(len(paragraph.split()) for paragraph in paragraphs)


def test_a_tokenizer_beside_the_program_is_found_by_workers_that_are_elsewhere(tokenizer, monkeypatch):
    monkeypatch.chdir(Path(tokenizer).parent)
    splitter = TokenSplitterStage(Path(tokenizer).name, max_length_tokens=3)
    splitter.make_paths_absolute()
    monkeypatch.chdir("/")

    assert rows_of(splitter.process(batch_of(text=["a b"])))[0]["n_tokens"] == 2


@pytest.mark.parametrize(("options", "message"), [({"max_length_tokens": 0}, "≥ 1"), ({"separator": ""}, "separator")])
def test_a_mistake_is_refused_when_the_stage_is_made(tokenizer, options, message):
    with pytest.raises(ConfigError, match=message):
        TokenSplitterStage(tokenizer, **options)


# Merging


def chunks(*rows):
    """Rows of (url, chunk_id, cleaned_text); the raw text and a count go with each."""
    table = {
        "url": [row[0] for row in rows],
        "chunk_id": [row[1] for row in rows],
        "cleaned_text": pa.array([row[2] for row in rows], pa.string()),
        "text": [f"raw {row[1]}" for row in rows],
        "num_input_tokens": [10] * len(rows),
        "lang": ["en"] * len(rows),
    }
    return DocumentBatch("d", pa.table(table))


def merge(batch, **options):
    stage = ChunkMergeStage(**options)
    stage.context = StageContext()
    return rows_of(stage.process(batch))


def test_chunks_are_joined_in_their_order_and_counts_added_up():
    rows = merge(chunks(("u", 2, "three"), ("v", 0, "other"), ("u", 0, "one"), ("u", 1, "two")))

    assert [(row["url"], row["cleaned_text"], row["text"], row["num_input_tokens"]) for row in rows] == [
        ("u", "one\ntwo\nthree", "raw 0\nraw 1\nraw 2", 30),
        ("v", "other", "raw 0", 10),
    ]


def test_chunks_without_content_and_repeated_ones_are_left_out():
    rows = merge(
        chunks(("u", 0, "one"), ("u", 0, "again"), ("u", 1, "NO USEFUL CONTENT"), ("u", 2, None), ("v", 0, "\n"))
    )

    assert [(row["url"], row["cleaned_text"]) for row in rows] == [("u", "one")]


def test_a_row_without_a_key_stays_alone():
    assert [row["cleaned_text"] for row in merge(chunks((None, 0, "one"), (None, 1, "two")))] == ["one", "two"]


def test_a_document_that_is_too_long_is_left_out():
    rows = merge(chunks(("u", 0, "abc"), ("u", 1, "def"), ("v", 0, "abc")), max_text_length=6)

    assert [row["url"] for row in rows] == ["v"]


@pytest.mark.slow
def test_in_a_pipeline_chunks_meet_from_any_file_and_every_row_is_in_the_books(tmp_path, tokenizer):
    (tmp_path / "in").mkdir()
    texts = {"u": "a b\n\nc\n\nd e", "v": "a", "w": "", "x": "a b c\n\nd e a\n\nb"}
    for number, (url, text) in enumerate(texts.items()):
        (tmp_path / f"in/{number}.jsonl").write_text(
            json.dumps({"url": url, "text": text, "n": 12345678901234567890}) + "\n"
        )
    split = [JsonlReader(str(tmp_path / "in")), TokenSplitterStage(tokenizer, 3), JsonlWriter(str(tmp_path / "chunks"))]
    first = Pipeline("split", stages=split).run(quiet=True)
    merge = ChunkMergeStage("text", None)
    found = []
    for workers in (1, 2):
        out = tmp_path / f"out{workers}"
        stages = [JsonlReader(str(tmp_path / "chunks")), merge, JsonlWriter(str(out))]
        second = Pipeline("merge", stages=stages).run(LocalExecutor(num_workers=workers), quiet=True)
        found.append(
            [json.loads(line) for file in sorted(out.glob("*.jsonl")) for line in file.read_text().splitlines()]
        )

    assert (first.read, first.written) == (4, 7)
    assert (second.read, second.written) == (7, 3)
    assert second.dropped["chunk_merge"]["no_content"] == 1
    assert found[0] == found[1]
    assert sorted((row["url"], row["n"]) for row in found[0]) == [(url, 12345678901234567890) for url in "uvx"]
