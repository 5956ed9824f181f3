"""The scheduler suite in virtual time: the rows that take seconds pass their marks on every change.

`make bench-engine` runs all of them. A row that misses its mark is not here; `docs/log` says which and why.
"""

import pytest
from benchmarks.engine.run_all import ROWS

CHEAP = ("B3", "B4", "B5", "B6", "B7", "B8", "B9", "B11", "B13", "B16")


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.mode == "V" and row.id in CHEAP], ids=lambda row: row.id)
def test_the_row_passes_its_marks(row):
    missed = [outcome for outcome in row.measure() if not outcome.passed]

    assert missed == []
