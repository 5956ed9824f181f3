"""`EmptyTask`: what a pipeline starts from when it is given nothing."""

from dataclasses import dataclass, field
from typing import ClassVar

from gristmill.tasks.task import Task


@dataclass
class EmptyTask(Task[None]):
    """A start signal for the first stage."""

    counts_documents: ClassVar[bool] = False

    dataset_name: str = ""
    data: None = field(default=None)

    @property
    def num_items(self) -> int:
        return 0
