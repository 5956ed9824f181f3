"""Answers with several ranges: every part whole, whatever its bytes are, and nothing of a part that is not whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.storage.multipart_ranges import boundary_of, parts_of

BOUNDARY = b"b0"
bodies = st.lists(
    st.tuples(
        st.integers(0, 10**12), st.sampled_from([b"x", b"\r\n--b0\r\n", b"\r\n\r\n", bytes(70), b"--b0--", b"\0"])
    ),
    max_size=6,
)


def written(parts, line_end=b"\r\n"):
    made = b"".join(
        b"--b0"
        + line_end
        + b"Content-Range: bytes %d-%d/*\r\n\r\n" % (start, start + len(content) - 1)
        + content
        + b"\r\n"
        for start, content in parts
    )
    return made + b"--b0--\r\n"


def found(body):
    return [(part.start, bytes(part.content)) for part in parts_of(body, BOUNDARY)]


@given(bodies)
def test_what_is_written_is_read(parts):
    assert found(written(parts)) == parts
    assert found(b"preamble\r\n" + written(parts)) == parts


@given(bodies, st.integers(0, 2_000))
def test_of_a_body_that_is_cut_off_the_whole_parts_are_read(parts, size):
    read = found(written(parts)[:size])

    assert read == parts[: len(read)]
    whole = [len(written(parts[: n + 1])) - len(b"\r\n--b0--\r\n") for n in range(len(parts))]
    assert len(read) == sum(end <= size for end in whole)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(body):
    for part in parts_of(b"--b0\r\n" + body, BOUNDARY):
        assert len(part.content) == part.end - part.start


@pytest.mark.parametrize(
    "head",
    [
        b"content-range:bytes 5-6/7",
        b"Content-Type: text/plain\r\nCONTENT-RANGE:  bytes  5-6/7",
        b"Content-Range: bytes 5-6/7\r\nX-More: 1",
    ],
)
def test_headers_are_read_in_any_form(head):
    [part] = parts_of(b"--b0\r\n" + head + b"\r\n\r\nab\r\n--b0--", BOUNDARY)

    assert (part.start, bytes(part.content), part.is_last) == (5, b"ab", True)


@pytest.mark.parametrize(
    ("given_type", "boundary"),
    [
        ("multipart/byteranges; boundary=abc", b"abc"),
        ('Multipart/ByteRanges;boundary="a b;c"', b"a b;c"),
        ("multipart/byteranges; charset=x; boundary=abc; more", b"abc"),
        ("multipart/byteranges", None),
        ("text/html; boundary=abc", None),
        ("", None),
    ],
)
def test_the_boundary_is_what_the_header_says(given_type, boundary):
    assert boundary_of({"content-type": given_type}) == boundary
    assert boundary_of({}) is None
