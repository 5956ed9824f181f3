"""Stages made ready for the place they will run in, and their columns checked, before anything is started.

What a stage would do that one before it does already is done once. What it needs is looked for now, so that a missing
model costs a second and not the start of a cluster. Where it may choose, it is told whether there is a GPU.
"""

from collections.abc import Callable, Sequence

from gristmill.engine.plan import AnyStage
from gristmill.errors import ConfigError, nearest
from gristmill.stages.base import ProcessingStage


def prepare(stages: Sequence[AnyStage], has_gpu: Callable[[], bool]) -> list[AnyStage]:
    """Return the stages as they will run; those given stay as they are. `has_gpu` is asked only if a stage chooses."""
    ready: list[AnyStage] = []
    for stage in stages:
        instead = stage.done_by(ready)
        ready = [*ready, stage] if instead is None else list(instead)
    for stage in ready:
        stage.check_ready()
    choosing = [type(stage).resources_where is not ProcessingStage.resources_where for stage in ready]
    if not any(choosing):
        return ready
    there = has_gpu()
    return [
        stage.with_(resources=stage.resources_where(has_gpu=there)) if chooses else stage
        for stage, chooses in zip(ready, choosing, strict=True)
    ]


# Column flow: every column a stage reads must come from somewhere before it.
#
# The set of columns is known where a reader knows it (a Parquet schema, `fields`, a sample of JSON lines) and is
# carried on through stages that say what they add. A user's own stage may add anything, so after one nothing is an
# error any more: no false alarms, at the price of finding some mistakes at run time.


def check_columns(stages: Sequence[AnyStage]) -> None:
    """Raise ConfigError for the first column that no earlier stage provides."""
    known: list[str] | None = None  # None: anything may be there
    origin = ""
    for stage in stages:
        if known is not None:
            for column in stage.inputs()[1]:
                if column not in known:
                    raise ConfigError(
                        f"{stage.stage_name()}: expected a column {column!r} from {origin}; "
                        f"got {_listed(known)}{nearest(column, known)}"
                    )
            for column in stage.new_columns():
                if column in known:
                    raise ConfigError(
                        f"{stage.stage_name()}: expected no column {column!r} yet; {origin} has it. "
                        "Choose another name, or let the stage replace it"
                    )
        own = stage.columns()
        if own is not None:
            known, origin = list(own), stage.stage_name()
        elif known is not None and stage.adds_only_declared_columns:
            known += [column for column in stage.outputs()[1] if column not in known]
        else:
            known = None


def _listed(columns: Sequence[str], most: int = 12) -> str:
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"{list(columns[:most])}{more}"
