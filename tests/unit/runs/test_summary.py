"""A summary names the true cause: stage, error, count, an example; and the text column only where that was empty."""

import pytest

from gristmill.engine.breaker import QuarantineLimit
from gristmill.metrics.snapshot import ErrorCount, ErrorExample, StageCounts
from gristmill.runs.books import RunResult
from gristmill.runs.summary import MOST_ERRORS, error_lines, summarise, too_many_quarantined

NO_TEXT = "No document had any text: is text_field the right column?"


def result(errors=(), **stages):
    return RunResult([], stages, errors=list(errors), run_dir="run", quarantine_files=["run/quarantine/a.jsonl"])


def bad(count=1, *, stage="parse", kind="ValueError", message="no", **example):
    return ErrorCount(stage, kind, message, count, example=ErrorExample(**example))


def test_it_counts_what_was_read_kept_dropped_and_quarantined():
    words = summarise(
        result(
            [bad(3, document_id="d7", source="a.jsonl")],
            read=StageCounts(read=1200),
            filter=StageCounts(dropped={"filter": 150, "null_text": 50}),
            parse=StageCounts(quarantined=3),
            write=StageCounts(written=997),
        )
    )

    assert words.splitlines()[:8] == [
        "    1,200  documents read in 0:00",
        "      997  kept (83 %)",
        "      200  dropped (17 %)",
        "           150 by filter (12 %)",
        "            50 by filter: null_text (4.2 %)",
        "        3  quarantined: they could not be processed (0.2 %)",
        "           3 in parse: ValueError: no",
        "             for example document d7 in a.jsonl",
    ]
    assert "quarantine   run/quarantine" in words


def test_a_stage_that_fails_on_everything_is_blamed_and_not_the_text_column():
    words = summarise(result([bad(40, document_id="d1")], read=StageCounts(read=40), parse=StageCounts(quarantined=40)))

    assert NO_TEXT not in words
    assert (
        "Nothing was kept: 40 of 40 failed, most often in stage parse: ValueError: no (for example document d1)"
        in words
    )


def test_the_text_column_is_named_where_every_document_had_none():
    words = summarise(result(read=StageCounts(read=9), filter=StageCounts(dropped={"null_text": 9})))

    assert NO_TEXT in words


@pytest.mark.parametrize(
    "others",
    [
        {"parse": StageCounts(quarantined=1)},
        {"other": StageCounts(dropped={"other": 1})},
        {"write": StageCounts(written=1)},
    ],
    ids=["one-failed", "one-dropped-otherwise", "one-kept"],
)
def test_the_text_column_is_not_named_where_anything_else_happened(others):
    words = summarise(result(read=StageCounts(read=10), filter=StageCounts(dropped={"null_text": 9}), **others))

    assert NO_TEXT not in words


def test_a_filter_that_drops_everything_is_named():
    words = summarise(result(read=StageCounts(read=10), words=StageCounts(dropped={"words": 9, "null_text": 1})))

    assert "Nothing was kept: 9 of 10 were dropped by words" in words


def test_an_empty_input_needs_no_explanation():
    assert "Nothing was kept" not in summarise(result(read=StageCounts()))


def test_parts_of_files_that_cannot_be_read_are_not_documents():
    lost = ErrorCount("reader", "ReadError", "cut", 0, 2, 1_300_000, ErrorExample(source="b.gz"))
    words = summarise(
        result([lost], reader=StageCounts(read=5, lost_parts=2, lost_bytes=1_300_000), write=StageCounts(written=5))
    )

    assert "        2  parts of files (1.30 MB) could not be read: how many documents they held is unknown" in words
    assert "2 in reader: ReadError: cut\n             for example b.gz" in words


def test_long_lists_of_errors_are_cut_to_the_commonest():
    lines = error_lines([bad(number, message=f"{'x' * number}") for number in range(1, 12)])

    assert [line for line in lines if line.startswith("11 in parse")]
    assert not [line for line in lines if line.startswith(" 1 in parse")]
    assert lines[-1] == f"and {11 - MOST_ERRORS} other kinds of error"


def test_an_error_text_of_many_lines_is_one_line():
    [line] = error_lines([bad(message="first\nsecond" + "x" * 10_000)])

    assert line == "1 in parse: ValueError: first"


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (0.01, "expected at most 1 % of the documents read in quarantine; got 10 of 200 read (5.0 %)"),
        (0.005, "expected at most 0.5 % of the documents read in quarantine; got 10 of 200 read (5.0 %)"),
        (5, "expected at most 5 documents in quarantine; got 10 of 200 read"),
        (1, "expected at most 1 document in quarantine; got 10 of 200 read"),
    ],
)
def test_a_limit_is_answered_in_the_units_it_was_given_in(limit, words):
    books = result([bad(10, document_id="d3")], read=StageCounts(read=200, quarantined=10))

    assert too_many_quarantined(books, QuarantineLimit(limit)) == (
        f"{words}, most often in stage parse: ValueError: no (for example document d3). "
        "What is good is committed; see run/quarantine"
    )


def test_a_limit_passed_by_what_cannot_be_read_says_so():
    books = RunResult([], {"reader": StageCounts(read=5000, lost_parts=2, lost_bytes=3_000_000)})

    assert too_many_quarantined(books, QuarantineLimit(0.1)) == (
        "expected at most 10 % of the documents read in quarantine; got 0 of 5,000 read (0 %) and 2 parts of files "
        "(3.00 MB) that could not be read. What is good is committed"
    )


def test_a_run_in_a_temporary_directory_is_not_said_to_have_one():
    books = RunResult([], {"read": StageCounts(read=2, quarantined=2)}, errors=[bad(2)])

    assert "None" not in too_many_quarantined(books, QuarantineLimit(1))
    assert "run   " not in str(books)


def test_rejects_are_where_their_files_are():
    books = RunResult([], {"read": StageCounts(read=2, dropped={"short": 2})}, rejects_files=["/a/out/x.jsonl"])

    assert "\nrejects      /a/out (each with" in str(books)
    assert "rejects" not in str(RunResult([], {"read": StageCounts(read=2, dropped={"short": 2})}))


def test_printing_a_result_is_its_summary_and_its_repr_is_short():
    books = result(read=StageCounts(read=2), write=StageCounts(written=2))

    assert str(books) == summarise(books)
    assert repr(books) == "RunResult(0 tasks, read=2, written=2, dropped=0, quarantined=0)"


def test_what_may_be_mended_can_be_taken_through_again():
    raised = result([bad(traceback="Traceback")], read=StageCounts(read=2, quarantined=1), write=StageCounts(written=1))
    malformed = result([bad(kind="broken_json")], read=StageCounts(read=2, quarantined=1), write=StageCounts(written=1))

    assert "Once the cause is fixed, retry_quarantined=True tries" in summarise(raised)
    assert "Once the cause is fixed, --retry-quarantined tries" in summarise(raised, command_line=True)
    assert "retry" not in summarise(malformed)


def test_options_are_written_as_the_reader_would_write_them():
    books = result(read=StageCounts())
    books.already_finished = True

    assert "fresh=True starts it again" in summarise(books)
    assert "--fresh starts it again" in summarise(books, command_line=True)
