"""`search_only`: what the stages of a pipeline that search find, without a document passing them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gristmill.backends.base import BaseExecutor
from gristmill.errors import ConfigError, Interrupted
from gristmill.pipeline.pipeline import Pipeline, run_inside
from gristmill.runs.directory import RunDirectory
from gristmill.runs.searches import SearchesOf
from gristmill.runs.user import Observer, RunOptions
from gristmill.storage.atomic_write import machine_failures

if TYPE_CHECKING:
    from gristmill.metrics.snapshot import ErrorCount


def search_only(
    pipeline: Pipeline, executor: BaseExecutor, run_dir: Path, *, observer: Observer | None = None
) -> "tuple[dict[str, dict[str, object]], list[ErrorCount]]":
    """Search, and leave what was found in the directory of a run, which goes on from there when it is started.

    Only a reader may stand ahead of the stages. Return what each has found, and what it could not look at.
    """
    plan = pipeline.plan(executor)
    if plan.then is not None:
        raise ConfigError(f"pipeline {pipeline.name!r}: expected nothing but a reader ahead of what searches")
    options = RunOptions(observer=observer)
    with machine_failures(pipeline.name, run_dir), executor.kept_ready() as ready:
        directory = RunDirectory(run_dir, session=os.urandom(6).hex())
        directory.acquire()
        try:
            inside = RunOptions(observer=observer, run_inside=run_inside(ready, options))
            _, searches = SearchesOf(directory, plan, inside, is_temporary=False).informed(plan)
        except KeyboardInterrupt:
            raise Interrupted("stopped. Run the same command again to continue.") from None
        finally:
            directory.close()
    errors = [error for search in searches for error in search.errors]
    return {search.stage: search.found for search in searches}, errors
