"""The table of a task's states is all there is."""

import itertools

import pytest

from gristmill.engine.task_state import TRANSITIONS, Change, State, next_state
from gristmill.errors import EngineBug


@pytest.mark.parametrize(("key", "after"), TRANSITIONS.items())
def test_a_change_of_the_table_happens(key, after):
    assert next_state("a", *key) is after


@pytest.mark.parametrize("key", sorted(set(itertools.product(State, Change)) - set(TRANSITIONS)))
def test_any_other_change_is_a_bug(key):
    with pytest.raises(EngineBug, match=rf"^task a: {key[1].name} while {key[0].name}$"):
        next_state("a", *key)


def test_every_state_but_done_can_be_left_and_every_state_reached():
    assert {state for state, _ in TRANSITIONS} == set(State) - {State.DONE}
    assert set(TRANSITIONS.values()) == set(State)
