"""`gristmill dedup`: find and remove duplicates, and say what was found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gristmill.cli.answer import answer
from gristmill.cli.metrics_options import shown, with_metrics
from gristmill.cli.options import AsJson, Debug, ExecutorName, Fresh, MemoryLimit, Quiet, Workers
from gristmill.metrics.screens import say

if TYPE_CHECKING:
    from gristmill.backends.base import BaseExecutor
    from gristmill.metrics.metrics_options import MetricsOptions
    from gristmill.pipeline.workflow import WorkflowBase

app = typer.Typer(no_args_is_help=True, help="Find and remove duplicates: exact, fuzzy, semantic, parts.")

Input = Annotated[str, typer.Option("--input", "-i", metavar="PATH", help="Files, a directory, a pattern.")]
OutputDir = Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where results go.")]
FileType = Annotated[str, typer.Option("--type", help="jsonl, parquet, arrow, csv or text.")]
TextField = Annotated[str, typer.Option(help="The column that is compared.")]
IdField = Annotated[str | None, typer.Option(help="The column that names a document.")]
KeepOption = Annotated[str, typer.Option(help="first, longest, newest:COLUMN, highest:COLUMN or source:COLUMN=a,b.")]
IndexOption = Annotated[
    list[str] | None, typer.Option("--index", metavar="DIR", help="Remove what is in this index; add to the first.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the duplicates.")]
AlarmShare = Annotated[float, typer.Option(help="Name files that lose more than this share.")]


@app.command()
@with_metrics
def exact(
    input_path: Input,
    output: OutputDir,
    filetype: FileType = "jsonl",
    text_field: TextField = "text",
    id_field: IdField = None,
    keep: KeepOption = "first",
    index: IndexOption = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Ignore case, accents, punctuation.")] = False,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    alarm_share: AlarmShare = 0.5,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    executor: ExecutorName = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Remove documents whose text, or any other column, is the same."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.deduplication.exact import ExactDeduplicationWorkflow

    own, consulted = _indexes(index, dry_run=dry_run)
    workflow = ExactDeduplicationWorkflow(
        output,
        input_path,
        filetype,
        id_field=id_field,
        text_field=text_field,
        perform_removal=not dry_run,
        keep=keep,
        normalize=normalize,
        index=own,
        consult=consulted,
        alarm_share=alarm_share,
        fresh=fresh,
    )
    chosen = choose_executor(name=executor, workers=workers, memory_limit=memory_limit)
    _run(workflow, chosen, metrics, as_json=as_json, quiet=quiet)


@app.command()
@with_metrics
def fuzzy(
    input_path: Input,
    output: OutputDir,
    filetype: FileType = "jsonl",
    text_field: TextField = "text",
    id_field: IdField = None,
    keep: KeepOption = "longest",
    threshold: Annotated[float, typer.Option(help="Jaccard similarity from which documents are duplicates.")] = 0.8,
    shingle: Annotated[str, typer.Option(help="word:N or char:N.")] = "word:5",
    bands: Annotated[int | None, typer.Option(help="Number of bands. Default: enough for the threshold.")] = None,
    rows: Annotated[int | None, typer.Option(help="Hashes in a band. Default: 5.")] = None,
    verify: Annotated[bool, typer.Option(help="Compare before removing.")] = True,
    similarity: Annotated[str, typer.Option(help="jaccard, or containment (in the one that stays).")] = "jaccard",
    index: IndexOption = None,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    alarm_share: AlarmShare = 0.5,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    executor: ExecutorName = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Remove documents that are nearly the same; every removal is verified."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.deduplication.fuzzy import FuzzyDeduplicationWorkflow

    own, consulted = _indexes(index, dry_run=dry_run)
    workflow = FuzzyDeduplicationWorkflow(
        None,
        output,
        input_path,
        filetype,
        text_field=text_field,
        perform_removal=not dry_run,
        num_bands=bands,
        minhashes_per_band=rows,
        shingle=shingle,
        jaccard_threshold=threshold,
        verify=verify,
        similarity=similarity,
        keep=keep,
        id_field=id_field,
        index=own,
        consult=consulted,
        alarm_share=alarm_share,
        fresh=fresh,
    )
    if not quiet:
        say(workflow.curve())
    chosen = choose_executor(name=executor, workers=workers, memory_limit=memory_limit)
    _run(workflow, chosen, metrics, as_json=as_json, quiet=quiet)


@app.command()
@with_metrics
def semantic(
    input_path: Input,
    output: OutputDir,
    clusters: Annotated[int, typer.Option(help="Clusters for k-means.")],
    eps: Annotated[float, typer.Option(help="Duplicates have a cosine of at least 1 - eps.")] = 0.01,
    filetype: FileType = "parquet",
    embedding_field: Annotated[str, typer.Option(help="The column of embeddings.")] = "embeddings",
    text_field: TextField = "text",
    id_field: Annotated[str | None, typer.Option(help="The column that names a document. Default: id.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Embed the texts with this model first: a directory, package:NAME, a hub id.")
    ] = None,
    which_to_keep: Annotated[str, typer.Option(help="hard, easy or random.")] = "hard",
    dry_run: DryRun = False,
    fresh: Fresh = False,
    alarm_share: AlarmShare = 0.5,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    executor: ExecutorName = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    metrics: "MetricsOptions",
) -> None:
    """Remove documents whose embeddings are nearly the same; with --model, whose texts mean nearly the same."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.deduplication.semantic import SemanticDeduplicationWorkflow

    options: dict[str, object] = {
        "n_clusters": clusters,
        "which_to_keep": which_to_keep,
        "eps": eps,
        "clear_output": fresh,
        "perform_removal": not dry_run,
        "text_field": text_field,
        "alarm_share": alarm_share,
        "input_filetype": filetype,
    }
    if model is None:
        options |= {"embedding_field": embedding_field, "id_field": id_field or "id"}
        workflow: WorkflowBase = SemanticDeduplicationWorkflow(input_path, output, **options)  # type: ignore[arg-type]
    else:
        workflow = _of_texts(input_path, output, model, id_field, options)
    chosen = choose_executor(name=executor, workers=workers, memory_limit=memory_limit)
    _run(workflow, chosen, metrics, as_json=as_json, quiet=quiet)


def _of_texts(
    input_path: str, output: str, model: str, id_field: str | None, options: dict[str, object]
) -> "WorkflowBase":
    from gristmill.deduplication.text_semantic import TextSemanticDeduplicationWorkflow

    more = {"model_identifier": model, "output_filetype": options["input_filetype"]}
    more |= {} if id_field is None else {"id_field": id_field}
    return TextSemanticDeduplicationWorkflow(input_path, output, **options, **more)  # type: ignore[arg-type]


@app.command()
@with_metrics
def parts(
    input_path: Input,
    output: OutputDir,
    filetype: FileType = "jsonl",
    text_field: TextField = "text",
    unit: Annotated[str, typer.Option(help="line or paragraph.")] = "line",
    min_count: Annotated[int, typer.Option(help="How often it must occur.")] = 2,
    min_chars: Annotated[int, typer.Option(help="How long it must be.")] = 1,
    min_left_chars: Annotated[int, typer.Option(help="Drop documents of which less is left.")] = 1,
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
    """Take out lines or paragraphs that occurred before."""
    from gristmill.cli.choose_executor import choose_executor
    from gristmill.deduplication.part_dedup import PartDeduplicationWorkflow

    workflow = PartDeduplicationWorkflow(
        output,
        input_path,
        filetype,
        text_field,
        unit=unit,  # type: ignore[arg-type]  # checked by the workflow
        min_count=min_count,
        min_chars=min_chars,
        min_left_chars=min_left_chars,
        fresh=fresh,
    )
    chosen = choose_executor(name=executor, workers=workers, memory_limit=memory_limit)
    with shown(metrics, chosen, quiet=quiet) as (_, observer):
        result = workflow.run(chosen, observer=observer, quiet=True)
    if not quiet:
        say(str(result))
    if as_json:
        answer(result.metadata)


def _indexes(given: list[str] | None, *, dry_run: bool) -> tuple[str | None, list[str]]:
    """The index to add to and those to consult only. A dry run adds to none, and need not find the first one."""
    paths = list(given or [])
    if dry_run:
        return None, [path for path in paths[:1] if Path(path).exists()] + paths[1:]
    return (paths[0], paths[1:]) if paths else (None, [])


def _run(
    workflow: "WorkflowBase", executor: "BaseExecutor", metrics: "MetricsOptions", *, as_json: bool, quiet: bool
) -> None:

    with shown(metrics, executor, quiet=quiet) as (_, observer):
        result = workflow.run(executor=executor, observer=observer, quiet=True)  # type: ignore[call-arg]  # each does
    if not quiet:
        say(str(result))
    for warning in cast("list[str]", result.metadata.get("warnings", [])):
        say(f"warning: {warning}")
    if as_json:
        answer(result.metadata)
