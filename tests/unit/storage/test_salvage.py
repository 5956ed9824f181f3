"""What is good in a damaged compressed file is read to the last byte, and the same every time."""

import bz2
import gzip
import random

import fsspec
import pyarrow as pa
import pytest

from gristmill.errors import DamagedFile
from gristmill.storage.open_read import InputFile, read_all, read_undamaged


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd}
SUFFIXES = list(COMPRESS)
chance = random.Random(5)
LINES = [b'{"id":%d,"text":"%x"}\n' % (i, chance.getrandbits(256)) for i in range(30_000)]
CONTENT = b"".join(LINES)


@pytest.fixture(scope="module", params=SUFFIXES)
def stored(request):
    return request.param, COMPRESS[request.param](CONTENT)


def write(tmp_path, suffix, content):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("share", [0.3, 0.999])
def test_a_cut_file_gives_everything_the_decompressor_can(tmp_path, stored, share):
    suffix, whole = stored
    cut = whole[: int(len(whole) * share)]
    found, damage = read_undamaged(write(tmp_path, suffix, cut))
    assert CONTENT.startswith(found)
    # bz2 and zstd give nothing of a block before they have all of it.
    block = {".gz": 10_000, ".bz2": 1_000_000, ".zst": 150_000}[suffix]
    assert len(found) > len(CONTENT) * share - block
    assert (damage.position, damage.lost_bytes, damage.is_complete) == (len(cut), len(cut), False)
    assert "a premature end of the file at byte" in str(damage)


def test_damage_in_the_middle_ends_the_content_near_its_place(tmp_path, stored):
    suffix, whole = stored
    damaged = bytearray(whole)
    at = len(whole) // 2
    damaged[at : at + 50_000] = b"\xff" * 50_000  # a block's header among them: zstd has no checksum to notice less
    found, damage = read_undamaged(write(tmp_path, suffix, bytes(damaged)))
    # Up to the block with the damage the content is right; what a broken block gives before it is noticed may not be.
    assert len(found) > len(CONTENT) * 0.2
    assert CONTENT[: int(len(CONTENT) * 0.2)] == found[: int(len(CONTENT) * 0.2)]
    assert at <= damage.position <= len(whole)
    assert damage.lost_bytes == len(whole) - damage.position
    again, damage_again = read_undamaged(write(tmp_path, suffix, bytes(damaged)))
    assert (found, str(damage)) == (again, str(damage_again))


@pytest.mark.parametrize("num_zeros", [1, 511, 2_000_000])
def test_zeros_behind_the_end_are_not_damage(tmp_path, stored, num_zeros):
    suffix, whole = stored
    assert read_all(write(tmp_path, suffix, whole + bytes(num_zeros))) == CONTENT


@pytest.mark.parametrize("garbage", [b"x", b"garbage" * 1000, bytes(100) + b"x", b"\x1f", b"BZ", b"\x28\xb5"])
def test_garbage_behind_the_end_is_told_and_costs_nothing(tmp_path, stored, garbage):
    suffix, whole = stored
    found, damage = read_undamaged(write(tmp_path, suffix, whole + garbage))
    assert found == CONTENT
    is_cut_member = COMPRESS[suffix](b"").startswith(garbage)
    assert (damage.position, damage.lost_bytes) == (len(whole), len(garbage))
    assert (damage.is_complete, "after its end" in str(damage)) == (not is_cut_member, not is_cut_member)


def test_members_end_to_end_are_one_file_and_damage_in_the_last_leaves_the_others(tmp_path, stored):
    suffix, whole = stored
    small = COMPRESS[suffix](b"first\n")
    assert read_all(write(tmp_path, suffix, small + whole + small)) == b"first\n" + CONTENT + b"first\n"
    found, damage = read_undamaged(write(tmp_path, suffix, small + whole + small[:-3]))
    assert found.startswith(b"first\n" + CONTENT)
    assert damage.position == len(small + whole + small[:-3])
    assert damage.lost_bytes == len(small) - 3


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("num_before", [1, 2])
def test_a_later_member_with_a_damaged_first_byte_is_not_taken_for_garbage(tmp_path, stored, at, num_before):
    suffix, whole = stored
    member = COMPRESS[suffix](b"one\ntw")
    second = bytearray(whole)
    second[at] ^= 4
    found, damage = read_undamaged(write(tmp_path, suffix, member * num_before + bytes(second)))
    assert found == b"one\ntw" * num_before
    assert (damage.position, damage.lost_bytes) == (len(member) * num_before, len(whole))
    assert not damage.is_complete


def test_members_behind_a_part_that_is_zero_are_not_taken_for_garbage(tmp_path, stored):
    suffix, whole = stored
    member = COMPRESS[suffix](b"one\ntw")
    found, damage = read_undamaged(write(tmp_path, suffix, member + bytes(512) + whole))
    assert found == b"one\ntw"
    assert not damage.is_complete


def test_a_checksum_that_is_wrong_is_told_and_the_content_kept(tmp_path):
    whole = bytearray(gzip.compress(CONTENT))
    whole[-6] ^= 1  # in the CRC
    found, damage = read_undamaged(write(tmp_path, ".gz", bytes(whole)))
    assert found == CONTENT
    assert damage.is_complete
    assert "incorrect data check" in str(damage)


@pytest.mark.parametrize("content", [b"plain text", b"plain", b"\x1f\x8b", b"BZh9", b"\x28\xb5\x2f\xfd"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_not_what_its_name_says_is_all_damage(tmp_path, suffix, content):
    found, damage = read_undamaged(write(tmp_path, suffix, content))
    assert found == b""
    assert 0 < damage.lost_bytes <= len(content)
    assert not damage.is_complete


def test_skippable_frames_of_zstd_are_skipped_before_damage_too(tmp_path):
    skippable = (0x184D2A50).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    whole = skippable + zstd(b"one\n") + skippable + zstd(b"two\n")
    found, damage = read_undamaged(write(tmp_path, ".zst", whole + b"garbage"))
    assert (found, damage.position) == (b"one\ntwo\n", len(whole))


def test_damage_in_an_object_of_a_store_is_found_too(stored):
    suffix, whole = stored
    fsspec.filesystem("memory").pipe(f"/salvage/a{suffix}", whole + b"garbage")
    with pytest.raises(DamagedFile, match="after its end"), InputFile(f"memory://salvage/a{suffix}") as file:
        assert b"".join(file.pieces()) == CONTENT
