"""`Shard`: one of several equal parts of a pipeline's input, run as a run of its own.

Shard k of n takes every n-th source partition, beginning with the k-th. Each has an output directory of its own, with
its ledger in it, so shards share nothing and may run anywhere at any time. All of them list the whole input: what they
found is written down, and `shard_books.py` refuses to add up shards that saw different inputs.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gristmill.errors import ConfigError
from gristmill.secrets import without_url_secrets
from gristmill.stages.base import AnyStage, AnyTask, ProcessingStage
from gristmill.storage.atomic_write import write_file
from gristmill.tasks import FileGroupTask

if TYPE_CHECKING:
    from gristmill.pipeline import Pipeline

RECORD = "shard.json"  # in the run directory of a shard


class _TakeShard(ProcessingStage[AnyTask, AnyTask]):
    """Stands in for the stage that lists the input, and lists a part of it."""

    def __init__(self, source: AnyStage, tasks: Sequence[AnyTask]) -> None:
        self.name = source.stage_name()
        self._source = source
        self._tasks = tasks

    def partitions(self) -> Sequence[AnyTask]:
        return self._tasks

    def input_directories(self) -> list[str]:
        return self._source.input_directories()

    def columns(self) -> list[str] | None:
        return self._source.columns()

    def process(self, task: AnyTask) -> AnyTask:
        return task


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count`, from 0."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read "3/16"."""
        match = re.fullmatch(r"(\d+)/(\d+)", text)
        if match is None or not int(match[1]) < int(match[2]):
            raise ConfigError(f"--shard: expected INDEX/COUNT with 0 ≤ INDEX < COUNT; got {text!r}")
        return cls(int(match[1]), int(match[2]))

    def output(self, output: str) -> str:
        """The output directory of this shard."""
        return f"{output.rstrip('/')}/shard-{self.index:05d}-of-{self.count:05d}"

    def take(self, pipeline: "Pipeline") -> tuple["Pipeline", dict[str, object]]:
        """Return a pipeline for this part of the input, and what to write down about it."""
        from gristmill.pipeline import Pipeline
        from gristmill.pipeline.compile import decompose

        stages = decompose(pipeline.stages)
        for stage in stages:
            if stage.is_exchange or stage.searches:
                raise ConfigError(
                    f"--shard: expected a pipeline that takes documents one by one; {stage.stage_name()!r} needs all "
                    "of them together. Run it on several nodes without an array instead"
                )
        listed = stages[0].partitions() if stages else None
        if listed is None:
            raise ConfigError(f"pipeline {pipeline.name!r}: expected a reader as the first stage, to divide its input")
        source = _TakeShard(stages[0], listed[self.index :: self.count])
        part = Pipeline(name=pipeline.name, description=pipeline.description, stages=[source, *stages[1:]])
        return part, {"index": self.index, "count": self.count, "partitions": len(listed), "input": _digest(listed)}

    @staticmethod
    def write_down(run_dir: str, record: dict[str, object]) -> None:
        """Keep the record where the shard's ledger is."""
        write_file(f"{run_dir.rstrip('/')}/{RECORD}", [json.dumps(record).encode()])


def _digest(tasks: Sequence[AnyTask]) -> str:
    """A hash of the whole input: files, sizes, versions and how they are divided."""
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(without_url_secrets(f"{task.parts()}").encode() if isinstance(task, FileGroupTask) else b"-")
    return digest.hexdigest()[:16]
