"""`@processing_stage`: a function as a stage."""

import inspect
from collections.abc import Callable, Iterator
from typing import TypeVar

from gristmill.errors import ConfigError
from gristmill.stages.base import ProcessingStage
from gristmill.stages.registry import register_function
from gristmill.stages.resources import Resources
from gristmill.tasks import Task

X = TypeVar("X", bound=Task)  # type: ignore[type-arg]
Y = TypeVar("Y", bound=Task)  # type: ignore[type-arg]


class FunctionStage(ProcessingStage[X, Y]):
    """A stage whose `process` is a user's function."""

    def __init__(
        self,
        function: Callable[[X], Y | list[Y] | Iterator[Y] | None],
        *,
        name: str,
        resources: Resources,
        batch_size: int,
    ) -> None:
        self.function = function
        self.name = name
        self.resources = resources
        self.batch_size = batch_size
        self.__doc__ = function.__doc__

    def process(self, task: X) -> Y | list[Y] | Iterator[Y] | None:
        return self.function(task)


def processing_stage(
    *, name: str, resources: Resources | dict[str, float] | None = None, batch_size: int | None = None
) -> Callable[[Callable[[X], Y | list[Y] | Iterator[Y] | None]], FunctionStage[X, Y]]:
    """Turn a function of one task into a stage.

    >>> @processing_stage(name="shout", resources=Resources(cpus=1))
    ... def shout(task: DocumentBatch) -> DocumentBatch: ...
    """
    if isinstance(resources, dict):
        resources = Resources(**resources)

    def decorate(function: Callable[[X], Y | list[Y] | Iterator[Y] | None]) -> FunctionStage[X, Y]:
        if len(inspect.signature(function).parameters) != 1:
            raise ConfigError(
                f"@processing_stage {name!r}: expected a function of one task; got {function.__qualname__}"
                f"{inspect.signature(function)}"
            )
        stage = FunctionStage(function, name=name, resources=resources or Resources(), batch_size=batch_size or 1)

        def make_again(self: FunctionStage[X, Y]) -> None:
            self.__dict__.update(vars(stage))

        # For `get_stage_class`. What runs is the plain FunctionStage.
        register_function(name, type(f"_{function.__name__}", (FunctionStage,), {"__init__": make_again}))
        return stage

    return decorate
