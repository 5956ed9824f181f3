"""Rows are grouped as asked, whatever their columns are called."""

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.stages.exchange.aggregate import Aggregate, AggregateRows
from gristmill.tasks import DocumentBatch

BATCH = DocumentBatch(
    "b", pa.table({"site": ["y", "x", None, "x"], "n": [2, 1, 4, 3], "n_sum": ["q", "p", "p", "p"], "m": [0, 0, 0, 1]})
)


@pytest.mark.parametrize(
    ("by", "compute", "expected"),
    [
        (["site"], {"total": ("n", "sum")}, {"site": ["x", "y", None], "total": [4, 2, 4]}),
        (["site"], {"first": ("n", "first"), "all": ("n", "list")}, {"first": [1, 2, 4], "all": [[1, 3], [2], [4]]}),
        (["site"], {"a": ("n", "sum"), "b": ("n", "sum")}, {"a": [4, 2, 4], "b": [4, 2, 4]}),
        (["n_sum"], {"total": ("n", "sum")}, {"n_sum": ["p", "q"], "total": [8, 2]}),
        (["site"], {"sites": ("site", "count")}, {"sites": [2, 1, 0]}),
        (["n_sum", "m"], {"n": ("n", "max")}, {"n_sum": ["p", "p", "q"], "m": [0, 1, 0], "n": [4, 3, 2]}),
        (["site"], {}, {"site": ["x", "y", None]}),
    ],
)
def test_there_is_one_row_for_each_key_in_the_order_of_keys(by, compute, expected):
    found = AggregateRows(by, compute).process(BATCH).to_pyarrow()

    assert found.column_names == [*by, *compute]
    assert {name: found[name].to_pylist() for name in expected} == expected


def test_what_is_computed_may_not_take_the_name_of_the_key():
    with pytest.raises(ConfigError, match="expected other names in compute than those of the key; got 'n'"):
        Aggregate(["site", "n"], {"n": ("n", "sum")})


def test_an_unknown_function_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"got 'maxx'; did you mean 'max'\?"):
        Aggregate("site", {"n": ("n", "maxx")})
