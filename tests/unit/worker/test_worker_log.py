"""What is logged in a worker says whose it is, and is not repeated."""

import io
import json
import logging

import pytest

from gristmill.metrics.log_lines import VARIABLE, Repeats
from gristmill.metrics.screens import ON_THE_COMMAND_LINE, Lines
from gristmill.worker.worker_log import Printed, WorkerLog


@pytest.fixture
def logged():
    stream = io.StringIO()
    log = WorkerLog("3", lambda: "tag", stream)
    logger = logging.Logger("a_library")
    logger.addHandler(log)
    return logger, log, stream


def test_a_line_names_stage_and_worker(logged):
    logger, _, stream = logged
    logger.warning("no %s for %d", "vowels", 17)

    assert stream.getvalue() == "[tag 3] warning: no vowels for 17\n"


def test_repeated_lines_are_counted(logged):
    logger, log, stream = logged
    for _ in range(413):
        logger.error("slow")
    logger.error("done")
    logger.error("done")
    log.flush()
    log.flush()

    lines = [line.partition(": ")[2] for line in stream.getvalue().splitlines()]
    assert lines == ["slow", "… 412 times more", "done", "… 1 times more"]


def test_what_does_not_fit_its_format_is_said_as_it_is(logged):
    logger, _, stream = logged
    logger.warning("%d documents", "many")

    assert "%d documents ('many',)" in stream.getvalue()


def test_as_json_it_is_one_object_a_line(logged, monkeypatch):
    monkeypatch.setenv(VARIABLE, "json")
    logger, log, stream = logged
    logger.info('a "quoted"\nline of https://me:pw@host/x')
    printed = Printed(log, "info", io.StringIO())
    print("hello", "there", file=printed)
    print("half", end="", file=printed)
    print(" a line", file=printed)

    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["message"] for line in found] == [
        'a "quoted"\nline of https://***@host/x',
        "hello there",
        "half a line",
    ]
    assert {(line["stage"], line["worker"], line["level"]) for line in found} == {("tag", "3", "info")}
    assert all(line["time"].endswith("+00:00") for line in found)


def test_what_a_run_says_is_json_too(monkeypatch):
    monkeypatch.setenv(VARIABLE, "json")
    stream = io.StringIO()
    Lines(ON_THE_COMMAND_LINE, stream).say("worker 3 (process 4711) of tag has been busy\n\nread 5")

    about_a_worker, summary = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (about_a_worker["worker"], about_a_worker["stage"], about_a_worker["level"]) == ("3", "tag", "warning")
    assert (summary["message"], summary["worker"]) == ("read 5", "")


def test_only_neighbours_are_repeats():
    repeats = Repeats()

    assert [repeats.news(text) for text in "aab"] == [["a"], [], ["… 1 times more", "b"]]
