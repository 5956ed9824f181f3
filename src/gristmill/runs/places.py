"""Where the rows of exchanges are, and that no output gets into the way of an input.

A plan is made and checked before it has a run directory. Whatever lies in that directory is named `RUN_DIR/...` until
the run knows where it is.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gristmill.engine.plan import AnyStage, Plan
from gristmill.errors import ConfigError
from gristmill.storage.file_system import absolute, is_hidden

NO_RUN = "RUN_DIR"  # stands for the run directory in plans that have none yet


def exchange_directory(run_dir: Path | str, number: int) -> str:
    """Return where the rows of a pipeline's exchange are, the first of which has the number 1."""
    return f"{run_dir}/exchange-{number}"


def in_directory(segments: Sequence[Plan], run_dir: Path) -> tuple[Plan, ...]:
    """Return the segments with the directory of the run they are for: rows are written in it by one, read by the next.

    Nothing is listed or checked again but that this place is apart from the input.
    """
    plans = []
    for number, segment in enumerate(segments):
        outputs = tuple(path.replace(NO_RUN, str(run_dir), 1) for path in segment.output_directories)
        check_outputs(outputs, segments[0].inputs, segments[0].input_directories)
        groups = tuple(
            replace(group, stages=tuple(_placed(stage, run_dir, number + 1) for stage in group.stages))
            for group in segment.groups
        )
        sources = segment.sources
        if number:
            data = [exchange_directory(run_dir, number)]
            sources = tuple(replace(task, data=data) for task in sources)
        plans.append(replace(segment, groups=groups, sources=sources, output_directories=outputs, then=None))
    return tuple(plans)


def _placed(stage: AnyStage, run_dir: Path, number: int) -> AnyStage:
    from gristmill.stages.exchange.write_partitions import WritePartitions

    if not isinstance(stage, WritePartitions):
        return stage
    placed = stage.with_()
    placed.__dict__["_directory"] = exchange_directory(run_dir, number)
    return placed


def check_outputs(outputs: Sequence[str], inputs: Sequence[tuple[str, int, str]], directories: Sequence[str]) -> None:
    """Raise ConfigError if output and input would get into each other's way.

    An output that has no place yet, because it goes where the run directory will be, is checked when it has one.
    """
    placed = [output for output in outputs if not output.startswith(f"{NO_RUN}/")]
    _check_input_is_safe(inputs, placed)
    _check_output_is_apart(directories, placed)


def _check_input_is_safe(inputs: Sequence[tuple[str, int, str]], outputs: Sequence[str]) -> None:
    """No input may lie where output goes: it would be overwritten, or read again by the next run."""
    for directory in outputs:
        root = absolute(directory).rstrip("/") + "/"
        for path, _, _ in inputs:  # listed files are absolute already, or URLs
            if path.startswith(root) or absolute(path).startswith(root):
                raise ConfigError(f"output directory {directory!r}: expected one without inputs in it; got {path!r}")


def _check_output_is_apart(listed: Sequence[str], outputs: Sequence[str]) -> None:
    """No output may lie in a directory that is read as a whole: the same command again would find other inputs."""
    for directory in outputs:
        for root in listed:
            below = absolute(directory).removeprefix(absolute(root).rstrip("/") + "/")
            if below != absolute(directory) and not any(is_hidden(part) for part in below.split("/")):
                raise ConfigError(
                    f"output directory {directory!r}: expected one outside of the input {root!r}, "
                    "whose files are all read: the next run would read this one's output"
                )
