"""`gristmill decontaminate`: remove documents that hold parts of benchmarks, and say which."""

from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.metrics_options import shown, with_metrics
from gristmill.cli.options import AsJson, Debug, ExecutorName, Fresh, MemoryLimit, Quiet, Workers
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.metrics.metrics_options import MetricsOptions


@with_metrics
def decontaminate(
    input_path: Annotated[str, typer.Option("--input", "-i", metavar="PATH", help="Documents.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where results go.")],
    benchmarks: Annotated[str, typer.Option(metavar="PATH", help="Benchmark files: .jsonl or .txt.")],
    filetype: Annotated[str, typer.Option("--type", help="jsonl, parquet, arrow, csv or text.")] = "jsonl",
    text_field: Annotated[str, typer.Option(help="The column that is compared.")] = "text",
    ngram_words: Annotated[int, typer.Option(help="Length of a passage, in words.")] = 13,
    min_hits: Annotated[int, typer.Option(help="How many passages a document must hold.")] = 1,
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
    """Remove documents that hold a passage of a benchmark."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.deduplication.decontamination import DecontaminationWorkflow

    workflow = DecontaminationWorkflow(
        output, input_path, benchmarks, filetype, text_field, ngram_words=ngram_words, min_hits=min_hits, fresh=fresh
    )
    chosen = choose_executor(name=executor, workers=workers, memory_limit=memory_limit)
    with shown(metrics, chosen, quiet=quiet) as (_, observer):
        result = workflow.run(chosen, observer=observer, quiet=True)
    if not quiet:
        say(str(result))
    if as_json:
        answer(result.metadata)
