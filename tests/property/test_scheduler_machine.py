"""Whatever is lost, repeated, delayed or reordered, every source partition is committed once and nothing is left over.

The world checks each command, and the invariants after every event (`gristmill.testing.virtual_run`). Faults come in
any order; then the run is left alone and must finish.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.property.budget import SEEDS
from tests.property.scheduler_state import state_of
from tests.property.scripts import Fanning

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.scheduler_config import SchedulerConfig
from gristmill.stages.resources import Resources
from gristmill.testing.virtual_run import VirtualRun, group

SHAPES = (Resources(), Resources(cpus=0.5), Resources(gpus=1), Resources(gpus=0.5), Resources(gpu_memory_gb=3))
GPUS = (8.0, 5.5)
MEMORY = 400

shapes = st.lists(st.tuples(st.sampled_from((1, 1, 2, 4)), st.sampled_from(SHAPES)), min_size=1, max_size=4)
choices = st.integers(0, 10**6)


def pick(options, choice):
    return options[choice % len(options)]


class SchedulerMachine(RuleBasedStateMachine):
    """Everything an executor might report, in any order its channels allow."""

    @initialize(
        shapes=shapes,
        sources=st.lists(st.integers(0, 60), max_size=12),
        seed=st.integers(0, 1000),
        memory=st.sampled_from((0, 50, MEMORY, 10**9)),
        barrier=st.sampled_from((False, False, False, True)),
        lifetime=st.sampled_from((None, 0.3)),
        twice=st.booleans(),
        lanes=st.sampled_from((1, 1, 2, 5)),
    )
    def start(self, shapes, sources, seed, memory, barrier=False, lifetime=None, twice=False, lanes=1):
        groups = tuple(
            group(
                i,
                batch_size=size,
                resources=shape,
                may_run_twice=twice,
                lanes=lanes if i % 2 == 0 else 1,
                **({"batch_bytes": 40} if size == 4 else {}),
            )
            for i, (size, shape) in enumerate(shapes)
        )
        config = SchedulerConfig(len(sources), barrier=barrier, worker_max_lifetime_s=lifetime)
        self.run = VirtualRun(groups, sources, Fanning(seed), config=config)
        self.memory = memory
        self.may_fail_setup = True
        self.run.join(gpu_memory_gb=GPUS, memory_bytes=memory)

    def is_on(self):
        return self.run.finish is None

    @precondition(lambda self: self.is_on() and self.run.able())
    @rule(choice=choices, wait=st.floats(0, 0.2))
    def a_worker_goes_on(self, choice, wait):
        self.run.now += wait
        self.run.act(pick(self.run.able(), choice), lane=choice // 7)

    @precondition(lambda self: self.is_on() and self.run.running())
    @rule(choice=choices, transient=st.booleans())
    def a_task_raises(self, choice, transient):
        self.run.fail_task(pick(self.run.running(), choice), transient=transient, lane=choice // 7)

    @precondition(lambda self: self.is_on() and any(w.ready for w in self.run.workers.values()))
    @rule(choice=choices, row=st.none() | st.integers(0, 2))
    def a_worker_dies(self, choice, row):
        ready = [w.id for w in self.run.workers.values() if w.ready]
        crumb = None if row is None else e.Crumb(0, row, row + 1)
        self.run.lose(pick(ready, choice), crumb=crumb)

    @precondition(lambda self: self.is_on() and self.may_fail_setup and self.starting())
    @rule(choice=choices)
    def a_setup_fails(self, choice):
        self.may_fail_setup = False  # twice in a row ends the run, as it should
        self.run.fail_setup(pick(self.starting(), choice))

    def starting(self):
        return [w.id for w in self.run.workers.values() if not w.ready]

    @precondition(lambda self: self.is_on() and self.run.source_notices)
    @rule()
    def the_source_answers(self):
        self.run.tell_source()

    @precondition(lambda self: self.is_on() and self.run.notices)
    @rule(choice=choices)
    def a_notice_arrives(self, choice):
        self.run.tell_notice(choice % len(self.run.notices))

    @rule(choice=choices)
    def an_old_message_is_repeated(self, choice):
        old = [event for event in self.run.events if not isinstance(event, e.Ticked | e.NodeLost | e.WorkerSetupFailed)]
        event = pick(old, choice)
        if isinstance(event, e.NodeJoined) and event.node not in self.run.scheduler.fleet.nodes:
            self.run.repeat(event)  # a machine that was lost is back
        else:
            self.nothing_follows(self.run.repeat, event)

    @precondition(lambda self: self.is_on() and self.run.running())
    @rule(choice=choices)
    def a_worker_dies_and_its_result_comes_late(self, choice):
        worker = pick(self.run.running(), choice)
        result = self.run.last_words(worker)
        self.run.lose(worker)
        self.nothing_follows(self.run.feed, result)

    def nothing_follows(self, deliver, event):
        """Deliver a message that is late or repeated: I18 says that it changes nothing and only its payloads go."""
        self.run.feed()  # what is due now has nothing to do with it
        before = state_of(self.run.scheduler)
        answer = deliver(event)
        assert {type(command) for command in answer} <= {c.Release}
        assert state_of(self.run.scheduler) == before

    @rule(wait=st.floats(0, 3))
    def time_passes(self, wait):
        self.run.now += wait
        self.run.feed()

    @precondition(lambda self: self.is_on() and len(self.run.nodes) < 3)
    @rule()
    def a_node_joins(self):
        self.run.join(gpu_memory_gb=GPUS, memory_bytes=self.memory)

    @precondition(lambda self: self.is_on() and len(self.run.scheduler.fleet.nodes) > 1)
    @rule(choice=choices)
    def a_node_is_lost(self, choice):
        self.run.lose_node(pick(list(self.run.scheduler.fleet.nodes), choice))

    @invariant()
    def what_is_finished_stays_finished(self):
        if hasattr(self, "run") and self.run.finish is not None:
            self.run.check_books()

    def teardown(self):
        if hasattr(self, "run"):
            self.run.run()
            self.run.check_books()


SchedulerMachine.TestCase.settings = settings(
    derandomize=True, deadline=None, max_examples=SEEDS // 2, stateful_step_count=60, print_blob=True
)
TestEveryPartitionIsCommittedOnceWhateverHappens = pytest.mark.slow(SchedulerMachine.TestCase)
