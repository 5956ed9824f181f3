"""Each row of the table in `policies/retry.py`."""

import pytest

from gristmill.engine.commands import Care
from gristmill.engine.events import Crumb
from gristmill.engine.faults import Fault
from gristmill.engine.policies.retry import (
    FRESH,
    MAX_PAUSE_S,
    MAX_TRANSIENT,
    Trial,
    after_death,
    after_exception,
    counts_against_stage,
    was_killed,
)

ROW = Crumb(stage=1, first_row=4, end_row=5)
CRASH = "killed by SIGSEGV in stage s"
KILL = "killed by SIGKILL, as the system does when memory runs out in stage s"
MEMORY = "killed by the system because memory ran out in stage s"
STEPPING = Trial(care=Care.STEP, attempts=2, deaths=2, cause=CRASH)


def deaths(cause, crumb, *, until, trial=STEPPING):
    """How many deaths of a kind it takes until something is true of a trial, and the seconds between them."""
    waited = 0.0
    for number in range(1, 100):
        trial = after_death(trial, cause, crumb)
        if until(trial):
            return number, waited
        waited += trial.pause_s
    raise AssertionError(f"not after 99 deaths: {trial}")


def is_left_out(trial):
    return trial.condemned == ((ROW, trial.cause),) and trial.care is Care.STEP


def is_given_up(trial):
    return trial.care is Care.CONDEMN


def test_a_transient_error_blames_nobody_and_pauses_twice_as_long_each_time():
    once = after_exception(FRESH, "busy", Fault.TRANSIENT)
    twice = after_exception(once, "busy", Fault.TRANSIENT)

    assert once == Trial(attempts=1, transients=1, pause_s=0.5)
    assert twice.pause_s == 1.0


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
    assert after_death(FRESH, CRASH, ROW) == Trial(attempts=1, deaths=1, cause=CRASH)


def test_after_a_second_death_documents_are_taken_one_by_one():
    assert after_death(after_death(FRESH, CRASH, ROW), CRASH, ROW) == STEPPING


@pytest.mark.parametrize(
    "cause",
    [CRASH, "killed by SIGABRT", "killed by SIGBUS", "ended with exit code 0", "no result within the deadline of 3 s"],
)
def test_a_document_at_which_two_workers_end_by_themselves_is_left_out_at_once(cause):
    assert deaths(cause, ROW, until=is_left_out) == (2, 0.0)


@pytest.mark.parametrize("cause", [KILL, "killed by SIGTERM", "it was lost", "The actor died unexpectedly."])
def test_a_document_at_which_workers_are_killed_is_left_out_after_seven_and_some_seconds(cause):
    number, waited = deaths(cause, ROW, until=is_left_out)

    assert (number, waited) == (7, pytest.approx(3.15))


def test_a_document_at_which_memory_runs_out_is_left_out_after_four():
    number, waited = deaths(MEMORY, ROW, until=is_left_out)

    assert (number, waited) == (4, pytest.approx(2.1))


def test_deaths_that_point_at_no_document_give_the_task_up():
    for crumb in (None, Crumb(0, 0, 9)):
        assert deaths(CRASH, crumb, until=is_given_up) == (3, 0.0)
        assert deaths(MEMORY, crumb, until=is_given_up)[0] == 6
        number, waited = deaths(KILL, crumb, until=is_given_up)
        assert (number, round(waited)) == (12, 102)


def test_kills_at_the_whole_prove_nothing_where_single_documents_are_hit_as_well():
    trial = STEPPING
    for row in range(6):
        for crumb in (*[Crumb(1, 0, 9)] * 11, Crumb(1, row, row + 1)):
            trial = after_death(trial, KILL, crumb)

    assert (trial.care, trial.condemned) == (Care.STEP, ())


def test_kills_at_different_documents_prove_nothing():
    trial = STEPPING
    for row in range(50):
        trial = after_death(trial, KILL, Crumb(1, row, row + 1))

    assert (trial.care, trial.condemned) == (Care.STEP, ())
    assert trial.pause_s == pytest.approx(0.05)  # each begins anew


def test_what_survived_alone_is_not_tried_alone_again_until_the_whole_has_failed():
    hit = after_death(STEPPING, KILL, ROW)
    whole = after_death(hit, KILL, Crumb(1, 0, 9))

    assert (hit.step_from, whole.step_from) == (ROW, None)


def test_a_kill_and_a_crash_at_one_document_add_up():
    trial = after_death(after_death(STEPPING, CRASH, ROW), KILL, ROW)

    assert trial.condemned == ()
    assert after_death(trial, CRASH, ROW).condemned == ((ROW, CRASH),)


def test_a_document_is_left_out_for_what_ended_its_own_workers():
    other = Crumb(1, 7, 8)
    trial = after_death(after_death(STEPPING, CRASH, ROW), CRASH, ROW)
    trial = after_death(after_death(trial, "exit code 3", other), "exit code 3", other)

    assert trial.condemned == ((ROW, CRASH), (other, "exit code 3"))
    assert after_death(trial, KILL, Crumb(1, 0, 9)).condemned == trial.condemned


def test_what_is_known_of_calls_behind_a_document_that_is_left_out_is_forgotten():
    """Their rows, and how many of them there are, may be others now."""
    behind, before = Crumb(2, 0, 1, turn=3), Crumb(0, 2, 3, turn=0)
    trial = STEPPING
    for crumb in (before, before, behind, behind):
        trial = after_death(trial, CRASH, crumb)
    assert trial.condemned == ((before, CRASH), (behind, CRASH))

    between = Crumb(1, 5, 6, turn=2)
    trial = after_death(after_death(trial, CRASH, between), CRASH, between)

    assert trial.condemned == ((before, CRASH), (between, CRASH))
    assert behind not in dict(trial.proven)


def test_the_same_row_of_two_calls_is_two_documents():
    trial = after_death(STEPPING, CRASH, ROW)

    assert after_death(trial, CRASH, ROW._replace(turn=1)).condemned == ()


def test_what_cannot_be_left_out_is_given_up_with_its_task():
    trial = after_death(after_death(STEPPING, CRASH, ROW), CRASH, ROW)

    assert after_death(trial, CRASH, ROW).care is Care.CONDEMN


def test_a_condemned_task_stays_condemned_whatever_dies():
    condemned = Trial(care=Care.CONDEMN, deaths=5, cause=CRASH)

    for crumb in (None, ROW):
        trial = after_death(condemned, KILL, crumb)
        assert (trial.care, trial.cause) == (Care.CONDEMN, CRASH)


def test_who_was_killed_is_told_from_who_ended_by_itself():
    assert [was_killed(cause) for cause in (KILL, "killed by SIGTERM", "lost", CRASH, MEMORY)] == [
        *(True, True, True),
        *(False, False),
    ]


@pytest.mark.parametrize(
    ("trial", "cause", "counts"),
    [
        (Trial(), "killed by SIGSEGV", True),
        (Trial(), "killed by SIGKILL", False),
        (Trial(care=Care.STEP, condemned=((Crumb(0, 1, 2), "x"),)), "killed by SIGKILL", False),  # the same document
        (Trial(care=Care.STEP, condemned=((Crumb(0, 0, 1), "x"),)), "killed by SIGKILL", True),
        (Trial(care=Care.CONDEMN), "killed by SIGKILL", True),
    ],
)
def test_a_kill_counts_against_a_stage_where_another_document_was_left_out(trial, cause, counts):
    assert counts_against_stage(trial, cause, Crumb(0, 1, 2)) is counts
