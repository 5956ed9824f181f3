"""Two runs compared: distributions by the stability index, documents by their ids, in pieces of any size."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.dashboard import document_ids
from gristmill.dashboard.document_ids import compare_ids
from gristmill.dashboard.run_diff import stability_index
from gristmill.errors import ConfigError
from gristmill.metrics.tally import tallied

numbers = st.lists(st.integers(0, 1_000), min_size=1, max_size=80)


@given(numbers, numbers)
def test_the_index_is_the_same_both_ways_and_nothing_for_the_same_values(one, other):
    a, b = tallied(one), tallied(other)

    assert stability_index(a, b) == pytest.approx(stability_index(b, a))
    assert stability_index(a, b) >= 0
    assert stability_index(a, a) == 0


def test_the_index_is_what_its_definition_says():
    a, b = tallied([1] * 60 + [2] * 40), tallied([1] * 30 + [2] * 70)
    p, q = 60.5 / 101, 30.5 / 101

    expected = (p - q) * math.log(p / q) + (q - p) * math.log((1 - p) / (1 - q))
    assert stability_index(a, b) == pytest.approx(expected)


def test_values_that_are_not_numbers_move_a_distribution_too():
    assert stability_index(tallied([1.0] * 100), tallied([1.0] * 50 + [math.nan] * 50)) > 0.1


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def rejected(path, rows):
    fields = [{"reject_id": name, "reject_stage": "s", "reject_reason": why, "url": name} for name, why in rows]
    return "rejected", write(path, fields)


outcome = st.sampled_from(["kept", "short", "long", "failed", None])


@given(st.dictionaries(st.integers(0, 40), st.tuples(outcome, outcome), max_size=40), st.integers(1, 5))
def test_documents_are_compared_as_sets_would_be(tmp_path_factory, decided, piece):
    work = tmp_path_factory.mktemp("ids")
    sides = []
    for side in (0, 1):
        own = {f"d{n}": did[side] for n, did in decided.items() if did[side] is not None}
        kept = write(work / f"kept{side}.jsonl", [{"id": name} for name, did in own.items() if did == "kept"])
        dropped = [(name, did) for name, did in own.items() if did in ("short", "long")]
        failed = [{"document_id": name} for name, did in own.items() if did == "failed"]
        aside = ("quarantined", write(work / f"q{side}.jsonl", failed))
        sides.append([("kept", kept), rejected(work / f"r{side}.jsonl", dropped), aside])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_ids, "PIECE", piece)
        patch.setattr(document_ids, "BLOCK", piece)
        found = compare_ids(*sides)
    words = {"kept": "kept", "short": "dropped by s: short", "long": "dropped by s: long", "failed": "quarantined"}
    words |= {None: "not there"}
    unlike = {f"d{n}": did for n, did in decided.items() if did[0] != did[1] and ("kept" in did or None not in did)}

    assert {one.id: (one.a, one.b) for one in found.named} == {
        name: (words[a], words[b]) for name, (a, b) in unlike.items()
    }
    assert found.kept_by_a_only == sum(a == "kept" for a, _ in unlike.values())
    assert found.kept_by_b_only == sum(b == "kept" for _, b in unlike.values())
    assert sum(one.documents for one in found.disagreements) == len(unlike)


def test_more_documents_than_are_named_are_counted(tmp_path):
    a = [("kept", write(tmp_path / "a.jsonl", [{"id": n} for n in range(100)]))]
    found = compare_ids(a, [], most_named=7)

    assert (found.kept_by_a_only, len(found.named)) == (100, 7)


def test_an_id_that_occurs_twice_is_paired_as_often_as_it_can_be(tmp_path):
    a = [("kept", write(tmp_path / "a.jsonl", [{"id": "x"}, {"id": "x"}, {"id": "y"}, {"text": "none"}]))]
    b = [("kept", write(tmp_path / "b.jsonl", [{"id": "x"}, {"id": "y"}]))]
    found = compare_ids(a, b)

    assert [(one.id, one.a, one.b) for one in found.named] == [("x", "kept", "not there")]
    assert found.without_id == 1


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl.gz"])
def test_other_formats_are_read(tmp_path, form):
    table = pa.table({"url": ["a", "b", None]})
    path = tmp_path / f"kept.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        with pa.CompressedOutputStream(str(path), "gzip") as out:
            out.write(b'{"url": "a"}\n{"url": "b"}\n{"url": null}')
    other = [rejected(tmp_path / "r.jsonl", [("a", "short")])]
    found = compare_ids([("kept", str(path))], other, id_field="url")

    assert [(one.id, one.b) for one in found.named] == [("a", "dropped by s: short"), ("b", "not there")]
    assert found.without_id == 1
    if form != "jsonl.gz":
        with pytest.raises(ConfigError, match="expected the column 'id'"):
            compare_ids([("kept", str(path))], [])
