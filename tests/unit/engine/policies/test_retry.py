"""Each row of the table in `policies/retry.py`."""

from gristmill.engine.commands import Care
from gristmill.engine.events import Crumb
from gristmill.engine.faults import Fault
from gristmill.engine.policies.retry import (
    FRESH,
    MAX_IDLE_DEATHS,
    MAX_PAUSE_S,
    MAX_TRANSIENT,
    Trial,
    after_death,
    after_exception,
)

ROW = Crumb(stage=1, first_row=4, end_row=5)
STEPPING = Trial(care=Care.STEP, attempts=2, deaths=2, cause="boom")


def test_a_transient_error_blames_nobody_and_pauses_twice_as_long_each_time():
    once = after_exception(FRESH, "busy", Fault.TRANSIENT)
    twice = after_exception(once, "busy", Fault.TRANSIENT)

    assert once == Trial(attempts=1, transients=1)
    assert (once.pause_s, twice.pause_s) == (0.5, 1.0)


def test_a_pause_is_at_most_a_minute():
    assert after_exception(Trial(transients=9), "busy", Fault.TRANSIENT).pause_s == MAX_PAUSE_S


def test_an_error_that_is_transient_too_often_is_one_like_any_other():
    trial = after_exception(Trial(transients=MAX_TRANSIENT, pause_s=60.0), "busy", Fault.TRANSIENT)

    assert trial == Trial(care=Care.ISOLATE, attempts=1, transients=MAX_TRANSIENT, cause="busy")
    assert trial.pause_s == 0


def test_an_exception_is_narrowed_down_next_time():
    assert after_exception(FRESH, "no", Fault.DOCUMENT) == Trial(care=Care.ISOLATE, attempts=1, cause="no")


def test_an_exception_in_spite_of_care_condemns_the_task():
    assert after_exception(Trial(care=Care.ISOLATE), "no", Fault.DOCUMENT).care is Care.CONDEMN
    assert after_exception(STEPPING, "no", Fault.DOCUMENT).care is Care.CONDEMN


def test_a_first_death_changes_nothing_but_the_count():
    assert after_death(FRESH, "boom", ROW) == Trial(attempts=1, deaths=1, cause="boom")


def test_after_a_second_death_documents_are_taken_one_by_one():
    assert after_death(after_death(FRESH, "boom", ROW), "boom", ROW) == STEPPING


def test_a_document_announced_at_two_deaths_is_condemned():
    once = after_death(STEPPING, "boom", ROW)
    twice = after_death(once, "boom", ROW)

    assert (once.hits, once.condemned) == (((ROW, 1),), ())
    assert (twice.care, twice.condemned) == (Care.STEP, (ROW,))


def test_two_documents_hit_once_each_are_both_left_alone():
    other = Crumb(1, 7, 8)

    assert after_death(after_death(STEPPING, "boom", ROW), "boom", other).condemned == ()


def test_deaths_that_point_at_no_document_condemn_the_task():
    trial = STEPPING
    for _ in range(MAX_IDLE_DEATHS - 1):
        trial = after_death(trial, "boom", None)
        assert trial.care is Care.STEP

    assert after_death(trial, "boom", Crumb(0, 0, 9)).care is Care.CONDEMN


def test_a_condemned_task_stays_condemned_whatever_dies():
    condemned = Trial(care=Care.CONDEMN, deaths=5)

    assert after_death(condemned, "boom", None).care is Care.CONDEMN
    assert after_death(condemned, "boom", ROW).care is Care.CONDEMN
