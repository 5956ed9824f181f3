"""The story of a task holds everything that happened to it, and nothing else."""

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.replay import Step
from gristmill.engine.task_story import TaskStory
from gristmill.metrics.snapshot import StageCounts


def assignment(task, item_id, *, care=c.Care.NORMAL, attempt=0, condemned=()):
    return c.Assignment(task, item_id, 0, care, attempt, condemned, "", 0)


def told(story, *steps):
    """Number the events of the steps and return all sentences with their event."""
    number, found = 1, []
    for events, commands in steps:
        found += story.follow(Step(number, events, commands, 0.0))
        number += len(events)
    return found


def test_every_attempt_at_a_task_is_told_until_it_is_committed():
    listed = e.SourceListed((e.SourceItem(0, "a", 10, 0), e.SourceItem(1, "b", 20, 1)))
    careful = assignment(3, "b", care=c.Care.STEP, attempt=2, condemned=(e.Crumb(0, 4, 5),))
    counts = (StageCounts(),)
    story = TaskStory("b")

    assert told(
        story,
        ((e.Ticked(0.0), listed), [c.SendTask(7, [[assignment(0, "a")], [assignment(1, "b")]])]),
        ((e.TaskRaised(7, 1, "parse", "ValueError: no"),), [c.SendTask(7, [[assignment(2, "b", attempt=1)]])]),
        ((e.WorkerLost(7, "killed", e.Crumb(0, 4, 5)),), [c.SendTask(8, [[careful]])]),
        ((e.TaskStepped(8, 3), e.TaskFinished(8, 3, (), 0.5, counts)), [c.Commit(1, "b", (), counts, (), (), ())]),
    ) == [
        (2, "listed, 20 bytes"),
        (2, "sent to worker 7 as task 1"),
        (3, "an error in stage parse on worker 7: ValueError: no"),
        (3, "sent to worker 7 as task 2, attempt 2"),
        (4, "lost with worker 7 in document 4: killed"),
        (4, "sent to worker 8 as task 3, attempt 3, with care STEP, without 1 condemned documents"),
        (5, "moved on to its next step on worker 8"),
        (6, "finished by worker 8 after 0.500 s of work, 0 outputs"),
        (6, "complete, with all that was made from it: root 1 is committed"),
    ]


def test_a_partition_that_starts_over_says_why():
    again = e.ListedAgain(e.SourceItem(1, "b", 20, 2), attempt=9)

    assert told(TaskStory("b"), ((again,), [c.SendTask(7, [[assignment(9, "b", attempt=9)]])])) == [
        (1, "listed again: what had been made from it was on a machine that is lost"),
        (1, "sent to worker 7 as task 9, attempt 10"),
    ]


def test_a_task_made_by_another_begins_with_its_making_and_ends_with_its_commit():
    output = e.Output(0, "a.0", 5, 9)
    story = TaskStory("a.0")

    assert told(
        story,
        ((e.TaskEmitted(1, 0, output),), [c.SendTask(2, [[assignment(1, "a.0")]]), c.Warn(2, 1, "a.0", 90.0)]),
        ((e.WorkerExited(2),), [c.Commit(0, "a", (output,), (), (), (), ())]),
    ) == [
        (1, "made by worker 1 as output 0 of task 0, 5 bytes"),
        (1, "sent to worker 2 as task 1"),
        (1, "the user is warned: busy on worker 2 for 90 s"),
        (2, "given back by worker 2"),
        (2, "committed as an output of root 0"),
    ]


def test_what_happens_to_other_tasks_and_workers_is_left_out():
    story = TaskStory("a")
    others = (e.TaskFinished(5, 9, (), 0.1, ()), e.WorkerLost(5, "killed"), e.TaskStepped(5, 9))

    assert told(story, (others, [c.SendTask(5, [[assignment(4, "b")]])])) == []


def test_all_ids_are_remembered_for_who_misspells_one():
    story = TaskStory("x")
    told(story, ((e.SourceListed((e.SourceItem(0, "a", 1, 0),)), e.TaskEmitted(0, 0, e.Output(0, "a.0", 1, 1))), []))

    assert list(story.item_ids) == ["a", "a.0"]
