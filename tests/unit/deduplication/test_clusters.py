"""Clusters of sketches: equals follow the best of them, the others meet where they share a key."""

from collections import Counter
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.deduplication import clusters
from gristmill.deduplication.clusters import Clusters, ClusterSketches
from gristmill.deduplication.files_between import column_parts
from gristmill.kernels.dedup.banding import Banding
from gristmill.tasks import FileGroupTask

pytestmark = pytest.mark.slow  # the kernels are compiled first

BANDS = 3
KEY = 2**61  # keys that are spread over all ranges

documents = st.lists(
    st.fixed_dictionaries(
        {
            "hash": st.integers(1, 6),
            "worth": st.integers(0, 2),
            "size": st.integers(0, 3),
            "keys": st.tuples(*[st.integers(0, 7)] * BANDS),
        }
    ),
    max_size=14,
)


def write_sketches(path, rows, first):
    columns = {
        "doc": pa.array(range(first, first + len(rows)), pa.uint64()),
        "low": pa.array([row["hash"] if row["size"] else 0 for row in rows], pa.uint64()),
        "high": pa.array([row["hash"] % 2 for row in rows], pa.uint64()),
        "worth": pa.array([row["worth"] for row in rows], pa.float64()),
        "tie": pa.array([0] * len(rows), pa.uint64()),
        "size": pa.array([row["size"] for row in rows], pa.int32()),
        **{f"band_{b}": pa.array([row["keys"][b] * KEY for row in rows], pa.uint64()) for b in range(BANDS)},
    }
    table = pa.table(columns)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return str(path)


def cluster(work, rows, *, cut, indexed=0, **options):
    files = [write_sketches(work / f"{n}.arrow", part, n * cut) for n, part in enumerate((rows[:cut], rows[cut:]))]
    directory = work / f"clusters-{len(list(work.iterdir()))}"
    ClusterSketches(str(directory), Banding(BANDS, 1), indexed, **options).process(FileGroupTask("sketches", files))
    return Clusters.load(directory)


def leaders(rows, cut, indexed):
    """The best of the documents with the same hash, those of an index first."""
    order = sorted(range(len(rows)), key=lambda i: (indexed > 0 and i >= cut, -rows[i]["worth"], i))
    return [
        i if not row["size"] else next(j for j in order if rows[j]["size"] and rows[j]["hash"] == row["hash"])
        for i, row in enumerate(rows)
    ]


def components(rows, members):
    """Members joined by a shared key, by repeated spreading."""
    label = {i: i for i in members}
    for _ in members:
        for i in members:
            for j in members:
                if any(a == b for a, b in zip(rows[i]["keys"], rows[j]["keys"], strict=True)):
                    label[i] = label[j] = min(label[i], label[j])
    return label


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=documents, cut=st.integers(0, 14), indexed=st.sampled_from([0, 1]))
def test_it_equals_the_definition(tmp_path_factory, rows, cut, indexed):
    made = cluster(tmp_path_factory.mktemp("work"), rows, cut=cut, indexed=indexed)
    follows = leaders(rows, cut, indexed)
    label = components(rows, [i for i, row in enumerate(rows) if follows[i] == i and row["size"]])
    num_indexed = min(cut, len(rows)) if indexed else 0
    expected = [i for i in label if any(label[j] == label[i] and j != i for j in label)]
    expected = [i for i in expected if any(label[j] == label[i] and j >= num_indexed for j in label)]

    assert made.leader.tolist() == follows
    assert made.positions.tolist() == expected
    assert made.component.tolist() == [label[i] for i in expected]
    assert (made.rank < 0).tolist() == [i < num_indexed for i in expected]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=documents, range_keys=st.integers(1, 5))
def test_how_many_keys_are_sorted_at_a_time_makes_no_difference(tmp_path_factory, rows, range_keys):
    work = tmp_path_factory.mktemp("work")
    whole, parts = cluster(work, rows, cut=4), cluster(work, rows, cut=4, range_keys=range_keys)
    for name, values in asdict(whole).items():
        assert np.array_equal(values, getattr(parts, name)), name


def test_a_band_is_read_a_few_times_however_many_documents_there_are(tmp_path, monkeypatch):
    rows = [{"hash": 1000 + i, "worth": 0, "size": 1, "keys": (i % 8, i % 5, i % 3)} for i in range(200)]
    read = Counter()

    def counted(files, column, kind):
        read[column] += 1
        return column_parts(files, column, kind)

    monkeypatch.setattr(clusters, "column_parts", counted)
    cluster(tmp_path, rows, cut=100, range_keys=1)

    assert read["band_0"] == clusters.MOST_RANGES
