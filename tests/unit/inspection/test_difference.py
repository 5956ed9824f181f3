"""Two datasets compared by id give what sets and dicts would give."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.errors import ConfigError
from gristmill.inspection import difference
from gristmill.inspection.dataset import Dataset
from gristmill.inspection.difference import compare
from gristmill.inspection.show import changes

HERE = [{"id": f"d{n}", "text": f"text {n}", "score": n / 2, "none": None} for n in range(100)]
THERE = [{**row, "text": row["text"].upper()} if n % 10 == 0 else row for n, row in enumerate(HERE)][5:]
THERE += [{"id": "new", "text": "x", "score": 0.0, "none": None}]


def write(path, rows, *extra):
    path.mkdir()
    lines = [json.dumps(row) for row in rows]
    (path / "a.jsonl").write_text("\n".join([*lines, *extra]) + "\n")
    return str(path)


@pytest.mark.parametrize("buckets", [1, 7])
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_each_id_is_the_same_changed_or_on_one_side(tmp_path, monkeypatch, buckets, form):
    monkeypatch.setattr(difference, "_BUCKET_ROWS", 200 // buckets)
    monkeypatch.setattr(difference, "_BUFFERED", 10)
    here = write(tmp_path / "here", HERE, '{"text": "no id"}', "damaged")
    there = str(tmp_path / "there.parquet")
    if form == "jsonl":
        there = write(tmp_path / "there", THERE)
    else:
        pq.write_table(pa.Table.from_pylist(THERE[::-1]), there)
    with Dataset(here) as one, Dataset(there) as other:
        found = compare(one, other, id_field="id")
        changed = {one.page(place, 1)[0].row.values["id"] for place, _ in found.changed_examples}
        same_scores = compare(one, other, id_field="id", columns=["score"])
        shown = list(
            changes(*(d.page(p, 1)[0].row.values for d, p in zip((one, other), found.changed_examples[0], strict=True)))
        )

    assert (found.only_here, found.only_there, found.changed, found.same) == (5, 1, 9, 86)
    assert (found.without_id, found.damaged, found.repeated) == (1, 1, 0)
    assert changed == {f"d{n}" for n in range(10, 100, 10)}
    assert (same_scores.changed, same_scores.same) == (0, 95)
    assert shown[0].startswith("text: … [-text-] {+TEXT+}") or "[-text " in shown[0]


def test_an_id_several_times_is_the_same_if_all_its_rows_are(tmp_path):
    one = [{"id": "a", "v": 1}, {"id": "a", "v": 2}, {"id": "b", "v": 1}, {"id": "b", "v": 1}, {"id": "c", "v": 1}]
    other = [
        {"id": "a", "v": 2},
        {"id": "a", "v": 1},
        {"id": "b", "v": 1},
        {"id": "b", "v": 3},
        {"id": "c", "v": 1},
        {"id": "c", "v": 1},
    ]
    with Dataset(write(tmp_path / "one", one)) as here, Dataset(write(tmp_path / "other", other)) as there:
        found = compare(here, there, id_field="id")

    assert (found.same, found.changed, found.repeated) == (1, 2, 5)


def test_a_column_of_ids_that_is_not_there_is_named_with_the_nearest(tmp_path):
    with Dataset(write(tmp_path / "one", HERE)) as here, pytest.raises(ConfigError, match="did you mean 'id'"):
        compare(here, here, id_field="ids")
