"""Streams of a bzip2 file: found from any byte, each read once however the file is cut, damage told once."""

import bz2
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.storage.bz2_streams import Damage, Piece, find_stream, read_streams
from gristmill.storage.open_read import InputFile


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("streams")


def write(directory, content):
    path = directory / f"{random.getrandbits(64):x}.bz2"
    path.write_bytes(content)
    return str(path)


def read_part(path, start, end):
    """What a part owns: the content of its streams, and the damage in and behind them."""
    found, damage = {}, []
    with InputFile(path) as file:
        for got in read_streams(file, start, end):
            if isinstance(got, Damage):
                damage += [got] * (got.owner < end)
            elif got.stream >= end:
                break
            else:
                assert isinstance(got, Piece)
                found[got.stream] = found.get(got.stream, b"") + got.content
    return found, damage


def read_parts(path, cuts, size):
    bounds = [0, *sorted({cut % (size + 1) for cut in cuts} - {0, size}), size]
    found, damage = {}, []
    for start, end in itertools.pairwise(bounds):
        some, bad = read_part(path, start, end)
        assert not found.keys() & some.keys()
        found |= some
        damage += bad
    return found, damage


contents = st.lists(st.binary(max_size=40) | st.just(b"x" * 3000), min_size=1, max_size=6)
cuts = st.lists(st.integers(0, 10**6), max_size=5)


@given(contents, cuts)
def test_any_cut_gives_each_stream_once(directory, contents, cuts):
    streams = [bz2.compress(content) for content in contents]
    path = write(directory, b"".join(streams))
    starts = [sum(map(len, streams[:k])) for k in range(len(streams))]

    found, damage = read_parts(path, cuts, sum(map(len, streams)))

    assert found == {start: content for start, content in zip(starts, contents, strict=True) if content}
    assert not damage


@given(contents, cuts, st.integers(0, 10**6), st.integers(1, 255))
def test_any_cut_of_a_damaged_file_gives_the_same_content_and_the_same_damage(directory, contents, cuts, where, flip):
    content = bytearray(b"".join(map(bz2.compress, contents)))
    content[where % len(content)] ^= flip
    path = write(directory, bytes(content))

    assert read_parts(path, cuts, len(content)) == read_parts(path, [], len(content))


@given(contents, st.integers(1, 10**6))
def test_a_file_that_is_cut_short_is_damaged(directory, contents, where):
    streams = [bz2.compress(content) for content in contents]
    whole = b"".join(streams)
    size = where % len(whole)
    path = write(directory, whole[:size])
    ends = [sum(map(len, streams[: k + 1])) for k in range(len(streams))]

    _, damage = read_parts(path, [], size)

    assert bool(damage) == (size > 0 and size not in ends)
    assert all(each.end == size for each in damage)


def test_zeros_behind_the_end_are_not_damage(directory):
    path = write(directory, bz2.compress(b"a") + bytes(5000))
    assert read_parts(path, [100], 5000) == ({0: b"a"}, [])


def test_bytes_between_streams_are_damage_of_the_stream_before(directory):
    one, other = bz2.compress(b"a"), bz2.compress(b"b")
    path = write(directory, one + b"rubbish" + other)
    found, [damage] = read_parts(path, [len(one) + 3], len(one + other) + 7)
    assert found == {0: b"a", len(one) + 7: b"b"}
    assert (damage.owner, damage.start, damage.end) == (0, len(one), len(one) + 7)


def test_a_file_of_something_else_is_damaged_as_a_whole(directory):
    path = write(directory, b"not bzip2" * 1000)
    assert read_parts(path, [4000], 9000) == ({}, [Damage(0, 0, 9000, "no stream at its beginning")])


def test_the_mark_of_a_stream_in_data_is_not_a_stream(directory):
    path = write(directory, bz2.compress(b"a") + b"BZh91AY&SY" + bytes(100) + bz2.compress(b"b"))
    found, [damage] = read_parts(path, [], 1000)
    assert list(found.values()) == [b"a", b"b"]
    assert damage.end - damage.start == 110


def test_a_mark_across_the_edge_of_what_is_searched_at_once_is_found(directory, monkeypatch):
    monkeypatch.setattr("gristmill.storage.bz2_streams._SEARCH_BYTES", 16)
    one, other = bz2.compress(b"a" * 10), bz2.compress(b"b")
    path = write(directory, one + other)
    with InputFile(path) as file:
        assert [find_stream(file, start, file.size) for start in (0, 1, len(one))] == [0, len(one), len(one)]
        assert find_stream(file, len(one) + 1, file.size) is None
        assert find_stream(file, 1, len(one)) is None
