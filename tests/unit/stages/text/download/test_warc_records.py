"""Records of WARC files, as they should be and as they are; what cannot be read is told with its place."""

import gzip
import io
import random
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.warc_files import crawl, noise, packed, page, record, response

from gristmill.errors import DamagedFile
from gristmill.stages.context import Quarantined
from gristmill.stages.ingest_limits import IngestLimits
from gristmill.stages.text.download.common_crawl.warc_iterator import CommonCrawlWarcIterator, CommonCrawlWetIterator
from gristmill.stages.text.download.common_crawl.warc_records import (
    Problem,
    Record,
    TooLarge,
    payload_of,
    records_in,
    records_of_stream,
)
from gristmill.tasks import FileSlice

BODY = b"<p>" + b"hello world " * 50 + b"</p>"
MOST = 1 << 20


def body_of(raw, most=MOST):
    [found] = records_in(raw)
    return payload_of(found, most).body


def chunked(body, size=100):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def test_a_record_has_its_headers_its_block_and_its_payload():
    [found] = records_in(response("https://example.org/é", BODY, extra={"WARC_Truncated": "length"}), 77)

    assert (found.kind, found.url, found.offset) == ("response", "https://example.org/é", 77)
    assert len(found.identifier) == 36
    assert found.headers["warc-truncated"] == "length"
    payload = payload_of(found, MOST)
    assert (payload.body, payload.status, payload.headers["content-type"]) == (BODY, 200, "text/html")


ENCODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda body: pa.compress(body, codec="brotli", asbytes=True),
    "zstd": lambda body: pa.compress(body, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize(("name", "encode"), ENCODINGS.items(), ids=ENCODINGS)
def test_a_body_is_decoded_as_its_headers_say_and_left_alone_where_they_lie(name, encode):
    assert body_of(response("u", encode(BODY), Content_Encoding=name)) == BODY
    assert body_of(response("u", chunked(encode(BODY)), Content_Encoding=name, Transfer_Encoding="chunked")) == BODY
    assert body_of(response("u", BODY, Content_Encoding=name)) == BODY


def test_deflate_without_a_header_is_read_too():
    raw = zlib.compressobj(wbits=-15)
    assert body_of(response("u", raw.compress(BODY) + raw.flush(), Content_Encoding="deflate")) == BODY


def test_a_body_that_was_cut_is_what_there_is_of_it():
    cut = gzip.compress(noise(5000) + BODY)[:3000]
    assert noise(5000).startswith(body_of(response("u", cut, Content_Encoding="gzip"))[:100])
    assert body_of(response("u", chunked(BODY)[:250], Transfer_Encoding="chunked")) == BODY[:234]  # 16 are lengths


@pytest.mark.parametrize("body", [BODY, b"zz\r\n" + BODY, b""])
def test_a_body_that_is_not_chunked_though_its_header_says_so_stays(body):
    assert body_of(response("u", body, Transfer_Encoding="chunked")) == body


def test_a_body_that_unpacks_to_more_than_allowed_is_too_large():
    for encode, name in ((gzip.compress, "gzip"), (ENCODINGS["zstd"], "zstd")):
        with pytest.raises(TooLarge, match="at most 1,048,576 bytes"):
            body_of(response("u", encode(bytes(3 * MOST)), Content_Encoding=name))


ODD = {
    "no http": (record("response", b"example.org. 300 IN A 1.2.3.4", "dns:example.org", Content_Type="text/dns"), None),
    "line ends": (record("response", b"HTTP/1.0 302\nLocation: x\n\nmoved", "u"), 302),
    "no body": (record("response", b"HTTP/1.1 204 No Content\r\n\r\n", "u"), 204),
    "no end": (record("response", b"HTTP/1.1 200 OK\r\nServer: x", "u"), 200),
    "odd status": (record("response", b"HTTPX/9 999 eh\r\n\r\nx", "u", Content_Type="application/http"), 999),
    "empty": (record("response", b"", "u"), None),
    "folded": (record("response", b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\nx", "u"), 200),
}


@pytest.mark.parametrize(("raw", "status"), ODD.values(), ids=ODD)
def test_odd_answers_are_read_as_far_as_they_go(raw, status):
    [found] = records_in(raw)
    assert payload_of(found, MOST).status == status


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "begins with WARC/1."),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "begins with WARC/1."),
        (b"WARC/2.0\r\nContent-Length: 3\r\n\r\nabc", "begins with WARC/1."),
        (b"WARC/1.0\r\nWARC-Type: response\r\n\r\nabc", "Content-Length in digits; got ''"),
        (b"WARC/1.0\r\nContent-Length: -5\r\n\r\nabc", "Content-Length in digits; got '-5'"),
        (b"WARC/1.0\r\nContent-Length: 50\r\n\r\nabc", "a block of 50 bytes; got 3"),
        (b"WARC/1.0\r\nContent-Length: 50", "they do not end"),
    ],
)
def test_what_is_not_a_record_is_told(raw, why):
    [found] = records_in(raw, 9)
    assert isinstance(found, Problem)
    assert found.offset == 9
    assert why in found.why


@given(st.lists(st.integers(1, 400), max_size=12), st.randoms(use_true_random=False))
def test_a_stream_gives_the_same_records_however_it_comes(sizes, rng):
    raw = b"".join(response(f"u{n}", page(n, random.Random(n))) for n in range(4))
    pieces, rest = [], raw
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    pieces = [piece for piece in [*pieces, rest] if piece]

    found = list(records_of_stream(pieces, MOST))
    assert [(r.url, r.block) for r in found] == [(r.url, r.block) for r in records_in(raw)]
    assert raw[found[2].offset :].startswith(b"WARC/1.0")


def test_a_stream_goes_on_behind_what_is_not_a_record_and_behind_what_is_too_large():
    good = [response(f"u{n}", b"x" * n) for n in range(3)]
    bad = b"WARC/1.0\r\nContent-Length: x\r\n\r\nrubbish\r\n\r\n"
    raw = (
        good[0]
        + bad
        + good[1]
        + response("large", bytes(MOST + 1))
        + good[2]
        + b"WARC/1.0\r\nContent-Length: 9\r\n\r\nx"
    )
    found = list(records_of_stream([raw[at : at + 700] for at in range(0, len(raw), 700)], MOST))

    assert [each.url for each in found if isinstance(each, Record)] == ["u0", "u1", "u2"]
    problems = [each for each in found if isinstance(each, Problem)]
    assert [problem.is_too_large for problem in problems] == [False, True, False]
    assert problems[0].offset == len(good[0])


def test_a_record_right_behind_rubbish_that_ends_as_a_head_does_is_found():
    good = [response(f"u{n}", b"x" * n) for n in range(3)]
    rubbish = b"Rubbish: as much as a head\r\n\r\n"
    found = list(records_of_stream([good[0] + rubbish + good[1] + good[2]], MOST))

    assert [each.url for each in found if isinstance(each, Record)] == ["u0", "u1", "u2"]
    [problem] = [each for each in found if isinstance(each, Problem)]
    assert (problem.offset, problem.size) == (len(good[0]), len(rubbish))
    assert "begins with WARC/1.; got b'Rubbish: as much as a head'" in problem.why


# Files


def iterate(path, part=None, **options):
    return list(CommonCrawlWarcIterator(**options).iterate_part(FileSlice(str(path), part)))


def oracle(path):
    """What warcio finds: url, id without its wrapping, content."""
    from warcio.archiveiterator import ArchiveIterator

    with path.open("rb") as file:
        return [
            (
                r.rec_headers.get_header("WARC-Target-URI"),
                r.rec_headers.get_header("WARC-Record-ID")[10:-1],
                r.content_stream().read(),
            )
            for r in ArchiveIterator(file)
            if r.rec_type == "response"
        ]


@pytest.mark.parametrize("how", ["members", "plain", "one member", "zstd", "bz2"])
def test_it_finds_what_warcio_finds_however_a_file_is_packed(tmp_path, how):
    raws = [gzip.decompress(member) for member in crawl(20)]
    raws += [response("https://e.org/u1", chunked(BODY), Transfer_Encoding="chunked")]
    raws += [
        response("https://e.org/u2", gzip.compress(BODY), Content_Encoding="gzip"),
        record("revisit", b"", "https://e.org/u3"),
    ]
    import bz2

    forms = {
        "members": (".gz", b"".join(map(packed, raws))),
        "plain": ("", b"".join(raws)),
        "one member": (".gz", gzip.compress(b"".join(raws))),
        "zstd": (".zst", pa.compress(b"".join(raws), codec="zstd", asbytes=True)),
        "bz2": (".bz2", bz2.compress(b"".join(raws))),
    }
    plain, path = tmp_path / "plain.warc", tmp_path / f"a.warc{forms[how][0]}"
    plain.write_bytes(b"".join(raws))
    path.write_bytes(forms[how][1])

    found = iterate(path)
    assert [(r["url"], r["warc_id"], r["content"]) for r in found] == oracle(plain)
    assert len(found) == 22
    assert {r["source_id"] for r in found} == {path.name}


# warcio leaves the temporary files it spools payloads to to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_it_finds_what_warcio_has_written(tmp_path):
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    path = tmp_path / "w.warc.gz"
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for n in range(30):
            head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
            body = io.BytesIO(page(n, random.Random(n)))
            writer.write_record(
                writer.create_warc_record(f"https://e.org/{n}", "response", payload=body, http_headers=head)
            )
    assert [(r["url"], r["warc_id"], r["content"]) for r in iterate(path)] == oracle(path)


def test_details_find_a_record_again_in_its_file(tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"".join(crawl(5)))
    for found in iterate(path, details=True):
        start, length = found["warc_offset"], found["warc_length"]
        [again] = records_in(gzip.decompress(path.read_bytes()[start : start + length]))
        assert again.url == found["url"]
        assert (found["http_status"], found["http_content_type"], found["identified_type"]) == (
            200,
            "text/html",
            "text/html",
        )
    assert list(found) == CommonCrawlWarcIterator(details=True).output_columns()


def test_a_damaged_member_is_on_record_with_its_place_and_the_others_are_there(tmp_path):
    members = crawl(60)
    starts = [sum(map(len, members[:n])) for n in range(len(members))]
    data = bytearray(b"".join(members))
    data[starts[8] + len(members[8]) // 2] ^= 0xFF
    path = tmp_path / "a.warc.gz"
    path.write_bytes(data)

    found = iterate(path)
    [lost] = [each for each in found if isinstance(each, Quarantined)]
    assert (lost.kind, lost.block_start, lost.lost_bytes) == ("damaged", starts[8], len(members[8]))
    assert (lost.num_documents, lost.source) == (0, str(path))
    assert len(found) == 60
    with pytest.raises(DamagedFile, match="1 could not be read"):
        list(CommonCrawlWarcIterator().iterate(str(path)))


def test_a_record_that_is_too_large_is_passed_over_wherever_it_is(tmp_path):
    path = tmp_path / "a.warc.gz"
    small = IngestLimits(max_record_bytes=100_000)
    large = response("https://example.org/large", noise(200_000))
    bomb = response("https://example.org/bomb", gzip.compress(bytes(10_000_000)), Content_Encoding="gzip")
    path.write_bytes(b"".join([*crawl(3), packed(large), packed(bomb), *crawl(3, seed=2)]))

    found = iterate(path, limits=small)
    assert [each.kind for each in found if isinstance(each, Quarantined)] == ["too_large", "too_large"]
    assert len(found) == 8


def test_texts_of_wet_files_come_with_their_language(tmp_path):
    path = tmp_path / "a.warc.wet.gz"
    language = {"WARC_Identified_Content_Language": "eng,deu"}
    records = [
        record("warcinfo", b""),
        record("conversion", "Grüße".encode(), "https://example.org/1", Content_Type="text/plain", **language),
        record("conversion", b"\xff\xfe", "https://example.org/2"),
        record("conversion", b"", "https://example.org/3"),
    ]
    path.write_bytes(b"".join(map(packed, records)))

    first, second, third = CommonCrawlWetIterator().iterate_part(FileSlice(str(path)))
    assert (first["text"], first["language"], first["url"]) == ("Grüße", "eng,deu", "https://example.org/1")
    assert (second.kind, second.num_documents) == ("bad_utf8", 1)
    assert (third["text"], third["language"]) == ("", None)
