"""Tar archives by their headers: as `tarfile` sees them where they are whole, and never less without a word."""

import io
import re
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.errors import DamagedFile
from gristmill.storage.tar import Forward, content, members

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


@pytest.mark.parametrize("padding", [1024, 10_240 - 1024])
def test_archives_joined_end_to_end_may_end_in_two_blocks_of_zeros_or_in_a_whole_record(padding):
    first = archive([("a", b"1")])[:1024] + bytes(padding)
    assert [m.name for m in found(first + archive([("b", b"2")]))] == ["a", "b"]


@pytest.mark.parametrize("blocks", [4, 8])
def test_zeros_where_members_were_are_told_when_the_others_are_read(blocks):
    data = bytearray(archive([(str(number), bytes([number + 1]) * 512) for number in range(20)]))
    data[4096 : 4096 + 512 * blocks] = bytes(512 * blocks)
    seen, error = until_damage(bytes(data))

    assert [m.name for m in seen] == [str(number) for number in range(20) if not 4 <= number < 4 + blocks // 2]
    assert (error.position, error.lost_bytes) == (4096, 512 * blocks)
    assert "bytes of zeros in its middle, at byte 4,096" in str(error)


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


def raw(name, kind, content, *, fields=()):
    """A member as bytes; `fields` are (position, bytes) of its header as an old archive might have them."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT)[:512])
    for at, field in fields:
        header[at : at + len(field)] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + content + bytes(-len(content) % 512)


def octal(*numbers):
    return b"".join(b"%011o\0" % number for number in numbers)


def pax(*records):
    """An extended header that says this; every record must be of 6 to 95 bytes."""
    return raw("x", b"x", b"".join(b"%d %b\n" % (len(record) + 4, record.encode()) for record in records))


END = bytes(1024)
HOLED = bytes(1000) + b"a" * 700 + bytes(3000) + b"b" * 40 + bytes(260)
STORED = b"a" * 700 + b"b" * 40
PLACE = "GNUSparseFile.1/f"
SPARSE = {
    "gnu": raw("f", b"S", STORED, fields=[(386, octal(1000, 700, 4700, 40)), (483, octal(5000))]),
    "0.0": pax(
        "GNU.sparse.size=5000",
        "GNU.sparse.numblocks=2",
        "GNU.sparse.offset=1000",
        "GNU.sparse.numbytes=700",
        "GNU.sparse.offset=4700",
        "GNU.sparse.numbytes=40",
    )
    + raw("f", b"0", STORED),
    "0.1": pax("GNU.sparse.size=5000", "GNU.sparse.name=f", "GNU.sparse.map=1000,700,4700,40")
    + raw(PLACE, b"0", STORED),
    "1.0": pax("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=f", "GNU.sparse.realsize=5000")
    + raw(PLACE, b"0", b"2\n1000\n700\n4700\n40\n".ljust(512, b"\0") + STORED),
}


@pytest.mark.parametrize("form", SPARSE)
def test_a_file_with_holes_is_read_whole_however_its_map_is_written(form):
    data = SPARSE[form] + archive([("g", b"next")])
    holed, after = found(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        assert opened.extractfile("f").read() == HOLED  # the archive is what it is meant to be

    assert (holed.name, holed.is_file, holed.size) == ("f", True, 5000)
    assert content(lambda a, b: data[a:b], holed, "a.tar") == HOLED
    assert (after.name, content(lambda a, b: data[a:b], after, "a.tar")) == ("g", b"next")


def test_a_map_of_more_pieces_than_a_header_holds_goes_on_in_blocks_behind_it():
    pieces = [(100 * n, 10) for n in range(30)]
    first, second, third = pieces[:4], pieces[4:25], pieces[25:]
    stored = b"".join(b"%10d" % n for n in range(30))
    head = raw("f", b"S", stored, fields=[(386, octal(*sum(first, ()))), (482, b"\1"), (483, octal(3000))])
    more = octal(*sum(second, ())).ljust(504, b"\0") + b"\1" + bytes(7) + octal(*sum(third, ())).ljust(512, b"\0")
    data = head[:512] + more + head[512:] + archive([("g", b"next")])
    holed, after = found(data)
    read = content(lambda a, b: data[a:b], holed, "a.tar")

    assert [read[at : at + 10] for at, _ in pieces] == [b"%10d" % n for n in range(30)]
    assert len(read) == 3000
    assert after.name == "g"


@pytest.mark.parametrize("form", SPARSE)
def test_a_file_with_holes_that_is_cut_anywhere_says_so(form):
    for cut in range(0, len(SPARSE[form]), 64):
        seen, _ = until_damage(SPARSE[form][:cut])
        assert len(seen) == (cut >= len(SPARSE[form]) - (-len(STORED) % 512))


@pytest.mark.parametrize(
    "member",
    [
        raw("f", b"S", STORED, fields=[(386, octal(1000, 700, 900, 40)), (483, octal(5000))]),  # not in order
        raw("f", b"S", STORED, fields=[(386, octal(1000, 700)), (483, octal(1500))]),  # beyond the end of the file
        raw("f", b"S", STORED, fields=[(386, octal(0, 5000)), (483, octal(5000))]),  # more than is stored
        pax("GNU.sparse.map=1000,700,4700,40") + raw("f", b"0", STORED),  # how large is the file?
        pax("GNU.sparse.size=5000", "GNU.sparse.map=1000,700,4700") + raw("f", b"0", STORED),
        pax("GNU.sparse.major=1", "GNU.sparse.realsize=5000") + raw("f", b"0", b"9" * 600),
        pax("GNU.sparse.major=1", "GNU.sparse.realsize=5000") + raw("f", b"0", b"99\n1\n".ljust(512, b"\n")),
    ],
    ids=["order", "beyond", "stored", "size", "odd", "endless", "half"],
)
def test_a_map_of_holes_that_cannot_be_right_is_told(member):
    seen, error = until_damage(member + archive([("g", b"next")]))

    assert seen == []
    assert "a map of holes of 'f' that cannot be read" in str(error)


@pytest.mark.parametrize(
    "records",
    [
        b"9" * 5000 + b" path=a\n",
        b"99999999999999999999999999 path=a\n",
        b"400 path=a\n",
        b"3 a\n",
        b"0 path=a\n",
        "٣٠ path=a\n".encode(),
        b"path=a\n",
    ],
    ids=["thousands", "absurd", "beyond", "short", "zero", "other-script", "none"],
)
def test_an_extended_header_that_is_not_understood_is_told(records):
    seen, error = until_damage(raw("x", b"x", records) + archive([("g", b"next")]))

    assert (seen, error.position) == ([], 0)
    assert "in an extended header" in str(error)


@pytest.mark.parametrize("size", ["9" * 60, "²²", "-1", "1" + "0" * 19])
def test_a_size_that_no_file_has_is_told(size):
    seen, error = until_damage(pax(f"size={size}") + raw("f", b"0", b"x") + END)

    assert (seen, error.position) == ([], 0)
