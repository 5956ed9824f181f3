"""Blocks have no name, hold what was written, and are gone when nobody maps them."""

import sys
from pathlib import Path

import pyarrow as pa
import pytest

from gristmill.tasks import DocumentBatch, FileGroupTask
from gristmill.worker import shared_memory
from gristmill.worker.desk import ParcelShelf
from gristmill.worker.wire import INLINE_BYTES, pack, unpack


def fill(content):
    def write(view):
        view[: len(content)] = content

    return write


def open_descriptors():
    return len(list(Path("/dev/fd").iterdir()))


def test_a_block_holds_what_was_written():
    fd = shared_memory.create(5, fill(b"hello"))

    with shared_memory.map_block(fd, 5) as mapped:
        assert mapped[:] == b"hello"


def test_mapping_a_block_closes_its_descriptor():
    before = open_descriptors()
    mapped = shared_memory.map_block(shared_memory.create(1, fill(b"x")), 1)
    mapped.close()

    assert open_descriptors() == before


def test_a_failure_while_filling_leaves_no_descriptor():
    def fail(view):
        raise ValueError("cannot")

    before = open_descriptors()
    with pytest.raises(ValueError, match="cannot"):
        shared_memory.create(10, fail)

    assert open_descriptors() == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_a_block_is_freed_when_the_last_batch_of_it_is_gone(large):
    def mapped():
        return Path("/proc/self/maps").read_text().count("memfd:gristmill")

    before = mapped()
    batch = unpack(pack(large))
    part = batch.slice(0, 1)
    assert mapped() == before + 1
    del batch
    assert mapped() == before + 1  # a part of it is still in use
    del part

    assert mapped() == before


@pytest.fixture
def large():
    return DocumentBatch("large", pa.table({"text": ["x" * 100] * (INLINE_BYTES // 50)}))


def test_a_large_task_travels_in_a_block_and_a_small_one_in_the_message(large):
    big, small = pack(large), pack(FileGroupTask("files", ["a", "b"]))

    assert (big.body, big.fd >= 0) == (None, True)
    assert (small.body is not None, small.fd) == (True, -1)
    assert unpack(big).to_pyarrow() == large.to_pyarrow()
    assert unpack(small).data == ["a", "b"]


def test_releasing_a_parcel_nobody_opened_closes_its_block(large):
    before = open_descriptors()
    shelf = ParcelShelf()
    shelf.release(shelf.put(pack(large)))

    assert open_descriptors() == before
