"""A batch is a value: whatever is done to it, its columns and its lines go on saying the same."""

import json
import pickle

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import line_lists

from gristmill.errors import StageError
from gristmill.tasks import DocumentBatch
from gristmill.tasks.document import relink
from gristmill.tasks.json_encoding import encode_lines
from gristmill.tasks.json_lines import JsonLines

LINES = [
    b'{"id": "1", "text": "caf\xc3\xa9", "n": 1.50}\n',
    b'{"id":"2","n":2,"tags":["a",1]}\n',
    b'{"id":"3","text":null,"text2":"\\u00e9"}\n',
]


def batch_of(lines=LINES):
    return DocumentBatch.from_lines("d", JsonLines(pa.array(lines, pa.large_binary())))


def written(batch):
    return b"".join(encode_lines(batch))


@given(line_lists)
def test_one_column_parsed_alone_equals_that_column_of_all(lines):
    everything = batch_of(lines).to_pyarrow()
    for name in everything.column_names:
        assert batch_of(lines).column(name).equals(everything.column(name))
        assert batch_of(lines).field(name).equals(everything.schema.field(name), check_metadata=True)


def test_columns_are_in_order_of_first_appearance_also_when_one_was_asked_for_before():
    batch = batch_of()
    batch.column("tags")
    assert batch.get_columns() == ["id", "text", "n", "tags", "text2"]
    assert batch.to_pyarrow().column_names == ["id", "text", "n", "tags", "text2"]


def test_a_field_no_document_has_is_null_where_lines_are_and_an_error_where_they_are_not():
    assert batch_of().column("nowhere").to_pylist() == [None] * 3
    with pytest.raises(StageError, match=r"expected a column 'txt'; got \['text'\]; did you mean 'text'\?"):
        DocumentBatch("d", pa.table({"text": ["a"]})).column("txt")


def test_rows_can_be_picked_without_parsing_anything():
    batch = batch_of()
    picked = [
        batch.filter([True, False, True]),
        batch.take([0, 2]),
        batch.slice(0, 1),
        DocumentBatch.concat([batch, batch]),
    ]
    assert [p.parsed_columns() for p in picked] == [[]] * 4
    assert [p.num_items for p in picked] == [2, 2, 1, 6]
    assert [written(p) for p in picked] == [LINES[0] + LINES[2], LINES[0] + LINES[2], LINES[0], b"".join(LINES * 2)]


@given(line_lists, st.data())
def test_filtering_before_or_after_parsing_gives_the_same_values(lines, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)))
    parsed = batch_of(lines)
    parsed.to_pyarrow()
    first, last = batch_of(lines).filter(mask), parsed.filter(mask)
    assert written(first) == written(last) == b"".join(line for line, keep in zip(lines, mask, strict=True) if keep)


def test_long_strings_are_filtered_like_short_ones():
    texts = ["x" * 100 * i for i in range(20)]
    batch = DocumentBatch("d", pa.table({"text": texts}).slice(3))
    mask = [i % 3 == 0 for i in range(17)]
    assert batch.filter(mask).column("text").to_pylist() == [t for t, keep in zip(texts[3:], mask, strict=True) if keep]


def test_a_replaced_column_no_longer_speaks_through_the_lines():
    batch = batch_of().with_column("text", pa.array(["x", "y", "z"]))
    assert batch.column("text").to_pylist() == ["x", "y", "z"]
    assert [json.loads(line)["text"] for line in written(batch).splitlines()] == ["x", "y", "z"]


def test_a_dropped_column_is_gone_even_if_it_was_never_parsed():
    batch = batch_of().drop_columns(["n", "tags"])
    assert batch.get_columns() == ["id", "text", "text2"]
    assert not batch.has_column("n")
    assert written(batch).splitlines()[1] == b'{"id":"2"}'


def test_selected_columns_come_in_the_order_asked_for_and_null_where_missing():
    table = batch_of().select(["n", "absent", "id"]).to_pyarrow()
    assert table.column_names == ["n", "absent", "id"]
    assert table.column("absent").to_pylist() == [None] * 3


def test_a_new_batch_keeps_the_history_and_shares_no_container_with_the_old():
    batch = batch_of()
    batch.task_id = "t"
    batch._metadata["k"] = 1
    new = batch.with_column("a", pa.array([1, 2, 3]))
    new._metadata["k"] = 2
    assert (new.task_id, new.dataset_name, batch._metadata) == ("t", "d", {"k": 1})


@pytest.mark.parametrize("empty", [batch_of([]), batch_of().filter([False] * 3), DocumentBatch("d", pa.table({}))])
def test_an_empty_batch_can_do_everything(empty):
    assert empty.num_items == 0
    assert empty.to_pandas().shape[0] == 0
    assert empty.slice(0, 5).take([]).filter([]).num_items == 0
    assert DocumentBatch.concat([empty, empty]).num_items == 0
    assert empty.with_data(empty.to_pyarrow()).num_items == 0
    assert written(empty) == b""


def test_documents_without_any_field_keep_their_number():
    batch = batch_of([b"{}\n", b"{}\n"])
    assert batch.to_pyarrow().num_columns == 0
    assert (batch.num_items, batch.slice(1).num_items, len(batch.to_pandas())) == (2, 1, 2)


def test_concat_joins_columns_whose_types_differ_without_changing_a_value():
    parts = [DocumentBatch("d", pa.table({"a": [1]})), DocumentBatch("d", pa.table({"a": ["x"], "b": [True]}))]
    assert written(DocumentBatch.concat(parts)) == b'{"a":1,"b":null}\n{"a":"x","b":true}\n'


def test_a_pandas_frame_is_taken_and_given_back():
    frame = pd.DataFrame({"a": [1, 2], "b": [[1], "x"]})
    batch = DocumentBatch("d", frame)
    assert batch.to_pandas()["b"].tolist() == [[1], "x"]
    assert written(batch) == b'{"a":1,"b":[1]}\n{"a":2,"b":"x"}\n'


def test_anything_else_is_refused_by_name():
    with pytest.raises(StageError, match=r"expected a pyarrow\.Table or a pandas\.DataFrame; got list"):
        DocumentBatch("d", [1])


# with_data and relink


def test_columns_pandas_did_not_change_keep_their_bytes():
    batch = batch_of()
    frame = batch.to_pandas()
    frame = frame[frame["id"] != "2"]
    assert written(batch.with_data(frame)) == LINES[0] + LINES[2]


@pytest.mark.parametrize("change", [lambda f: f.iloc[::-1], lambda f: f.iloc[::-1].reset_index(drop=True), lambda f: f])
def test_lines_are_found_again_by_index_or_by_id(change):
    batch = batch_of()
    new = relink(batch, DocumentBatch("other", change(batch.to_pandas())))
    order = [int(i) - 1 for i in new.column("id").to_pylist()]
    assert written(new) == b"".join(LINES[i] for i in order)


def test_an_integer_column_with_nulls_survives_pandas_as_integers():
    batch = batch_of([b'{"n":12345678901234}\n', b'{"m":1}\n'])
    assert batch.with_data(batch.to_pandas()).to_pyarrow().schema.field("n").type == pa.int64()


def test_a_number_made_a_string_is_a_change():
    batch = batch_of([b'{"n":1}\n'])
    assert written(batch.with_data(pa.table({"n": ["1"]}))) == b'{"n":"1"}\n'


@given(line_lists, st.data())
def test_relinking_never_changes_a_value(lines, data):
    batch = batch_of(lines)
    table = batch.to_pyarrow()
    rows = data.draw(st.lists(st.integers(0, max(0, len(lines) - 1)), max_size=6 if lines else 0))
    new = table.take(pa.array(rows, pa.int64())) if table.num_columns else table
    if new.num_columns and data.draw(st.booleans()):
        victim = data.draw(st.integers(0, new.num_columns - 1))
        new = new.set_column(
            victim, new.column_names[victim], pa.array([f"v{i}" for i in range(len(new))], pa.string())
        )
    relinked = batch.with_data(new)
    fresh = DocumentBatch("d", new)
    assert relinked.to_pyarrow().schema.equals(new.schema)
    for ours, theirs in zip(written(relinked).splitlines(), written(fresh).splitlines(), strict=True):
        assert without_nulls(json.loads(ours)) == without_nulls(json.loads(theirs))


def without_nulls(value):
    """In Arrow a missing field is a null; in the lines it stays missing."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        # The empty object and the object of nulls are one struct.
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return value


LONG = [json.dumps({"id": number, "text": f"{number} " * 50}).encode() + b"\n" for number in range(40)]


@pytest.mark.parametrize(
    "dropped", [[], [0], [39], [3, 4, 5], list(range(0, 40, 10)), list(range(39)), list(range(40))]
)
def test_dropped_rows_are_neither_written_nor_counted(dropped):
    whole = batch_of(LONG)
    kept = whole.filter([number not in dropped for number in range(40)])
    lines = [line for number, line in enumerate(LONG) if number not in dropped]

    assert kept.nbytes == sum(map(len, lines))
    assert written(kept) == b"".join(lines)
    assert pickle.loads(pickle.dumps(kept)).column("id").to_pylist() == [n for n in range(40) if n not in dropped]
    assert written(kept.slice(0, 5)) == b"".join(lines[:5])
    assert whole.num_items == 40


def test_rows_may_be_dropped_again_and_again():
    batch = batch_of(LONG)
    for row in range(5):
        batch = batch.filter([place != row for place in range(batch.num_items)])

    assert batch.column("id").to_pylist() == [1, 3, 5, 7, 9, *range(10, 40)]
    assert written(batch) == b"".join(LONG[number] for number in (1, 3, 5, 7, 9, *range(10, 40)))


def test_a_null_in_a_mask_drops_the_row():
    kept = batch_of(LONG).filter(pa.array([True] * 39 + [None]))
    assert kept.column("id").to_pylist() == list(range(39))
    assert written(kept).count(b"\n") == 39


def test_a_line_longer_than_a_piece_is_written_whole():
    lines = [
        b'{"text":"' + letter * size + b'"}\n' for letter, size in ((b"x", 2_500_000), (b"y", 9), (b"z", 1_100_000))
    ]
    kept = batch_of(lines).filter([True, False, True])
    assert written(kept) == lines[0] + lines[2]
