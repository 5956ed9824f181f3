"""Statistics are those of the rows they say they are from."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gristmill.inspection.dataset import Dataset
from gristmill.inspection.statistics import histogram, measure

ROWS = [
    {
        "n": n,
        "text": "é" * (n % 7),
        "lang": "de" if n % 4 else None,
        "mixed": n if n % 10 else "none",
        "tags": [1] * (n % 3),
    }
    for n in range(1000)
]


@pytest.fixture(params=["jsonl", "parquet"])
def dataset(request, tmp_path):
    if request.param == "jsonl":
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "broken\n")
    else:
        table = pa.Table.from_pylist([{name: value for name, value in row.items() if name != "mixed"} for row in ROWS])
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=300)
    with Dataset(str(tmp_path)) as opened:
        yield opened


def test_a_small_dataset_is_measured_whole(dataset):
    found = measure(dataset, ["n", "text", "lang", "tags"], seed=0)
    n, text, lang, tags = found.columns

    assert (found.basis, found.num_rows) == ("all", 1000)
    assert (n.measure, n.mean) == ("value", 499.5)
    assert list(n.quantiles) == list(np.quantile(range(1000), (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)))
    assert (text.measure, text.quantiles[-1]) == ("characters", 6)
    assert (lang.num_null, lang.frequent, lang.num_distinct) == (250, [("de", 750)], 1)
    assert (tags.measure, tags.histogram.counts) == ("elements", [334, 333, 333])


def test_more_rows_than_are_measured_are_sampled_and_the_numbers_say_so(dataset):
    found = measure(dataset, ["n"], seed=5, most_rows=100)

    assert found.basis == "sampled"
    assert 60 <= found.num_rows <= 100
    assert f"{found.num_rows:,} sampled rows" in found.said()
    assert 200 < found.columns[0].mean < 800  # from all over the data, not from its beginning


def test_wanted_rows_only_are_measured_if_some_are_wanted(dataset):
    found = measure(dataset, ["n"], seed=0, wanted=dataset.wanted("n >= 900"))

    assert (found.basis, found.num_rows, found.columns[0].quantiles[0]) == ("first", 100, 900)


def test_damaged_lines_and_values_of_another_kind_are_counted(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS) + "broken\n")
    with Dataset(str(tmp_path)) as dataset:
        found = measure(dataset, ["mixed"], seed=0)

    assert (found.num_damaged, found.columns[0].kind, found.columns[0].num_of_other_kind) == (1, "number", 100)
    assert "1 damaged" in found.said()


@pytest.mark.parametrize(
    "values",
    [
        [1.0], [2, 2, 2], [0, 1], [-5, 5.5], range(1000), [1, 1, 1, 1e9], [1e-300, 1e300], [-1.7e308, 1.7e308],
        [2**53, 2**53 + 2],
    ],
)  # fmt: skip
def test_every_value_is_in_a_bin(values):
    found = histogram(np.array(list(values), np.float64))

    assert sum(found.counts) == len(values)
    assert len(found.counts) == len(found.edges) - 1 <= 21
    assert list(found.edges) == sorted(found.edges)
