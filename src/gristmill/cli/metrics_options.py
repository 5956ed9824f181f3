"""The options by which a command tells Prometheus about its runs, declared once for all commands that run pipelines."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor
    from gristmill.metrics.metrics_options import MetricsOptions
    from gristmill.metrics.progress import Progress
    from gristmill.runs.user import Observer


def _declared(
    metrics_port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65535, help="Serve metrics on this port; 0 takes a free one."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on. The default is for this machine only.")
    ] = "127.0.0.1",
    metrics_sd: Annotated[
        str | None, typer.Option(metavar="DIR", help="Put a target file for Prometheus here while it runs.")
    ] = None,
    metrics_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keep the metrics in this file (*.prom).")
    ] = None,
    metrics_push: Annotated[
        str | None, typer.Option(metavar="URL", help="Push the final numbers to this Pushgateway.")
    ] = None,
    metrics_linger: Annotated[
        float, typer.Option(metavar="S", min=0, help="Wait at most S seconds for the final numbers to be fetched.")
    ] = 15.0,
) -> None:
    """Only its parameters are of use: they are added to those of a command."""


_OPTIONS = inspect.signature(_declared).parameters


def with_metrics(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; its own parameter `metrics` gets what they amount to."""

    own = inspect.signature(command).parameters
    names = [name for name in own if name != "metrics"]

    @functools.wraps(command)
    def wrapped(*first: Any, **named: Any) -> None:  # whatever the command's options are; a script may leave some out
        from gristmill.metrics.metrics_options import MetricsOptions

        given = {**dict(zip(names, first, strict=False)), **named}
        mine = {name: given.pop(name, option.default) for name, option in _OPTIONS.items()}
        options = MetricsOptions(
            port=mine["metrics_port"],
            host=mine["metrics_host"],
            discovery=mine["metrics_sd"],
            file=mine["metrics_file"],
            push=mine["metrics_push"],
            linger_s=mine["metrics_linger"],
        )
        command(**given, metrics=options)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, known in own.items()
        for parameter in (_OPTIONS.values() if name == "metrics" else [known])
    ]
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where typer looks
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


@contextmanager
def shown(metrics: "MetricsOptions", executor: "BaseExecutor", *, quiet: bool) -> "Iterator[tuple[Progress, Observer]]":
    """Progress on the screen, and metrics where they are asked for: the display, and the observer for the run."""
    from gristmill.metrics.progress import Progress

    with Progress(quiet=quiet) as progress:
        if not metrics:
            yield progress, progress
            return
        from gristmill.metrics.exporter import Exporter

        with Exporter(
            metrics,
            executor=type(executor).__name__,
            then=progress,
            say=lambda text: progress.say(f"gristmill: {text}"),
        ) as exporter:
            yield progress, exporter
