"""Xenna gives up when a worker dies; what is left is given to it again, until nothing is or nothing helps."""

import pytest

pytest.importorskip("ray", reason="ray is an extra")
from ray.exceptions import ActorDiedError, RayTaskError

from gristmill.backends.delegated.envelope import Envelope
from gristmill.backends.xenna.config import XennaConfig
from gristmill.backends.xenna.engine import MOST_ROUNDS, XennaEngine

SOURCES = [Envelope(root, f"item-{root}", b"", b"") for root in range(3)]


class Commits:
    """The part of the registrar an engine asks: which partitions are committed by now."""

    def __init__(self):
        self.roots = set()

    def closed(self):
        return self.roots


class Dies(XennaEngine):
    """An engine whose workers die in every round but the last; each round gets one partition done."""

    def __init__(self, rounds, error):
        super().__init__(None, None, XennaConfig(), (), None)
        object.__setattr__(self, "given", [])
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "error", error)

    def _run_round(self, sources, registrar):
        self.given.append([source.root for source in sources])
        registrar.roots.add(sources[0].root)
        if len(self.given) < self.rounds:
            raise self.error


def test_what_is_committed_is_not_given_again():
    engine = Dies(3, ActorDiedError())
    engine.run(SOURCES, Commits())

    assert engine.given == [[0, 1, 2], [1, 2], [2]]


def test_an_error_of_a_worker_that_lives_ends_the_run():
    engine = Dies(3, RayTaskError("f", "traceback", ValueError("x")))

    with pytest.raises(RayTaskError):
        engine.run(SOURCES, Commits())
    assert len(engine.given) == 1


def test_there_is_an_end_to_dying():
    class NeverDone(Commits):
        def closed(self):
            return set()

    engine = Dies(MOST_ROUNDS + 1, ActorDiedError())

    with pytest.raises(ActorDiedError):
        engine.run(SOURCES, NeverDone())
    assert len(engine.given) == MOST_ROUNDS
