"""Errors are counted by stage and kind, bounded, and the same in whatever order they are reported."""

import json
import random

import pytest

from gristmill.metrics.snapshot import (
    MAX_DOCUMENT_CHARS,
    MAX_KINDS,
    MAX_MESSAGE_CHARS,
    OTHERS,
    ErrorCount,
    ErrorCounts,
    ErrorExample,
    alike,
    of_record,
)


def failed(number, *, stage="parse", kind="ValueError", message=None, source="a.jsonl", **more):
    text = f"line {number}: bad" if message is None else message
    return of_record(stage, kind, text, ErrorExample(f"d{number}", source, line=number, **more))


def test_errors_that_differ_in_numbers_or_quoted_text_are_one():
    counts = ErrorCounts([failed(17), failed(3), failed(18)])
    [only] = counts.all()

    assert (only.stage, only.kind, only.count) == ("parse", "ValueError", 3)
    assert only.message == "line 3: bad"
    assert only.example.place == "document d3 in line 3 of a.jsonl"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("invalid literal for int(): 'abc'", "invalid literal for int(): ''"),
        ("<Thing at 0x7f3a> is 1,200.5 long", "<Thing at 0x12> is 3 long"),
        ('key "a" is missing', 'key "b c" is missing'),
    ],
)
def test_what_varies_is_left_out_of_the_comparison(one, other):
    assert alike(one) == alike(other)


def test_different_errors_and_stages_stay_apart_the_commonest_first():
    counts = ErrorCounts([failed(1, message="x"), failed(2, message="y"), failed(3, message="y"), failed(4, stage="b")])

    assert [(c.stage, c.message, c.count) for c in counts.all()] == [
        ("parse", "y", 2),
        ("parse", "x", 1),
        ("b", "line 4: bad", 1),
    ]
    assert [c.stage for c in counts.commonest("b")] == ["b"]


def test_the_order_of_reports_does_not_matter():
    records = [
        failed(n, source=f"{n % 3}.jsonl", message=f"{n} is odd" if n % 2 else f"{n} is even") for n in range(60)
    ]
    expected = ErrorCounts(records).all()
    for seed in range(20):
        random.Random(seed).shuffle(records)
        halves = ErrorCounts(records[:23])
        halves.merge(ErrorCounts(records[23:]))

        assert halves.all() == expected


def test_what_is_kept_is_bounded_and_every_document_is_counted():
    words = [f"{'x' * n} differs" for n in range(1, 200)]
    counts = ErrorCounts(failed(n, message=word) for n, word in enumerate(words))
    kept = counts.all()

    assert len(kept) == MAX_KINDS + 1
    assert sum(c.count for c in kept) == len(words)


def test_exceptions_of_endless_kinds_end_up_together():
    counts = ErrorCounts(failed(n, kind=f"Error{'x' * n}", message=f"{'y' * n}") for n in range(200))
    kept = counts.all()

    assert len(kept) == 2 * MAX_KINDS + 1
    assert next(c for c in kept if c.kind == OTHERS).count == 200 - 2 * MAX_KINDS
    assert sum(c.count for c in kept) == 200


def test_long_messages_documents_and_tracebacks_are_cut():
    [only] = ErrorCounts([failed(1, message="m" * 10**6, document="d" * 10**6, traceback="t" * 10**6 + "END")]).all()

    assert len(only.message) == MAX_MESSAGE_CHARS
    assert len(only.example.document) == MAX_DOCUMENT_CHARS
    assert only.example.traceback.endswith("END")
    assert len(only.example.traceback) < 5000


def test_the_exception_is_not_named_twice():
    record = of_record("s", "JSONDecodeError", "json.decoder.JSONDecodeError: Expecting value", ErrorExample())

    assert record.error == "JSONDecodeError: Expecting value"


def test_a_record_of_no_document_is_a_part_that_was_lost():
    counts = ErrorCounts(
        of_record("read", "ReadError", "cut", ErrorExample("", "b.gz"), num_documents=0, lost_bytes=size)
        for size in (100, 20)
    )
    [only] = counts.all()

    assert (only.count, only.lost_parts, only.lost_bytes) == (0, 2, 120)
    assert only.example.place == "b.gz"


def test_it_is_json_without_the_document():
    record = failed(1, document="secret text", traceback="Traceback")
    written = json.loads(json.dumps(record.to_json()))

    assert written["example"] == {"document_id": "d1", "source": "a.jsonl", "line": 1, "traceback": "Traceback"}
    assert (written["stage"], written["kind"], written["message"], written["count"]) == (
        "parse",
        "ValueError",
        "line 1: bad",
        1,
    )


def test_an_error_that_says_nothing_still_has_a_name():
    assert ErrorCount("s", "KeyError", "").error == "KeyError"
