"""Pieces of files by range: joined or alone they are the same bytes, and what cannot be had has a reason."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.storage import http_ranges, rate
from gristmill.storage.http_ranges import NotFetched, Piece, fetch_pieces, spans_of
from gristmill.storage.transfer import TransferOptions
from gristmill.testing.file_server import Fault, MisbehavingFileServer

CONTENT = os.urandom(400_000)
OPTIONS = TransferOptions(max_retries=2, timeout=1, max_connections=8)


@pytest.fixture(autouse=True)
def _quick(monkeypatch, tmp_path):
    monkeypatch.setattr(http_ranges, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(rate, "PAUSE_S", 0.001)
    monkeypatch.setattr(rate, "FIRST", 1e6)
    (tmp_path / "rates").mkdir()
    monkeypatch.setattr(rate, "_directory", lambda: tmp_path / "rates")


@pytest.fixture(scope="module")
def serving():
    with MisbehavingFileServer() as server:
        yield server


@pytest.fixture
def server(serving):
    serving.files = {"a": CONTENT, "b": CONTENT[::-1]}
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
    with MisbehavingFileServer({"a": CONTENT}, latency_s=0.02) as server:
        asked = [Piece(f"{server.url}/a", start, start + 5) for start in range(0, 390_000, 70_000)]
        found = fetch_pieces(asked, TransferOptions(max_connections=2))

        assert found == [CONTENT[piece.start : piece.end] for piece in asked]
        assert len(server.requests()) == 6
        assert server.max_connections_seen == 2


def test_nobody_there_is_a_reason_too():
    [found] = fetch_pieces([Piece("http://127.0.0.1:9/a", 5, 50)], TransferOptions(max_retries=0, timeout=1))
    assert "127.0.0.1" in found.reason
