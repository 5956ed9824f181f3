"""Modify applies modifiers and functions to columns, in order, and leaves everything else as it was."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.stages.text.modifiers import DocumentModifier, Modify, NewlineNormalizer, UrlRemover
from gristmill.tasks import DocumentBatch, FileGroupTask


class Shout(DocumentModifier):
    """A user's own."""

    def modify_document(self, text):
        return text.upper()


class JoinTitle(DocumentModifier):
    """A user's own, of two fields."""

    def modify_document(self, title, text):
        return f"{title}: {text}"


def batch(**columns):
    return DocumentBatch("test", pa.table(columns))


def test_a_modifier_changes_the_text_in_place():
    assert Modify(Shout()).process(batch(text=["a", "b"])).column("text").to_pylist() == ["A", "B"]


def test_modifiers_of_a_list_run_in_order():
    stage = Modify([UrlRemover(), NewlineNormalizer(), str.strip])
    result = stage.process(batch(text=["www.x.org\n\n\n\na "]))

    assert result.column("text").to_pylist() == ["a"]


def test_each_modifier_may_have_fields_of_its_own():
    stage = Modify([Shout(), len], input_fields=["a", "b"], output_fields=[None, "n"])
    result = stage.process(batch(a=["x"], b=["yyy"]))

    assert result.to_pyarrow().to_pydict() == {"a": ["X"], "b": ["yyy"], "n": [3]}
    assert stage.inputs() == (["data"], ["a", "b"])
    assert stage.outputs() == (["data"], ["a", "n"])


@pytest.mark.parametrize("modifier", [JoinTitle(), lambda title, text: f"{title}: {text}"])
def test_a_modifier_of_several_fields_gets_them_by_name(modifier):
    stage = Modify(modifier, input_fields=[["title", "text"]], output_fields="both")

    assert stage.process(batch(text=["b"], title=["a"])).column("both").to_pylist() == ["a: b"]


def test_a_field_made_by_an_earlier_modifier_is_no_input():
    stage = Modify([str.upper, str.strip], input_fields=["text", "loud"], output_fields=["loud", None])

    assert stage.inputs() == (["data"], ["text"])


@pytest.mark.parametrize("modifier", [Shout(), str.upper])
def test_a_missing_text_stays_missing(modifier):
    table = batch(text=pa.array(["a", None], pa.string()))

    assert Modify(modifier).process(table).column("text").to_pylist() == ["A", None]


@pytest.mark.parametrize("column", [pa.array([], pa.string()), pa.nulls(2), pa.array([None], pa.string())])
def test_a_column_without_any_text_is_left_alone(column):
    result = Modify([Shout(), UrlRemover()]).process(batch(text=column))

    assert result.column("text").to_pylist() == [None] * len(column)


def test_a_function_may_make_numbers_of_texts():
    result = Modify(len, output_fields="chars").process(batch(text=["a", "bb"]))

    assert result.column("chars").type == pa.int64()


def test_a_function_of_numbers_gets_numbers():
    result = Modify(lambda n: n + 1, input_fields="n").process(batch(n=pa.array([1, None])))

    assert result.column("n").to_pylist() == [2, None]


def test_half_a_surrogate_pair_made_by_a_modifier_is_replaced():
    result = Modify(lambda text: text + "\ud800").process(batch(text=["a"]))

    assert result.column("text").to_pylist() == ["a\ufffd"]


def test_only_candidates_are_modified():
    class Picky(Shout):
        def find_candidates(self, texts):
            return np.array([text == "b" for text in texts.to_pylist()])

    result = Modify(Picky()).process(batch(text=["a", "b"]))

    assert result.column("text").to_pylist() == ["a", "B"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"modifier_fn": []}, "expected at least one modifier; got an empty list"),
        ({"modifier_fn": "upper"}, "expected modifier_fn to be a DocumentModifier or a function; got 'upper'"),
        ({"modifier_fn": [len, len, len], "input_fields": ["a", "b"]}, "one for each of 3 modifiers; got"),
        ({"modifier_fn": len, "input_fields": [["a", "b"]]}, "to know where what is made of"),
        ({"modifier_fn": len, "input_fields": [3]}, "expected input_fields to be names of fields; got"),
    ],
)
def test_a_mistake_is_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Modify(**arguments)


def test_a_stage_is_named_after_its_modifiers():
    assert Modify(UrlRemover()).name == "url_remover"
    assert Modify([UrlRemover(), len]).name == "url_remover_and_1_more"


@pytest.mark.parametrize("text", ["no address \\u0068ere", "http:// is no address \\u0068ere"])
def test_documents_nobody_changed_are_written_byte_for_byte(text, tmp_path):
    line = f'{{"text" : "{text}",  "id":0.5e1}}\n'
    (tmp_path / "in.jsonl").write_text(line)
    [_, reader] = JsonlReader(str(tmp_path / "in.jsonl")).decompose()
    read = reader.process(FileGroupTask("test", [str(tmp_path / "in.jsonl")]))
    written = JsonlWriter(str(tmp_path / "out")).process(Modify([UrlRemover(), NewlineNormalizer()]).process(read))

    assert Path(written.data[0]).read_text() == line


def test_a_changed_document_keeps_its_other_fields(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id":"00123","text":"see www.x.org now","n":1.50}\n')
    [_, reader] = JsonlReader(str(tmp_path / "in.jsonl")).decompose()
    read = reader.process(FileGroupTask("test", [str(tmp_path / "in.jsonl")]))
    written = JsonlWriter(str(tmp_path / "out")).process(Modify(UrlRemover()).process(read))

    assert json.loads(Path(written.data[0]).read_text()) == {"id": "00123", "text": "see  now", "n": 1.5}
