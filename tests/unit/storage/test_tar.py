"""Tar archives by their headers: as `tarfile` sees them where they are whole, and never less without a word."""

import io
import re
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import DamagedFile
from gristmill.storage.tar import Forward, members

names = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=120).filter(
    lambda name: name not in (".", "..")
)
contents = st.lists(st.tuples(names, st.binary(max_size=1500)), max_size=8)
formats = st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])


def archive(files, form=tarfile.GNU_FORMAT, **options):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, **options) as out:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def found(data, start=0, end=None, **options):
    at = len(data) if end is None else end
    return list(members(lambda a, b: data[a:b], start, at, who="a.tar", **options))


def until_damage(data):
    """The members before the damage, and what it is."""
    seen = []
    try:
        seen.extend(members(lambda a, b: data[a:b], 0, len(data), who="a.tar"))
    except DamagedFile as error:
        return seen, error
    pytest.fail("expected DamagedFile; got nothing")


def expected(data):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as opened:
        return [(info.name, info.offset, info.offset_data, info.size, info.isreg()) for info in opened]


def shown(found_members):
    return [(m.name.rstrip("/"), m.start, m.data, m.size, m.is_file) for m in found_members]


@given(contents, formats)
def test_members_are_those_tarfile_sees(files, form):
    try:
        data = archive(files, form)
    except ValueError:  # a name that is too long for the oldest form
        return

    assert shown(found(data)) == expected(data)


def test_links_and_directories_are_members_without_content():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"of type {kind.decode()}")
            info.type, info.linkname = kind, "x" * 200
            out.addfile(info)
        out.addfile(tarfile.TarInfo("f"))

    assert shown(found(buffer.getvalue())) == expected(buffer.getvalue())
    assert [m.name for m in found(buffer.getvalue()) if m.is_file] == ["f"]


def test_a_global_header_is_not_a_member():
    data = archive([("a", b"1")], tarfile.PAX_FORMAT, pax_headers={"comment": "of the whole archive"})

    assert [m.name for m in found(data)] == ["a"]


def test_a_size_that_needs_more_than_octal_digits_is_read():
    info = tarfile.TarInfo("huge")
    info.size = 9 * 1024**3
    header = info.tobuf(tarfile.GNU_FORMAT)
    member = next(members(lambda a, b: header[a:b], 0, 10 * 1024**3, who="a.tar"))

    assert (member.size, member.end) == (9 * 1024**3, 9 * 1024**3 + 512)


def test_archives_joined_end_to_end_are_read_to_their_end():
    data = archive([("a", b"1")]) + archive([("b", b"2" * 700)])

    assert [m.name for m in found(data)] == ["a", "b"]


@given(contents.filter(bool), st.data())
def test_an_archive_that_is_cut_anywhere_says_so(files, data):
    whole = archive(files)
    cut = data.draw(st.integers(0, found(whole)[-1].end))  # before the zeros
    seen, error = until_damage(whole[:cut])

    assert seen == [m for m in found(whole) if m.data + m.size <= cut]
    assert error.position == min(cut, seen[-1].end if seen else 0)
    assert error.lost_bytes == cut - error.position


@given(st.integers(0, 511).filter(lambda at: not 148 <= at < 156), st.integers(1, 255))
def test_a_header_that_is_damaged_anywhere_is_told(at, change):
    data = bytearray(archive([("a", b"1"), ("b", b"2")]))
    data[1024 + at] ^= change
    (seen,), error = until_damage(bytes(data))

    assert (seen.name, error.position) == ("a", 1024)
    assert re.match(r"a\.tar: expected a whole tar archive; got .* at byte 1,024", str(error))


@given(contents, st.integers(1, 700))
def test_content_that_comes_in_pieces_is_read_by_position(files, step):
    data = archive(files)
    forward = Forward(data[i : i + step] for i in range(0, len(data), step))
    walk = members(forward.read, 0, 1 << 60, who="a.tar")

    assert [(m.name, forward.read(m.data, m.data + m.size)) for m in walk] == files
