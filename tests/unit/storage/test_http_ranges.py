"""Pieces of files by range: joined or alone they are the same bytes, and what cannot be had has a reason."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.storage import http_ranges, rate
from gristmill.storage.http_ranges import MAX_RANGES, NotFetched, Piece, Span, fetch_pieces, requests_of, spans_of
from gristmill.storage.multipart_ranges import Part
from gristmill.storage.transfer import TransferOptions
from gristmill.testing.file_server import Fault, MisbehavingFileServer

CONTENT = os.urandom(400_000)
OPTIONS = TransferOptions(max_retries=2, timeout=1, max_connections=8)


@pytest.fixture(autouse=True)
def _quick(quick_downloads, monkeypatch):
    monkeypatch.setattr(rate, "FIRST", 1e6)
    monkeypatch.setattr(http_ranges, "_ANSWERS_SEVERAL", {})


@pytest.fixture(scope="module")
def serving():
    with MisbehavingFileServer() as server:
        yield server


@pytest.fixture
def server(serving):
    serving.files = {"a": CONTENT, "b": CONTENT[::-1]}
    serving.several_ranges = True
    serving.faults.clear()
    serving.forget()
    return serving


pieces = st.lists(
    st.builds(
        lambda url, start, length: Piece(url, start, start + length),
        st.sampled_from(["a", "b"]),
        st.integers(0, 2000),
        st.integers(1, 300),
    ),
    max_size=12,
)


@given(pieces, st.integers(0, 200), st.integers(1, 1000))
def test_each_piece_is_in_one_span_whole_and_spans_are_bounded(wanted, gap, most):
    spans = spans_of(wanted, gap, most)

    assert sorted(number for span in spans for number in span.pieces) == list(range(len(wanted)))
    for span in spans:
        for number in span.pieces:
            assert span.url == wanted[number].url
            assert span.start <= wanted[number].start
            assert wanted[number].end <= span.end
        assert span.end - span.start <= max(most, *(wanted[n].end - wanted[n].start for n in span.pieces))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(pieces)
def test_pieces_joined_are_those_fetched_one_by_one(serving, wanted):
    serving.files, files = {"a": CONTENT, "b": CONTENT[::-1]}, {"a": CONTENT, "b": CONTENT[::-1]}
    asked = [Piece(f"{serving.url}/{url}", start, end) for url, start, end in wanted]

    assert fetch_pieces(asked, OPTIONS) == [files[url][start:end] for url, start, end in wanted]


def test_answers_are_in_the_order_of_the_rows_and_neighbours_cost_one_request(server):
    starts = [300_000, 10, 200_000, 5_000, 0]
    asked = [Piece(f"{server.url}/a", start, start + 100) for start in starts]

    assert fetch_pieces(asked, OPTIONS) == [CONTENT[start : start + 100] for start in starts]
    assert sorted(seen.range for seen in server.requests()) == [
        "bytes=0-5099",
        "bytes=200000-200099",
        "bytes=300000-300099",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults",
    [
        [Fault("status", 503)],
        [Fault("status", 429, retry_after="0")],
        [Fault("status", 403), Fault("status", 500)],
        [Fault("cut", at=3)],
        [Fault("stall", at=3)],
    ],
)
def test_a_fault_that_passes_costs_nothing_but_time(server, faults):
    server.faults["a"] = list(faults)
    assert fetch_pieces([Piece(f"{server.url}/a", 5, 50)], OPTIONS) == [CONTENT[5:50]]


@pytest.mark.parametrize(
    ("faults", "piece", "said"),
    [
        ([Fault("whole")], (5, 50), "the server sent the whole file at try 1"),
        ([Fault("status", 404)], (5, 50), "status 404 at try 1"),
        ([Fault("status", 503)] * 9, (5, 50), "status 503 at try 3"),
        ([], (500_000, 500_010), "status 416 at try 1"),
        ([], (399_990, 400_010), "the file ends at byte 400,000"),
        ([], (50, 50), "expected a range of bytes; got 50 to 50"),
        ([], (-5, 50), "expected a range of bytes; got -5 to 50"),
    ],
)
def test_a_piece_that_cannot_be_had_has_a_reason_and_the_others_are_there(server, faults, piece, said):
    server.faults["a"] = list(faults)
    asked = [Piece(f"{server.url}/b", 0, 10), Piece(f"{server.url}/a", *piece)]

    good, bad = fetch_pieces(asked, OPTIONS)

    assert good == CONTENT[::-1][:10]
    assert isinstance(bad, NotFetched)
    assert said in bad.reason


def test_a_whole_file_sent_for_a_range_is_not_received(server):
    server.files["large"] = bytes(50_000_000)
    server.faults["large"] = [Fault("whole")]
    [found] = fetch_pieces([Piece(f"{server.url}/large", 5, 50)], OPTIONS)

    assert isinstance(found, NotFetched)
    assert server.sent < 20_000_000


def test_no_more_requests_are_under_way_than_allowed():
    files = {str(number): CONTENT[number:] for number in range(6)}
    with MisbehavingFileServer(files, latency_s=0.02) as server:
        found = fetch_pieces(
            [Piece(f"{server.url}/{name}", 7, 12) for name in files], TransferOptions(max_connections=2)
        )

        assert found == [content[7:12] for content in files.values()]
        assert len(server.requests()) == 6
        assert server.max_connections_seen == 2


# Several ranges in one request

FAR = 70_000  # from one to the next: more than is fetched for nothing
TWO = TransferOptions(max_retries=2, timeout=1, max_connections=2)


def far_pieces(server, number=5, name="a"):
    return [Piece(f"{server.url}/{name}", at * FAR, at * FAR + 50 + at) for at in range(number)]


def of_several(server):
    return [seen.range for seen in server.requests() if "," in seen.range]


far_spans = st.lists(
    st.builds(
        lambda url, start, length: Piece(url, start, start + length),
        st.sampled_from(["https://h/a", "https://h/b", "s3://bucket/a"]),
        st.integers(0, 100_000_000),
        st.integers(1, 5_000_000),
    ),
    max_size=30,
).map(spans_of)


@given(far_spans, st.integers(1, 16))
def test_requests_ask_for_a_few_ranges_of_one_file_in_order(spans, at_once):
    requests = requests_of(spans, at_once)

    assert [span for request in requests for span in request] == spans
    assert len(spans) > at_once or len(requests) == len(spans)
    for request in requests:
        ends = [(span.url, span.end) for span in request]
        assert len(request) <= MAX_RANGES
        assert all(before < (span.url, span.start) for before, span in zip(ends, request[1:], strict=False))
        assert len({url for url, _ in ends}) == 1
        assert len(request) == 1 or not request[0].url.startswith("s3:")
        assert len(request) == 1 or sum(span.end - span.start for span in request) <= http_ranges.MAX_SPAN_BYTES


def test_ranges_far_apart_share_requests_once_the_server_is_known_to_understand(server):
    server.files["large"] = bytes(range(256)) * 20_000
    asked = far_pieces(server, 70, "large")

    assert fetch_pieces(asked, TWO) == [server.files["large"][piece.start : piece.end] for piece in asked]
    assert server.requests()[0].range == "bytes=0-49,70000-70050,140000-140051,210000-210052,280000-280053"
    assert len(of_several(server)) >= 13
    assert len(server.requests()) <= 17  # 14, and a few ranges alone before the first answer


def test_few_ranges_are_asked_for_at_the_same_time_and_not_together(server):
    asked = far_pieces(server)

    assert fetch_pieces(asked, OPTIONS) == [CONTENT[piece.start : piece.end] for piece in asked]
    assert of_several(server) == []


def test_a_server_that_answers_one_range_only_is_asked_for_several_once(server):
    server.several_ranges = False
    asked = far_pieces(server)
    expected = [CONTENT[piece.start : piece.end] for piece in asked]

    assert fetch_pieces(asked, TWO) == expected
    assert fetch_pieces(asked, TWO) == expected
    assert len(of_several(server)) == 1
    assert len(server.requests()) == 1 + 2 * len(asked)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 503),
        Fault("status", 403),
        Fault("status", 429, retry_after="0"),
        Fault("status", 500),
        Fault("status", 400),
        Fault("status", 416),
        Fault("status", 404),
        Fault("cut", at=3),
        Fault("cut", at=200),
        Fault("long", at=9),
        Fault("whole"),
        Fault("bomb"),
        pytest.param(Fault("stall", at=200), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_what_a_request_for_several_does_not_give_is_asked_for_singly(server, fault):
    server.faults["a"] = [fault]
    asked = far_pieces(server)

    assert fetch_pieces(asked, TWO) == [CONTENT[piece.start : piece.end] for piece in asked]


def test_the_parts_that_came_before_a_cut_are_not_asked_for_again(server):
    server.faults["a"] = [Fault("cut", at=300)]  # in the third of three
    asked = far_pieces(server)

    assert fetch_pieces(asked, TWO) == [CONTENT[piece.start : piece.end] for piece in asked]
    first, *later = [seen.range for seen in server.requests()]
    assert first == "bytes=0-49,70000-70050,140000-140051"
    assert "bytes=0-49" not in later
    assert "bytes=140000-140051" in later


@pytest.mark.parametrize("several_ranges", [True, False])
def test_a_range_behind_the_end_is_a_reason_and_its_neighbours_are_there(server, several_ranges):
    server.several_ranges = several_ranges
    asked = [
        *far_pieces(server),
        Piece(f"{server.url}/a", 399_990, 400_010),
        Piece(f"{server.url}/a", 500_000, 500_010),
    ]

    *good, short, behind = fetch_pieces(asked, TWO)

    assert good == [CONTENT[piece.start : piece.end] for piece in asked[:5]]
    assert "the file ends at byte 400,000" in short.reason
    assert "status 416" in behind.reason


def test_another_file_under_the_same_name_gives_nothing(server):
    found = fetch_pieces(far_pieces(server), TWO, if_match='"other"')

    assert all("status 412" in lost.reason for lost in found)


def test_ranges_that_a_server_has_joined_are_cut_out_of_what_it_sent():
    parts = [
        Part(500, memoryview(CONTENT)[500:900], is_last=True),
        Part(100, memoryview(CONTENT)[100:300], is_last=False),
    ]

    def cut(start, end):
        return http_ranges._cut_from(parts, Span("", start, end, ()))

    assert cut(100, 300) == CONTENT[100:300]
    assert cut(120, 130) == CONTENT[120:130]
    assert cut(800, 1000) == CONTENT[800:900]  # the file ends there
    assert cut(250, 350) is cut(300, 400) is cut(900, 910) is cut(50, 150) is None


def test_nobody_there_is_a_reason_too():
    [found] = fetch_pieces([Piece("http://127.0.0.1:9/a", 5, 50)], TransferOptions(max_retries=0, timeout=1))
    assert "127.0.0.1" in found.reason
