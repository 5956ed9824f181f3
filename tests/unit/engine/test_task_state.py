"""The table of a task's states is all there is."""

import itertools

import pytest

from gristmill.engine.state import TRANSITIONS, Change, State, TaskRecord
from gristmill.errors import EngineBug


def task(state):
    return TaskRecord(0, 0, 0, "a", 0, None, 0.0, state)


@pytest.mark.parametrize(("key", "after"), TRANSITIONS.items())
def test_a_change_of_the_table_happens(key, after):
    before, change = key
    changed = task(before)
    changed.change(change)
    assert changed.state is after


@pytest.mark.parametrize("key", sorted(set(itertools.product(State, Change)) - set(TRANSITIONS)))
def test_any_other_change_is_a_bug(key):
    state, change = key
    with pytest.raises(EngineBug, match=rf"^task a: {change.name} while {state.name}$"):
        task(state).change(change)


def test_every_state_but_done_can_be_left_and_every_state_reached():
    assert {state for state, _ in TRANSITIONS} == set(State) - {State.DONE}
    assert set(TRANSITIONS.values()) == set(State)
