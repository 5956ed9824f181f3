"""`gristmill mix`: documents of several sources, each as often as its weight says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.metrics_options import shown, with_metrics
from gristmill.cli.options import AsJson, Debug, ExecutorName, Fresh, MemoryLimit, Output, Quiet, Workers
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.metrics.metrics_options import MetricsOptions


@with_metrics
def mix(
    config: Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="Sources, weights, target: YAML.")],
    output: Output = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, and say what would be wanted.")] = False,
    fresh: Fresh = False,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    executor: ExecutorName = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Mix datasets by weights: documents are repeated or left out by source, level or label."""
    from gristmill.config.load_yaml import load_yaml, read_yaml_file
    from gristmill.errors import ConfigError

    if not config.is_file():
        raise ConfigError(f"--config: expected a file; {str(config)!r} is not there")
    who = str(config)
    given = load_yaml(read_yaml_file(config, who=who), who=who)
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.workflows.mixing import Mixture, MixWorkflow

    workflow = MixWorkflow(Mixture.parse(given, output=output, who=who), dry_run=dry_run, fresh=fresh)
    chosen = choose_executor(name=executor, workers=workers, memory_limit=memory_limit)
    with shown(metrics, chosen, quiet=quiet) as (_, observer):
        result = workflow.run(chosen, observer=observer, quiet=True)
    if not quiet:
        say(str(result))
    if as_json:
        answer(result.metadata)
