"""Names of partitions are readable, unique and safe."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.stages.io.partitions import FileNames, FilePartitions, _short_name, whole
from gristmill.storage.paths import FileList


def names(*paths):
    return list(FileNames(paths))


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


def names_by_definition(paths):
    """What the names are, with everything in memory at once."""
    roots = [paths[0][: cut + 1] for cut, character in enumerate(paths[0]) if character == "/"]
    root = max((root for root in roots if all(path.startswith(root) for path in paths)), key=len)
    short = [_short_name(path[len(root) :]) for path in paths]
    taken = Counter(name.lower() for name in short)
    made = []
    for path, name in zip(paths, short, strict=True):
        digest = hashlib.blake2b(path[len(root) :].encode(), digest_size=4).hexdigest()
        is_plain = taken[name.lower()] == 1 and name and len(name) <= 180
        made.append(name if is_plain else f"{name[:180]}~{digest}")
    return made


@given(st.lists(st.text(st.sampled_from("aAb./*"), min_size=1, max_size=5), min_size=1, unique=True))
def test_names_are_as_if_all_were_compared_with_all(paths):
    paths = [f"in/{path}" for path in paths]
    assert names(*paths) == names_by_definition(paths)


def partition_names(groups):
    """The names of partitions; a group is a file in so many parts, or several files in one."""
    files = FileList()
    for paths, _ in groups:
        for path in paths:
            files.append(path, 10, "v")
    listed = {file.path: file for file in files}
    parts = []
    for paths, num_parts in groups:
        slices = tuple(whole(listed[path]) for path in paths)
        parts += [(slices, position) for position in range(num_parts)] if num_parts > 1 else [(slices, None)]
    return list(FilePartitions("list", files, parts, {}).names)


@pytest.mark.parametrize(
    "groups",
    [
        [(["in/a-00000.jsonl"], 1), (["in/a.jsonl"], 3)],
        [(["in/A-00001.jsonl"], 1), (["in/a.jsonl"], 3)],
        [(["in/x+1.jsonl"], 1), (["in/x.jsonl", "in/y.jsonl"], 1)],
        [(["in/a-00000-00001.jsonl"], 1), (["in/a-00000.jsonl"], 2), (["in/a.jsonl"], 2)],
    ],
)
def test_a_part_of_a_file_never_has_the_name_of_another_file(groups):
    made = partition_names(groups)
    assert len({name.lower() for name in made}) == len(made)


def test_files_that_only_look_like_parts_keep_their_names():
    groups = [(["in/a-00000.jsonl"], 1), (["in/b.jsonl"], 2), (["in/c-00001.jsonl"], 2), (["in/d.jsonl"], 1)]
    assert partition_names(groups) == ["a-00000", "b-00000", "b-00001", "c-00001-00000", "c-00001-00001", "d"]


def test_only_the_files_whose_parts_clash_get_other_names():
    made = partition_names([(["in/a-00001.jsonl"], 1), (["in/a.jsonl"], 2), (["in/b.jsonl"], 2)])
    assert [name.partition("~")[0] for name in made] == ["a-00001", "a", "a", "b-00000", "b-00001"]
    assert ["~" in name for name in made] == [True, True, True, False, False]
