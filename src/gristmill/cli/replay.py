"""`gristmill replay`: take a recorded run through the scheduler once more. Reads the event log only; starts nothing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.options import Debug
from gristmill.errors import ConfigError, EngineBug, ReadError, nearest
from gristmill.storage.file_system import disk_path

if TYPE_CHECKING:
    from gristmill.engine.replay import Step


def replay(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    check: Annotated[
        bool, typer.Option("--check", help="Fail if a decision differs or an invariant does not hold.")
    ] = False,
    task: Annotated[str | None, typer.Option("--task", metavar="ITEM_ID", help="Tell what happened to it.")] = None,
    session: Annotated[
        int | None, typer.Option("--session", metavar="N", min=1, help="Of an earlier session: events.N.log.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Replay a run's event log and compare every decision with the recorded one."""
    from gristmill import __version__
    from gristmill.backends.scheduled.kept_records import read_frames
    from gristmill.engine.replay import read_header
    from gristmill.engine.replay import replay as steps_of
    from gristmill.engine.task_story import TaskStory

    path = find_log(run_dir, session=session)
    tally = Tally()
    story = None if task is None else TaskStory(task)
    difference = ""
    with path.open("rb") as file:
        frames = read_frames(file)
        header = read_header(frames)
        try:
            for step in steps_of(header, frames, check_invariants=check):
                tally.add(step)
                for number, sentence in () if story is None else story.follow(step):
                    typer.echo(f"{step.now - tally.began:+10.3f} s  event {number}: {sentence}")
        except (EngineBug, ReadError) as error:
            if header.version != __version__:
                error = type(error)(f"{error} (recorded by gristmill {header.version}; this is {__version__})")
            if check:
                raise error from None
            difference = str(error)
    if story is not None and story.item_id not in story.item_ids:
        hint = nearest(story.item_id, story.item_ids)
        raise ConfigError(f"replay: expected the id of a task of this run; got {story.item_id!r}{hint}")
    typer.echo(tally.summary(difference, checked=check))


def find_log(path: str, *, session: int | None = None) -> Path:
    """Return the event log of a run, whether the run directory, the output directory or the log itself was named."""
    name = "events.log" if session is None else f"events.{session}.log"
    given = disk_path(path, who="replay")
    for candidate in (given, given / name, given / ".gristmill" / name):
        if candidate.is_file():
            return candidate
    raise ConfigError(f"replay: expected the directory of a run (with {name} in it); got {path!r}")


class Tally:
    """What a replay went through."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0
        self.num_events = self.num_commands = self.num_steps = 0
        self.outcome = ""

    def add(self, step: "Step") -> None:
        from gristmill.engine.commands import Finish

        if not self.num_steps:
            self.began = step.now
        self.ended = step.now
        self.num_steps += 1
        self.num_events += len(step.events)
        self.num_commands += len(step.commands)
        for command in step.commands:
            if isinstance(command, Finish):
                self.outcome = command.outcome

    def summary(self, difference: str, *, checked: bool) -> str:
        """Return the report for the user, in lines."""
        end = self.outcome or "the log ends before the run did"
        lines = [
            f"events:   {self.num_events:,} in {self.num_steps:,} calls of the scheduler",
            f"commands: {self.num_commands:,}, all as recorded",
            f"duration: {self.ended - self.began:.3f} s of the run",
            f"end:      {difference or end}",
        ]
        return "\n".join([*lines, "invariants hold after every call"] if checked else lines)
