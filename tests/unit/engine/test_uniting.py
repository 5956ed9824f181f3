"""Where results are handed on only when a call has ended, a reader that streams has the next stages with it."""

from gristmill.engine.plan import unite_streaming
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import EmptyTask


class _Streams(ProcessingStage):
    def streams(self, task):
        return True

    def process(self, task):
        yield task


class _Plain(ProcessingStage):
    def process(self, task):
        return task


class _Apart(_Plain):
    fusible = False


def plan(*stages):
    named = [stage.with_(name=f"stage-{number}") for number, stage in enumerate(stages)]
    return Pipeline("p", stages=named).plan(initial_tasks=[EmptyTask()])


def names(made):
    return [(group.index, group.first_stage, group.names) for group in made.groups]


def test_the_stages_behind_a_streaming_reader_join_it():
    united = unite_streaming(plan(_Streams(), _Plain(), _Apart()))

    assert names(united) == [(0, 0, ("stage-0", "stage-1")), (1, 2, ("stage-2",))]


def test_a_stage_that_must_be_alone_stays_alone():
    made = plan(_Streams(), _Apart())

    assert unite_streaming(made) is made


def test_a_plan_that_does_not_stream_stays_as_it_is():
    made = plan(_Plain(), _Apart())

    assert unite_streaming(made) is made
