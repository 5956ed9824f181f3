"""`gristmill monitoring`: the files by which Prometheus and Grafana show runs."""

from pathlib import Path
from typing import Annotated

import typer

from gristmill.cli.options import Debug

app = typer.Typer(no_args_is_help=True, help="Set up Prometheus and Grafana to show runs.")


@app.callback()
def _monitoring() -> None:
    """Set up Prometheus and Grafana to show runs."""


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files go.")],
    prometheus_port: Annotated[int, typer.Option(min=1, max=65535, help="Where Prometheus listens.")] = 9090,
    grafana_port: Annotated[int, typer.Option(min=1, max=65535, help="Where Grafana listens.")] = 3000,
    run_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="Scrape runs there too; may be repeated.", show_default=False),
    ] = None,
    ray_dir: Annotated[str, typer.Option(metavar="DIR", help="Where Ray keeps its own target file.")] = "/tmp/ray",  # noqa: S108  # Ray's default
    force: Annotated[bool, typer.Option("--force", help="Replace files that were changed.")] = False,
    debug: Debug = False,
) -> None:
    """Write dashboards, rules and configurations of Prometheus and Grafana; start nothing."""
    from gristmill.metrics.monitoring_files import MonitoringOptions, write_monitoring

    options = MonitoringOptions(prometheus_port, grafana_port, tuple(run_host or ()), ray_dir)
    write_monitoring(directory, options, force=force)
    place = directory.absolute()
    typer.echo(f"written to {place}")
    typer.echo(f"start both in containers   docker compose -f {place / 'compose.yaml'} up -d")
    typer.echo(f"or Prometheus installed    prometheus --config.file={place / 'prometheus.yml'}")
    typer.echo(f"then show a run            gristmill run ... --metrics-sd {place / 'targets'}")
