"""Stages as bytes for another process, and back. `worker.load_stages` is the way back."""

import pickle

import cloudpickle

from gristmill.engine.plan import Group
from gristmill.errors import ConfigError


def pickled(groups: tuple[Group, ...]) -> bytes:
    """Pickle the groups of a plan, or say which stage cannot be."""
    for group in groups:
        for stage in group.stages:
            try:
                cloudpickle.dumps(stage)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise ConfigError(
                    f"{stage.stage_name()}: expected a stage that can be sent to another process; {error}. "
                    "Make what cannot be pickled (clients, locks, open files) in setup()."
                ) from error
    dumped: bytes = cloudpickle.dumps(groups)
    return dumped
