"""Compact sequences are the lists they stand for, in a fraction of the memory."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.storage.file_system import FileStatus
from gristmill.storage.paths import FileList, Packed, PathList

paths = st.lists(st.text(st.sampled_from("ab./é\udcff~"), max_size=12))


@given(paths)
def test_a_path_list_is_the_list_of_its_paths(given_paths):
    made = PathList(given_paths)

    assert list(made) == given_paths
    assert made == given_paths
    assert len(made) == len(given_paths)
    assert [made[index] for index in range(len(made))] == given_paths
    assert made[1::2] == given_paths[1::2]
    assert made[-3:] == given_paths[-3:]


@given(paths, paths)
def test_two_path_lists_are_equal_if_their_paths_are(one, other):
    assert (PathList(one) == PathList(other)) == (one == other)
    assert (PathList(one) == other) == (one == other)


@pytest.mark.parametrize("index", [2, -3])
def test_a_place_that_is_not_there_is_an_error(index):
    with pytest.raises(IndexError):
        PathList(["a", "b"])[index]


def test_a_text_is_not_a_list_of_paths():
    assert PathList(["a", "b"]) != "ab"


@given(st.lists(st.binary(max_size=5)))
def test_packed_bytes_come_back(contents):
    packed = Packed()
    for content in contents:
        packed.append(content)
    assert packed == contents


def test_a_file_list_keeps_path_size_and_version():
    files = FileList()
    files.append("in/a.jsonl", 3, "17")
    files.append("s3://b/c.jsonl", 2**40, '"etag-é"')

    assert files == [FileStatus("in/a.jsonl", 3, "17"), FileStatus("s3://b/c.jsonl", 2**40, '"etag-é"')]


def test_a_directory_is_kept_once_and_a_file_costs_about_its_name():
    tracemalloc.start()
    files = FileList()
    for index in range(10_000):
        files.append(
            f"/a/rather/long/directory/for/crawls/{index // 1000}/{index:07d}.jsonl", index, f"17314{index:014d}"
        )
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert len(files.paths.directories()) == 10
    assert size / len(files) < 90  # 15 of the name, 19 of the version, 28 of numbers, and room to grow
