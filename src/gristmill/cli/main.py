"""The entry point of the command `gristmill`: registers the commands and turns exceptions into exit codes.

    0    done, and the books balance
    1    the run failed: a stage lets nothing pass, a disk or a store failed, an input changed
    2    a mistake in the command, the recipe or the paths; nothing was started
    3    done, but more documents were quarantined than --max-quarantined allows
    130  stopped with Ctrl-C; the same command continues

This is the only place of the command line that may catch everything. No command is implemented here.
"""

import contextlib
import json
import os
import sys
import traceback
from typing import Annotated

import typer

from gristmill.backends.local.standard_descriptors import hold_standard_descriptors
from gristmill.cli import (
    completion,
    dashboard,
    decontaminate,
    dedup,
    diff,
    doctor,
    explain,
    fetch,
    init,
    inspect,
    mix,
    models,
    monitoring,
    plan,
    recipes,
    replay,
    report,
    rethreshold,
    run,
    score,
    shards,
    simulate,
    slurm,
    stages,
    status,
    trace,
    train_classifier,
)
from gristmill.cli.answer import alone_on_stdout
from gristmill.cli.help_page import dress
from gristmill.cli.options import Debug
from gristmill.errors import ConfigError, GristmillError, Interrupted, MissingDependency, TooManyQuarantined
from gristmill.metrics.screens import say
from gristmill.secrets import without_secrets

FAILED = 1
USER_MISTAKE = 2
TOO_MANY_QUARANTINED = 3
INTERRUPTED = 130  # 128 + SIGINT, what shells report for a program ended by Ctrl-C

app = typer.Typer(
    name="gristmill",
    help="Stream raw data through curation stages until it is fit to train on.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help needs no rich, which halves the time to the first line
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("status")(status.status)
app.command("dashboard")(dashboard.dashboard)
app.add_typer(dedup.app, name="dedup")
app.command("decontaminate")(decontaminate.decontaminate)
app.command("mix")(mix.mix)
app.command("report")(report.report)
app.command("inspect")(inspect.inspect)
app.command("diff")(diff.diff)
app.command("replay")(replay.replay)
app.command("explain")(explain.explain)
app.command("fetch")(fetch.fetch)
app.command("trace")(trace.trace)
app.command("stages")(stages.stages)
app.add_typer(recipes.app, name="recipes")
app.add_typer(models.app, name="models")
app.add_typer(monitoring.app, name="monitoring")
app.command("doctor")(doctor.doctor)
app.command("completion")(completion.completion)
app.command("init")(init.init)
app.command("slurm")(slurm.slurm)
app.command("shards")(shards.shards)
app.command("simulate")(simulate.simulate)
app.command("train-classifier")(train_classifier.train_classifier)
app.command("score")(score.score)
app.command("rethreshold")(rethreshold.rethreshold)
dress(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from gristmill import __version__

        typer.echo(f"gristmill {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Take the options that come before a command; --debug is looked up in `main`, where exceptions arrive."""


def exit_code(error: BaseException) -> int:
    """Return what the process should exit with after this exception."""
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, TooManyQuarantined):
        return TOO_MANY_QUARANTINED
    return USER_MISTAKE if isinstance(error, ConfigError | MissingDependency) else FAILED


def main() -> None:
    """Run the command line and exit."""
    hold_standard_descriptors()
    if shell := os.environ.get(completion.VARIABLE):
        with contextlib.suppress(Exception):  # a shell at its prompt is not the place to say what went wrong
            sys.stdout.write(completion.answer_shell(app, shell, sys.argv[1:]))
        return
    # An option cannot have a value that is optional: if this one is left out, it is filled in.
    arguments = ["--dashboard=0" if argument == "--dashboard" else argument for argument in sys.argv[1:]]
    try:
        with alone_on_stdout() if "--json" in arguments else contextlib.nullcontext():
            app(args=arguments, prog_name="gristmill")
    except SystemExit as leaving:  # the parser has said what it did not understand
        if leaving.code == USER_MISTAKE and "--json" in arguments:
            error = "expected a command as `gristmill --help` shows; standard error says what is wrong"
            typer.echo(json.dumps({"error": error, "exit_code": USER_MISTAKE}))
        raise
    except (Exception, KeyboardInterrupt) as error:
        _report(error, debug="--debug" in arguments)
        code = exit_code(error)
        if "--json" in arguments:  # a script that asked for JSON gets one object in any case
            typer.echo(json.dumps({**_books(error), "error": without_secrets(str(error)), "exit_code": code}))
        sys.exit(code)


def _books(error: BaseException) -> dict[str, object]:
    """The books of a run that ended before its time but has some."""
    from gristmill.runs.books import RunResult

    result = getattr(error, "result", None)
    return result.to_json() if isinstance(result, RunResult) else {}


def _report(error: BaseException, *, debug: bool) -> None:
    if debug:
        say(without_secrets("".join(traceback.format_exception(error))))
    elif isinstance(error, GristmillError):
        say(f"gristmill: {error}")
    elif isinstance(error, KeyboardInterrupt):
        say("gristmill: stopped")
    else:
        said = without_secrets(f"{type(error).__name__}: {error}")
        say(f"gristmill: {said} (--debug shows where)")


if __name__ == "__main__":  # python -m gristmill.cli.main
    main()
