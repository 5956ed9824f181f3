"""`gristmill report`: what a run did, as one file to send to a colleague. Reads the run directory only."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import Debug
from gristmill.cli.run_files import RunFiles, find_runs
from gristmill.errors import ConfigError
from gristmill.storage.file_system import is_url

FILE_NAME = "report.html"


def report(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write. Default: report.html in the run directory."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as one line of JSON.")] = False,
    no_examples: Annotated[bool, typer.Option("--no-examples", help="Leave out texts of documents.")] = False,
    debug: Debug = False,
) -> None:
    """Write what a run did as one HTML file: verdict, funnel, rules, quarantine, time, configuration.

    The file holds no script and fetches nothing.
    """
    from gristmill.dashboard.duplicates import read_duplicates
    from gristmill.dashboard.report import Report
    from gristmill.dashboard.run_data import read_run

    runs = find_runs(run_dir, who="report")
    findings = [
        read_duplicates(content, examples=not no_examples, stage=stage) for stage, content in _findings(run_dir, runs)
    ]
    made = Report.of(
        [read_run(run, examples=not no_examples) for run in runs], [found for found in findings if found is not None]
    )
    if as_json:
        answer(made.to_json())
        if output is None:
            return
    path = _place(output, run_dir, [run.place for run in runs])
    _write(path, made.to_html())
    if not as_json:
        for part in made.runs:
            typer.echo("\n".join((*part.verdict.documents, *part.verdict.time, *part.verdict.warnings)))
        typer.echo(f"report       {path}")


def _findings(path: str, runs: Sequence[RunFiles]) -> Iterator[tuple[str, bytes | None]]:
    """What deduplications say they have found: in the output directory of a workflow, or as stages in that of a run."""
    home = path.rstrip("/").removesuffix("/.gristmill")
    yield "", RunFiles(home).read("report.json")
    for run in runs:
        yield from ((stage, run.read(f"search/{stage}/report.json")) for stage in run.searches())


def _place(output: str | None, asked: str, runs: list[str]) -> Path:
    """In the run directory, or in that of a workflow. Of a run on a store the file goes where the command was given."""
    if output is not None:
        return Path(output)
    home = runs[0] if len(runs) == 1 else asked
    return Path(FILE_NAME) if is_url(home) else Path(home) / FILE_NAME


def _write(path: Path, page: str) -> None:
    from gristmill.storage.atomic_write import whole_file

    try:
        with whole_file(path) as temporary:
            temporary.touch(mode=0o600)  # it may hold texts of documents, as the run directory does
            temporary.write_text(page, encoding="utf-8")
    except OSError as error:
        with contextlib.suppress(OSError):
            error.filename = str(path)
        raise ConfigError(f"report: expected a file that can be written at {path}; {error}") from error
