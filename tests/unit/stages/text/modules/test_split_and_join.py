"""Documents can be cut into pieces and put together again, wherever the pieces have got to."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.modules import DocumentJoiner, DocumentSplitter
from gristmill.tasks import DocumentBatch, FileGroupTask

texts = st.none() | st.text(st.sampled_from("ab|é"), max_size=8)


def batch(**columns):
    return DocumentBatch("demo", pa.table(columns))


def rows(result):
    return result.to_pyarrow().to_pylist()


def read_lines(path):
    [_, reader] = JsonlReader(str(path)).decompose()
    return reader.process(FileGroupTask("demo", [str(path)]))


def test_a_text_is_cut_at_every_separator():
    result = DocumentSplitter("|").process(batch(id=["x", "y"], text=["a|b||", "c"]))

    assert [(row["id"], row["text"], row["segment_id"]) for row in rows(result)] == [
        ("x", "a", 0),
        ("x", "b", 1),
        ("x", "", 2),
        ("x", "", 3),
        ("y", "c", 0),
    ]


def test_a_separator_has_a_length():
    with pytest.raises(ConfigError, match="expected a separator of at least one character; got ''"):
        DocumentSplitter("")


@given(values=st.lists(texts, max_size=6))
def test_what_was_split_and_joined_is_what_it_was(values):
    documents = batch(id=pa.array(range(len(values)), pa.int64()), text=pa.array(values, pa.string()))
    result = DocumentJoiner("|").process(DocumentSplitter("|").process(documents))

    assert rows(result) == rows(documents)


def test_pieces_of_a_json_line_do_not_carry_the_whole_text(tmp_path):
    text = "|".join(["word"] * 2000)
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": 7, "text": text, "n": 1}) + "\n")
    result = DocumentSplitter("|").process(read_lines(tmp_path / "in.jsonl"))

    assert result.num_items == 2000
    assert result.nbytes < 20 * len(text)


def test_other_fields_of_a_json_line_keep_their_bytes(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text":"a|b","n":1.50,"id":"00123","deep":{"b":1,"a":[ ]}}\n')
    result = DocumentSplitter("|").process(read_lines(tmp_path / "in.jsonl"))
    written = JsonlWriter(str(tmp_path / "out")).process(result).data[0]

    assert Path(written).read_text().splitlines() == [
        '{"text":"a","n":1.50,"id":"00123","deep":{"b":1,"a":[ ]},"segment_id":0}',
        '{"text":"b","n":1.50,"id":"00123","deep":{"b":1,"a":[ ]},"segment_id":1}',
    ]


def test_a_column_added_before_keeps_its_type(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text":"a|b"}\n')
    times = pa.array([0], pa.timestamp("ms"))
    result = DocumentSplitter("|").process(read_lines(tmp_path / "in.jsonl").with_column("seen", times))

    assert result.column("seen").type == pa.timestamp("ms")


def test_pieces_are_joined_in_the_order_of_their_numbers():
    documents = batch(id=["x", "y", "x", "x"], text=["c", "o", "a", "b"], segment_id=[2, 0, 0, 1], n=[2, 9, 0, 1])

    assert rows(DocumentJoiner("").process(documents)) == [
        {"id": "x", "text": "abc", "n": 0},
        {"id": "y", "text": "o", "n": 9},
    ]


def test_rows_without_an_id_are_not_taken_for_one_document():
    documents = batch(id=pa.nulls(2, pa.string()), text=["a", "b"], segment_id=[0, 0])

    assert [row["text"] for row in rows(DocumentJoiner().process(documents))] == ["a", "b"]


def test_joined_pieces_are_no_longer_than_allowed():
    documents = batch(id=["x"] * 4, text=["aa", "bb", "cccc", "d"], segment_id=[0, 1, 2, 3], n=[2, 2, 4, 1])
    joiner = DocumentJoiner("-", max_length=6, length_field="n", drop_segment_id_field=False)

    assert rows(joiner.process(documents)) == [
        {"id": "x", "text": "aa-bb", "segment_id": 0, "n": 5},
        {"id": "x", "text": "cccc-d", "segment_id": 1, "n": 6},
    ]


@pytest.mark.parametrize("options", [{"max_length": 5}, {"length_field": "n"}])
def test_a_length_needs_a_limit_and_a_limit_a_length(options):
    with pytest.raises(ConfigError, match="expected max_length and length_field together; got"):
        DocumentJoiner(**options)


def test_an_empty_batch_stays_empty():
    documents = batch(id=pa.array([], pa.string()), text=pa.array([], pa.string()))

    assert DocumentJoiner().process(DocumentSplitter("|").process(documents)).num_items == 0


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_pieces_of_different_files_find_each_other(workers, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [{"id": f"d{i}", "text": f"{i}.{number}", "segment_id": number} for i in range(20)]
        (tmp_path / "in" / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out"
    stages = [JsonlReader(str(tmp_path / "in")), DocumentJoiner(" "), JsonlWriter(str(out))]
    Pipeline("join", stages=stages).run(LocalExecutor(num_workers=workers))
    found = [json.loads(line) for path in sorted(out.glob("*.jsonl")) for line in path.read_text().splitlines()]

    assert {row["id"]: row["text"] for row in found} == {f"d{i}": f"{i}.0 {i}.1 {i}.2" for i in range(20)}


def test_within_one_batch_nothing_has_to_wait():
    names = [type(stage).__name__ for stage in DocumentJoiner(across_batches=False).decompose()]

    assert names == ["JoinSegments"]
