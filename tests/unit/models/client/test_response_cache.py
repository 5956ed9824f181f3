"""Answers on disk: found again, shared by processes, and failures told in words."""

import errno
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import threading

import pytest

from gristmill.engine.faults import Fault, fault_of
from gristmill.errors import ConfigError, MachineError
from gristmill.models.client import response_cache
from gristmill.models.client.response_cache import FILE, ResponseCache, Stored, cache_key
from gristmill.models.client.usage import Answer

STORED = Stored((Answer("yes"), Answer("no", "length")), "m-1", 7, 2, 123.5)


def key(number):
    return cache_key("/v1/chat/completions", b'{"model":"m"}', number)


def fill(directory, first, count):
    cache = ResponseCache(directory)
    for number in range(first, first + count):
        cache.put(key(number), STORED, scope="run", cost=0.25)
    cache.close()


def test_an_answer_is_found_at_once_after_a_flush_and_in_another_process(tmp_path):
    cache = ResponseCache(tmp_path / "new" / "directory")
    cache.put(key(1), STORED)
    assert (cache.get(key(1)), cache.get(key(2))) == (STORED, None)
    cache.flush()
    assert cache.get(key(1)) == STORED
    cache.close()

    again = ResponseCache(tmp_path / "new" / "directory")
    assert (again.get(key(1)), len(again)) == (STORED, 1)
    again.close()


def test_an_answer_waits_while_those_before_it_are_late_on_their_way_to_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(response_cache, "LATE_S", 0.0)
    monkeypatch.setattr(response_cache, "MOST_WAIT_S", 60.0)
    cache = ResponseCache(tmp_path)
    another = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    another.execute("BEGIN IMMEDIATE")  # as long as it writes, nobody else does
    cache.put(key(1), STORED)
    kept = []
    waits = threading.Thread(target=lambda: (cache.put(key(2), STORED), kept.append(len(cache))))
    waits.start()
    waits.join(0.3)
    assert waits.is_alive()
    another.execute("COMMIT")
    another.close()
    waits.join()
    assert kept[0] >= 1
    cache.close()
    assert len(ResponseCache(tmp_path)) == 2


def test_a_process_that_writes_for_long_does_not_keep_others_from_asking(tmp_path, monkeypatch):
    monkeypatch.setattr(response_cache, "LATE_S", 0.0)
    monkeypatch.setattr(response_cache, "MOST_WAIT_S", 0.01)
    cache = ResponseCache(tmp_path)
    another = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    another.execute("BEGIN IMMEDIATE")
    for number in range(3):
        cache.put(key(number), STORED)  # ends although nothing can be written
    assert cache.get(key(2)) == STORED
    another.execute("COMMIT")
    another.close()
    cache.close()


def looks(cache, numbers):
    """Ask for what is kept under some numbers, and return how often the file was looked at."""
    asked = []
    cache._reader.set_trace_callback(asked.append)
    for number in numbers:
        assert cache.get(key(number)) == STORED
    cache._reader.set_trace_callback(None)
    return len(asked)


@pytest.mark.parametrize("order", ["as written", "a little out of order"])
def test_answers_that_lie_together_are_read_together(tmp_path, order):
    fill(tmp_path, 0, 1000)
    numbers = list(range(1000))
    if order != "as written":
        random.Random(0).shuffle(numbers)
        numbers.sort(key=lambda number: number // 50)
    cache = ResponseCache(tmp_path)

    assert looks(cache, numbers) < 1000 / 10
    assert not cache._neighbours._rows.keys() & {key(number) for number in numbers}  # each was handed out
    assert not cache._reader.in_transaction  # or the file could only grow
    cache.close()


def test_answers_far_apart_are_soon_looked_up_one_by_one_and_those_together_then_together_again(tmp_path):
    fill(tmp_path, 0, 20_000)
    cache = ResponseCache(tmp_path)
    apart = [number * 7919 % 20_000 for number in range(400)]

    assert looks(cache, apart) < 400 + 10
    assert looks(cache, [number * 7919 % 20_000 for number in range(400, 600)]) < 200 + 10
    assert looks(cache, range(5000, 6000)) < 600
    assert len(cache._neighbours._rows) <= response_cache.BLOCKS * response_cache.BLOCK_ROWS
    cache.close()


def test_what_another_has_written_is_found_though_its_neighbours_were_read_before(tmp_path):
    fill(tmp_path, 0, 10)
    cache = ResponseCache(tmp_path)
    assert looks(cache, range(5)) == 2
    fill(tmp_path, 10, 1)

    assert cache.get(key(10)) == STORED
    assert (len(cache), cache.spent("run")) == (11, 2.75)
    cache.close()


def test_an_answer_that_was_written_anew_is_found_at_once(tmp_path):
    fill(tmp_path, 0, 2)
    cache = ResponseCache(tmp_path)
    assert cache.get(key(0)) == STORED  # and the other is held beside it
    newer = Stored((Answer("perhaps"),), "m-2", 7, 1, 124.5)
    cache.put(key(1), newer)

    assert cache.get(key(1)) == newer
    cache.flush()
    assert cache.get(key(1)) == newer
    cache.close()


def test_the_key_holds_path_request_and_sample():
    keys = {
        cache_key("/v1/chat/completions", b"{}", 0),
        cache_key("/v1/chat/completions", b"{}", 1),
        cache_key("/v2/chat/completions", b"{}", 0),
        cache_key("/v1/chat/completions", b'{"n":1}', 0),
    }
    assert len(keys) == 4
    # Answers outlive releases: another key would be paid for again.
    assert cache_key("/v1/chat/completions", b"{}", 0).hex() == "9dd65d7b95ee37dd74ed40279ef051f1"


def test_several_processes_write_one_file_and_no_answer_or_cent_is_lost(tmp_path):
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=fill, args=(tmp_path, 50 * number, 60)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 4
    cache = ResponseCache(tmp_path)
    assert len(cache) == 210
    assert cache.spent("run") == pytest.approx(240 * 0.25)
    assert cache.spent("another run") == 0.0
    cache.close()


def test_answers_of_a_killed_process_are_there_but_for_the_last_group(tmp_path):
    program = (
        "import os, sys\n"
        "from gristmill.models.client.response_cache import *\n"
        "cache = ResponseCache(sys.argv[1])\n"
        "for n in range(100): cache.put(cache_key('/', b'', n), Stored((Answer('a'),), 'm', 1, 1, 0.0))\n"
        "cache.flush()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    cache = ResponseCache(tmp_path)
    assert len(cache) == 100
    cache.close()


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be taken for one" * 100, b"SQLite format 3\0"]
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(MachineError, match=f"{FILE}: expected answers of earlier runs; the file is damaged") as caught:
        ResponseCache(tmp_path)
    assert fault_of(caught.value, writes=False) is Fault.MACHINE_FINAL
    assert (tmp_path / FILE).read_bytes() == content  # whose it is, decides what becomes of it


def test_damage_found_while_reading_is_told_in_the_same_words(tmp_path):
    fill(tmp_path, 0, 2000)
    content = bytearray((tmp_path / FILE).read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(MachineError, match="the file is damaged"):
        read_all(tmp_path)


def read_all(directory):
    cache = ResponseCache(directory)
    try:
        for number in range(2000):
            cache.get(key(number))
    finally:
        cache.close()


def test_a_database_of_something_else_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE mine (x)")
    with pytest.raises(ConfigError, match=r"a database of something else\. Name another directory"):
        ResponseCache(tmp_path)


def test_a_directory_that_cannot_be_written_is_the_machines_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="file") as caught:
        ResponseCache(tmp_path / "file" / "below")
    assert fault_of(caught.value, writes=False) in (Fault.MACHINE, Fault.MACHINE_FINAL)


def test_a_full_disk_is_told_to_whoever_asks_next_and_nothing_answered_is_lost(tmp_path, monkeypatch):
    cache = ResponseCache(tmp_path)
    fill_up = sqlite3.connect(tmp_path / FILE)
    monkeypatch.setattr(response_cache, "_store", full)
    cache.put(key(1), STORED)
    with pytest.raises(MachineError, match="database or disk is full") as caught:
        cache.flush()
    assert caught.value.errno == errno.ENOSPC
    assert fault_of(caught.value, writes=False) is Fault.MACHINE
    with pytest.raises(MachineError, match="database or disk is full"):
        cache.get(key(2))
    monkeypatch.undo()
    until_written(cache)
    assert cache.get(key(1)) == STORED
    cache.close()
    assert fill_up.execute("SELECT count(*) FROM answers").fetchone() == (1,)
    fill_up.close()


def full(connection, answers, spent):
    """What SQLite says on a full disk, by its own means: no page may be added to the file."""
    connection.execute("PRAGMA max_page_count = 1")
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE big AS SELECT zeroblob(1000000)")
    finally:
        connection.execute("ROLLBACK")


def until_written(cache):
    for _ in range(100):
        try:
            cache.flush()
        except MachineError:
            threading.Event().wait(response_cache.AGAIN_S / 10)
        else:
            return
    raise AssertionError("never written")


def test_two_that_make_the_file_at_once_get_one(tmp_path):
    made, errors = [], []

    def make():
        try:
            made.append(ResponseCache(tmp_path))
        except MachineError as error:
            errors.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for cache in made:
        cache.put(key(os.getpid()), STORED)
        cache.close()


def test_a_block_is_read_once_and_what_is_left_of_old_blocks_is_let_go_of():
    near = response_cache._Neighbours()
    for block in range(20):
        first = block * response_cache.BLOCK_ROWS
        rows = [(b"%d" % (first + row), b"[]", "m", 1, 1, 0.0) for row in range(response_cache.BLOCK_ROWS)]
        assert near.block_to_read(first) == block
        near.add(block, rows, but=rows[0][0])
        assert near.block_to_read(first + 5) is None
        for row in rows[1:40]:
            assert near.take(row[0]) == row

    assert len(near._rows) == response_cache.BLOCKS * (response_cache.BLOCK_ROWS - 40)
