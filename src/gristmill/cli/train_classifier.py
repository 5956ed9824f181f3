"""`gristmill train-classifier`: learn to tell two kinds of documents apart."""

from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.metrics_options import shown, with_metrics
from gristmill.cli.options import AsJson, Debug, MemoryLimit, Quiet, Workers
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.metrics.metrics_options import MetricsOptions


@with_metrics
def train_classifier(
    positive: Annotated[str, typer.Option(metavar="DIR", help="Documents you want more of.")],
    negative: Annotated[str, typer.Option(metavar="DIR", help="Documents you want less of.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="MODEL", help="The model directory to make.")],
    kind: Annotated[str, typer.Option(help="fasttext: words and pairs of words. linear: on embeddings.")] = "fasttext",
    filetype: Annotated[str, typer.Option("--type", help="jsonl, parquet, arrow, csv or text.")] = "jsonl",
    text_field: Annotated[str, typer.Option(help="The column to learn from.")] = "text",
    holdout: Annotated[float, typer.Option(help="The share of documents to calibrate and report on.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Another seed is another split and another model.")] = 42,
    group_by: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Keep documents with the same value on one side of the split.")
    ] = None,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="More than one is faster and not reproducible.")] = 1,
    embedder: Annotated[
        str | None, typer.Option(metavar="MODEL", help="For linear: a directory, package:NAME or a hub id.")
    ] = None,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Train a classifier on two directories of documents; write it with a card that says how good it is."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.workflows.training import TrainClassifierWorkflow

    workflow = TrainClassifierWorkflow(
        positive, negative, output, kind, text_field, filetype,
        holdout=holdout, seed=seed, group_by=group_by, threads=threads, embedder=embedder,
    )  # fmt: skip
    chosen = choose_executor(workers=workers, memory_limit=memory_limit)
    with shown(metrics, chosen, quiet=quiet) as (_, observer):
        result = workflow.run(chosen, observer=observer, quiet=True)
    if not quiet:
        say(str(result))
    if as_json:
        answer(result.metadata)
