"""The registrar counts every task once, and sees from tasks that come again what happened to their workers."""

from gristmill.backends.delegated.envelope import Receipt, Ticket
from gristmill.backends.delegated.registrar import FIRST_REPEAT, LOST, Registrar
from gristmill.engine.breaker import DEATHS
from gristmill.engine.commands import Care
from gristmill.engine.events import Crumb
from gristmill.engine.faults import Fault
from gristmill.engine.policies.retry import PROOF_OF_DOCUMENT

ITEM = [(0, "a")]


def receipt(item_id="a", group=0, root=0):
    return Receipt(group, root, item_id, 1, (), (), (), ())


def begin(registrar, worker="w", group=0):
    return registrar.begin(group, worker, ITEM)[0]


def test_a_new_task_is_handled_as_usual():
    assert begin(Registrar()) == Ticket()


def test_a_task_that_is_finished_twice_counts_once():
    registrar = Registrar()
    begin(registrar)

    assert registrar.finish([receipt()]) == [True]
    assert registrar.finish([receipt()]) == [False]
    assert registrar.take().receipts == [receipt()]
    assert registrar.take().receipts == []


def test_the_same_item_is_another_task_in_the_next_group():
    registrar = Registrar()

    assert registrar.finish([receipt(group=0), receipt(group=1)]) == [True, True]


def test_a_task_begun_again_has_lost_its_worker_and_is_stepped_through_the_second_time():
    registrar = Registrar()
    tickets = [begin(registrar) for _ in range(3)]

    assert [(ticket.care, ticket.attempt) for ticket in tickets] == [
        (Care.NORMAL, 0),
        (Care.NORMAL, 1),
        (Care.STEP, 2),
    ]


def test_a_document_announced_at_seven_deaths_is_condemned():
    """The other engine does not say how a worker ended, so each of them may have been killed by anybody."""
    registrar = Registrar()
    for _ in range(3):
        begin(registrar)
    tickets = []
    for _ in range(7):
        registrar.leave_crumb(0, "a", (1, 7, 8, 2))
        tickets.append(begin(registrar))

    place = Crumb(1, 7, 8, turn=2)
    assert [ticket.condemned for ticket in tickets] == [()] * 6 + [((place, LOST),)]
    assert [ticket.step_from for ticket in tickets] == [place] * 7
    assert [ticket.pause_s for ticket in tickets[:3]] == [0.05, 0.1, 0.2]


def test_a_task_whose_stage_raised_is_taken_apart_and_was_not_lost():
    registrar = Registrar()
    begin(registrar)

    assert registrar.raised(0, "a", "s", "ValueError: x", Fault.DOCUMENT).care is Care.ISOLATE


def test_a_bug_of_ours_stops_the_run_though_documents_have_passed():
    registrar = Registrar()
    begin(registrar)
    registrar.finish([receipt()])

    assert registrar.raised(0, "b", "s", "a bug in gristmill", Fault.BUG).given_up
    assert registrar.take().failure == "s: a bug in gristmill"


def test_a_transient_error_is_waited_out():
    registrar = Registrar()
    begin(registrar)
    ticket = registrar.raised(0, "a", "s", "TimeoutError", Fault.TRANSIENT)

    assert ticket.care is Care.NORMAL
    assert ticket.pause_s > 0


def test_a_finished_task_that_is_needed_again_is_repeated_under_another_name():
    registrar = Registrar()
    begin(registrar)
    registrar.finish([receipt()])
    first, second = begin(registrar), begin(registrar)

    assert FIRST_REPEAT <= first.attempt < second.attempt


def test_nothing_of_a_committed_partition_is_done_again():
    registrar = Registrar()
    registrar.close([0])

    assert begin(registrar) is None
    assert registrar.finish([receipt()]) == [False]


def test_after_a_stop_nothing_is_begun_and_what_is_under_way_counts():
    registrar = Registrar()
    begin(registrar)
    registrar.stop()

    assert registrar.begin(0, "w", [(1, "b")]) == [None]
    assert registrar.finish([receipt()]) == [True]


def test_a_node_is_set_up_by_the_first_who_asks_while_the_others_wait():
    registrar = Registrar()
    before = [registrar.claim_node("n"), registrar.claim_node("n"), registrar.claim_node("other")]
    registrar.node_ready("n")

    assert before == ["set up", "wait", "set up"]
    assert registrar.claim_node("n") == "ready"


def test_a_failed_set_up_is_told_to_the_driver_and_stops_the_run():
    registrar = Registrar()
    registrar.set_up_failed("no model")

    assert registrar.take().failure == "no model"
    assert begin(registrar) is None


def die_until_given_up(registrar, item_id, most):
    """Let workers die at the first document that is left; return how many did before nobody wanted the task."""
    registrar.begin(0, "w", [(0, item_id)])
    for deaths in range(1, most + 1):
        (ticket,) = registrar.begin(0, "w", [(0, item_id)])
        if ticket is None:
            return deaths
        if ticket.care is Care.STEP:
            row = len(ticket.condemned)
            registrar.leave_crumb(0, item_id, (0, row, row + 1, 0))
    return most


def test_deaths_at_one_document_do_not_break_a_stage_and_those_at_the_next_do():
    assert die_until_given_up(Registrar(), "a", 100) == 2 + PROOF_OF_DOCUMENT + DEATHS


def test_killers_in_some_partitions_break_no_stage_and_a_hundred_deaths_in_a_row_do():
    registrar = Registrar()
    for number in range(11):
        assert die_until_given_up(registrar, str(number), 9) == 9
        registrar.worker_ready(0)  # those that take their place are no reason to go on longer

    assert registrar.begin(0, "w", [(0, "another")]) == [Ticket()]
    assert registrar.begin(0, "w", [(0, "another")]) == [None]
