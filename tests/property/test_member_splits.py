"""Wherever an archive is cut, its parts together are what a reader of the whole finds, in the same order."""

import random
import zlib
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isal import isal_zlib
from tests.warc_files import crawl, noise, packed, page, record, response

from gristmill.storage import gzip_members
from gristmill.storage.gzip_members import Damage, Member, Members

BEGINS = [b"WARC/1."]
MOST = 1 << 20
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def parts(data, bounds, most=MOST):
    cuts = sorted({0, len(data), *(bound % (len(data) + 1) for bound in bounds)})
    found = []
    for start, end in pairwise(cuts):
        found += Members(lambda a, b: data[a:b], len(data), BEGINS, most).part(start, end)
    return found


def whole(data, most=MOST):
    return parts(data, [], most)


@pytest.fixture
def _small(monkeypatch):
    """Distances of hundreds of bytes, so that small files meet what large ones do."""
    monkeypatch.setattr(gzip_members, "TRUST_BYTES", 3_000)
    monkeypatch.setattr(gzip_members, "LOOK_BACK_BYTES", 6_000)
    monkeypatch.setattr(gzip_members, "_WINDOW_BYTES", 2_048)


CRAWL = b"".join(crawl(60))
STARTS = [0]
for _member in crawl(60):
    STARTS.append(STARTS[-1] + len(_member))


@pytest.mark.usefixtures("_small")
@QUICK
@given(st.lists(st.integers(0, len(CRAWL)), max_size=6))
def test_any_split_gives_the_members_of_the_whole_file(bounds):
    found = parts(CRAWL, bounds)

    assert [member.start for member in found] == STARTS[:-1]
    assert [member.end for member in found] == STARTS[1:]
    assert found == whole(CRAWL)


def test_every_byte_as_a_bound_gives_each_member_once(monkeypatch):
    monkeypatch.setattr(gzip_members, "TRUST_BYTES", 500)
    monkeypatch.setattr(gzip_members, "LOOK_BACK_BYTES", 800)
    data = b"".join(crawl(3))
    expected = whole(data)
    for bound in range(len(data) + 1):
        assert parts(data, [bound]) == expected, bound


def hostile():
    """An archive in which pages are archives themselves: stored as they are, their members look like the outer ones."""
    inner = b"".join(packed(response(f"https://evil.example/{n}", b"<p>" + noise(300, n))) for n in range(400))
    assert len(inner) > 2 * 65_535
    rng = random.Random(5)
    members = crawl(20)
    members.insert(30, packed(response("https://x.example/a.warc.gz", inner), level=0))
    members.insert(20, packed(response("https://x.example/b.warc.gz", inner[:50_000]), level=0))
    members += [packed(response(f"https://example.org/late/{n}", page(n, rng))) for n in range(400)]
    return members


def test_members_inside_a_page_are_never_taken_for_records(monkeypatch):
    # So little that whoever begins in a page looks there first: from further back the file is read from its beginning.
    monkeypatch.setattr(gzip_members, "LOOK_BACK_BYTES", 10_000)
    members = hostile()
    data = b"".join(members)
    starts = [sum(map(len, members[:n])) for n in range(len(members))]
    begins = [at for at in range(len(data)) if data.startswith(b"\x1f\x8b\x08", at)]
    assert len(begins) > len(members) + 300  # the inner ones are there, as they are
    for bound in random.Random(1).sample(begins, 60) + starts[15:35]:
        assert [found.start for found in parts(data, [bound])] == starts, bound


GOOD = {member.content for member in whole(CRAWL)}  # the damage may be in a time or a name, which nobody needs
damages = st.lists(
    st.tuples(
        st.sampled_from(["change", "remove", "insert", "cut", "zero"]),
        st.integers(0, len(CRAWL) - 1),
        st.integers(1, 400),
    ),
    min_size=1,
    max_size=3,
)


def damaged(how):
    """The crawl, with bytes that were changed, removed, put in between or cut off."""
    data = bytearray(CRAWL)
    for kind, place, length in how:
        at = min(place, len(data) - 1)
        if kind == "change":
            data[at] ^= length % 255 + 1
        elif kind == "remove":
            del data[at : at + length]
        elif kind == "insert":
            data[at:at] = noise(length, at)
        elif kind == "zero":
            data[at : at + length] = bytes(min(length, len(data) - at))
        else:
            del data[max(at, len(data) // 2) :]
    return bytes(data)


@pytest.mark.usefixtures("_small")
@QUICK
@given(damages, st.lists(st.integers(0, len(CRAWL)), max_size=5))
def test_the_same_holds_for_a_damaged_file_and_nothing_is_left_out_without_a_word(how, bounds):
    data = damaged(how)
    found = parts(data, bounds)

    assert found == whole(data)
    position = 0
    for each in found:
        assert each.start == position
        position = each.end
    assert not data[position:].strip(b"\0")
    assert {each.content for each in found if isinstance(each, Member)} <= GOOD


@pytest.mark.usefixtures("_small")
@QUICK
@given(damages)
def test_what_is_whole_does_not_depend_on_what_unpacks_it(monkeypatch, how):
    """A cluster may have ISA-L on some machines only; no byte of the output may depend on that."""
    data = damaged(how)
    found = []
    for library in (zlib, isal_zlib):
        monkeypatch.setattr(gzip_members, "_library", lambda library=library: library)
        found.append([each[:2] if isinstance(each, Damage) else each for each in whole(data)])  # not their words

    assert found[0] == found[1]


@pytest.mark.slow
def test_no_byte_of_a_header_makes_a_difference_to_what_unpacks_it(monkeypatch):
    first, rest = packed(record("warcinfo", b"one\r\n")), packed(record("warcinfo", b"two\r\n"))
    for at in range(12):
        for value in range(256):
            data = first[:at] + bytes([value]) + first[at + 1 :] + rest
            found = []
            for library in (zlib, isal_zlib):
                monkeypatch.setattr(gzip_members, "_library", lambda library=library: library)
                found.append([each[:2] if isinstance(each, Damage) else each for each in whole(data)])
            assert found[0] == found[1], (at, value)


def test_behind_damage_reading_goes_on_at_the_next_member():
    data = bytearray(b"".join(hostile()))
    members = whole(bytes(data))
    broken = members[10]
    data[(broken.start + broken.end) // 2] ^= 0xFF
    found = whole(bytes(data))

    assert [each for each in found if isinstance(each, Damage)] == [
        Damage(broken.start, broken.end, found[10].why),
    ]
    assert found[:10] + found[11:] == members[:10] + members[11:]


def test_a_member_that_unpacks_without_end_is_passed_over(monkeypatch):
    monkeypatch.setattr(gzip_members, "GIVE_UP_TIMES", 4)
    head, tail = crawl(5), crawl(700, seed=9)
    large = packed(record("response", bytes(3 * MOST)))
    bomb = packed(record("response", bytes(20 * MOST)))
    data = b"".join([*head, large, bomb, *tail])
    found = whole(data)

    assert len(found) == len(head) + 2 + len(tail)
    assert found[len(head)].content is None
    assert found[len(head)].size > 3 * MOST
    assert isinstance(found[len(head) + 1], Damage)
    assert "at most 1,048,576 bytes" in found[len(head) + 1].why


@pytest.mark.parametrize("content", [b"no record", b"", bytes(2 * MOST)], ids=["small", "empty", "large"])
def test_a_member_that_is_no_record_is_damage_and_no_member(content):
    members = crawl(20)
    foreign = packed(content)
    data = b"".join([*members[:9], foreign, *members[9:]])
    found = whole(data)

    start = sum(map(len, members[:9]))
    assert found[9] == Damage(start, start + len(foreign), "expected a member that begins with 'WARC/1.'; got none")
    assert [each.end - each.start for each in found[:9] + found[10:]] == [len(member) for member in members]


@pytest.mark.usefixtures("_small")
def test_members_that_are_no_records_are_passed_over_together_wherever_the_file_is_cut():
    """They follow one another as trusted ones do, and how they begin is all that tells them from records."""
    members = crawl(20)
    foreign = [packed(noise(200, n)) for n in range(40)]
    data = b"".join([*members[:9], *foreign, *members[9:]])
    start, size = sum(map(len, members[:9])), sum(map(len, foreign))
    assert size > 2 * gzip_members.TRUST_BYTES

    expected = whole(data)
    assert [(each.start, each.end) for each in expected if isinstance(each, Damage)] == [(start, start + size)]
    for bound in range(start, start + size, 97):
        assert parts(data, [bound]) == expected, bound


@pytest.mark.parametrize("data", [b"", b"\0" * 5000, b"\x1f\x8b\x08", noise(10_000), b"WARC/1.0\r\n"])
def test_files_that_are_nothing_of_the_kind_end_without_a_member(data):
    found = whole(data)
    assert not [each for each in found if isinstance(each, Member)]
    assert bool(found) == bool(data.strip(b"\0"))


def test_zeros_behind_the_end_are_not_damage():
    assert whole(CRAWL + bytes(3_000_000)) == whole(CRAWL)


@pytest.mark.parametrize("length", [0, 400, 2_000, 60_000])
def test_headers_with_a_name_of_any_length_are_read(length):
    import gzip
    import io

    buffer = io.BytesIO()
    with gzip.GzipFile("x" * length, "wb", fileobj=buffer, mtime=0) as file:
        file.write(record("response", b"hello"))
    assert len(whole(buffer.getvalue() * 2)) == 2
