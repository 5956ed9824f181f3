"""Arrays between two pipelines are used only if they are as they were written: one bit decides who is removed."""

import numpy as np
import pytest

from gristmill.deduplication.files_between import has_arrays, is_sealed_array, write_arrays, write_sealed_array

NAMES = ("doc", "part")


@pytest.fixture
def directory(tmp_path):
    write_arrays(tmp_path / "parts", {"doc": np.arange(50), "part": np.zeros(0)})
    return tmp_path / "parts"


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"\0")


def empty(path):
    path.write_bytes(b"")


def remove(path):
    path.unlink()


def test_what_was_written_is_there(directory):
    assert has_arrays(directory, NAMES)
    assert np.load(directory / "doc.npy").tolist() == list(range(50))


@pytest.mark.parametrize("damage", [flip, cut, lengthen, empty, remove])
@pytest.mark.parametrize("name", ["doc.npy", "part.npy", "doc.npy.checksum"])
def test_a_damaged_array_counts_as_not_written_and_makes_room(directory, damage, name):
    damage(directory / name)

    assert not has_arrays(directory, NAMES)
    assert not directory.exists()
    write_arrays(directory, {"doc": np.arange(3), "part": np.arange(3)})
    assert has_arrays(directory, NAMES)


def test_an_array_nobody_wrote_is_missing(directory):
    assert not has_arrays(directory, (*NAMES, "rank"))


def test_one_array_is_looked_at_as_well(tmp_path):
    path = tmp_path / "centroids.npy"
    assert not is_sealed_array(path)

    write_sealed_array(path, np.ones((2, 2)))
    assert is_sealed_array(path)

    flip(path)
    assert not is_sealed_array(path)
