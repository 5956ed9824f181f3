"""Names of partitions are readable, unique and safe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.io.partitioning import partition_names


def names(*paths):
    return partition_names(paths, paths, [""] * len(paths))


def test_a_name_is_the_path_below_the_common_directory_without_extension():
    assert names("/d/in/a/x.jsonl.gz", "/d/in/b/y.v2.jsonl") == ["a__x", "b__y.v2"]
    assert names("/d/in/only.jsonl") == ["only"]
    assert names("s3://bucket/a.parquet", "s3://bucket/b.parquet") == ["a", "b"]


@pytest.mark.parametrize(
    "paths", [("in/a.jsonl", "in/a.json"), ("in/a/b.jsonl", "in/a__b.jsonl"), ("in/A.jsonl", "in/a.jsonl")]
)
def test_files_whose_names_would_clash_are_told_apart_by_a_hash(paths):
    first, second = names(*paths)
    assert first.lower() != second.lower()
    assert "~" in first


def test_a_name_does_not_depend_on_where_the_tree_is():
    assert names("/x/in/a.jsonl", "/x/in/a.json") == names("/y/z/in/a.jsonl", "/y/z/in/a.json")


@given(st.lists(st.text(st.sampled_from("aB._~/ *:é\\"), min_size=1, max_size=8), min_size=1, unique=True))
def test_every_name_is_unique_visible_and_without_slash(paths):
    made = names(*(f"in/{path}" for path in paths))
    assert len({name.lower() for name in made}) == len(made)
    assert not any("/" in name or name.startswith((".", "_")) for name in made)


def test_a_very_long_path_becomes_a_name_a_file_system_takes():
    assert len(names("in/" + "d/" * 200 + "x.jsonl", "in/y.jsonl")[0]) < 200
