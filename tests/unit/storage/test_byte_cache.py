"""Cached bytes are made once, are whole or made again, and are never taken from a place others can write to."""

import multiprocessing
import os
from pathlib import Path

import pytest

from gristmill.storage.byte_cache import CACHE_VARIABLE, cached_bytes


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def made_by(calls):
    def make():
        calls.append(1)
        return b"result"

    return make


def test_a_second_call_finds_what_the_first_made(cache):
    calls = []

    assert [cached_bytes("key", made_by(calls)) for _ in range(2)] == [b"result"] * 2
    assert len(calls) == 1


def test_another_key_is_another_thing(cache):
    assert cached_bytes("a", lambda: b"1") == b"1"
    assert cached_bytes("b", lambda: b"2") == b"2"


def test_damaged_bytes_are_made_again(cache):
    calls = []
    cached_bytes("key", made_by(calls))
    [path] = [path for path in cache.iterdir() if not path.suffix]
    path.write_bytes(path.read_bytes()[:-1])

    assert cached_bytes("key", made_by(calls)) == b"result"
    assert len(calls) == 2


def test_a_directory_others_can_write_to_is_not_used(cache):
    cache.mkdir()
    cache.chmod(0o777)

    assert cached_bytes("key", lambda: b"result") == b"result"
    assert list(cache.iterdir()) == []


def test_without_a_directory_everything_still_works(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))

    assert cached_bytes("key", lambda: b"result") == b"result"


def _make_slowly(log):
    def make():
        with Path(log).open("ab") as file:
            file.write(b"%d\n" % os.getpid())
        return b"x" * 1_000_000

    return cached_bytes("key", make)


@pytest.mark.slow
def test_of_many_processes_that_ask_at_once_one_makes_it(cache, tmp_path):
    # Left by its end, and not by `with`, which ends the processes by a signal: what they got by the fork may ignore it.
    pool = multiprocessing.get_context("fork").Pool(6)
    results = pool.map(_make_slowly, [str(tmp_path / "log")] * 6)
    pool.close()
    pool.join()

    assert results == [b"x" * 1_000_000] * 6
    assert len((tmp_path / "log").read_bytes().splitlines()) == 1
