"""`gristmill dedup`: find and remove duplicates, and say what was found."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gristmill.cli.options import Debug, MemoryLimit, Workers

if TYPE_CHECKING:
    from gristmill.pipeline.workflow import WorkflowBase, WorkflowRunResult

app = typer.Typer(no_args_is_help=True, help="Find and remove duplicates: exact, fuzzy, semantic.")

Input = Annotated[str, typer.Option("--input", "-i", metavar="PATH", help="Files, a directory, a pattern.")]
OutputDir = Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Where results go.")]
FileType = Annotated[str, typer.Option("--type", help="jsonl or parquet.")]
TextField = Annotated[str, typer.Option(help="The column that is compared.")]
IdField = Annotated[str | None, typer.Option(help="The column that names a document.")]
KeepOption = Annotated[str, typer.Option(help="first, longest, newest:COLUMN, highest:COLUMN or source:COLUMN=a,b.")]
IndexOption = Annotated[
    list[str] | None, typer.Option("--index", metavar="DIR", help="Remove what is in this index; add to the first.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the duplicates.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start over instead of continuing.")]
AlarmShare = Annotated[float, typer.Option(help="Name files that lose more than this share.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, last line of stdout.")]


@app.command()
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
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove documents whose text, or any other column, is the same."""
    from gristmill.workflows.deduplication.exact_dedup import ExactDeduplicationWorkflow

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
    _run(workflow, workers, memory_limit, alarm_share, as_json=as_json)


@app.command()
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
    similarity: Annotated[str, typer.Option(help="jaccard, or containment: the share of what is removed.")] = "jaccard",
    index: IndexOption = None,
    dry_run: DryRun = False,
    fresh: Fresh = False,
    alarm_share: AlarmShare = 0.5,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove documents that are nearly the same; every removal is verified."""
    from gristmill.workflows.deduplication.fuzzy_dedup import FuzzyDeduplicationWorkflow

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
    typer.echo(workflow.curve(), err=True)
    _run(workflow, workers, memory_limit, alarm_share, as_json=as_json)


@app.command()
def semantic(
    input_path: Input,
    output: OutputDir,
    clusters: Annotated[int, typer.Option(help="Clusters for k-means.")],
    eps: Annotated[float, typer.Option(help="Duplicates have a cosine of at least 1 - eps.")] = 0.01,
    filetype: FileType = "parquet",
    embedding_field: Annotated[str, typer.Option(help="The column of embeddings.")] = "embeddings",
    text_field: TextField = "text",
    id_field: Annotated[str, typer.Option(help="The column that names a document.")] = "id",
    which_to_keep: Annotated[str, typer.Option(help="hard, easy or random.")] = "hard",
    dry_run: DryRun = False,
    fresh: Fresh = False,
    alarm_share: AlarmShare = 0.5,
    workers: Workers = None,
    memory_limit: MemoryLimit = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove documents whose embeddings are nearly the same."""
    from gristmill.workflows.deduplication.semantic_dedup import SemanticDeduplicationWorkflow

    workflow = SemanticDeduplicationWorkflow(
        input_path,
        output,
        clusters,
        id_field=id_field,
        embedding_field=embedding_field,
        input_filetype=filetype,
        which_to_keep=which_to_keep,  # type: ignore[arg-type]  # checked by the workflow
        eps=eps,
        clear_output=fresh,
        perform_removal=not dry_run,
        text_field=text_field,
        alarm_share=alarm_share,
    )
    _run(workflow, workers, memory_limit, alarm_share, as_json=as_json)


def _indexes(given: list[str] | None, *, dry_run: bool) -> tuple[str | None, list[str]]:
    """The index to add to and those to consult only; a dry run adds to none."""
    paths = list(given or [])
    return (None, paths) if dry_run or not paths else (paths[0], paths[1:])


def _run(
    workflow: "WorkflowBase", workers: int | None, memory_limit: str | None, alarm_share: float, *, as_json: bool
) -> None:
    from gristmill.backends.local import LocalExecutor
    from gristmill.workflows.deduplication.report import describe

    executor = LocalExecutor(num_workers=workers, memory_limit=memory_limit)
    result: WorkflowRunResult = workflow.run(executor=executor)  # type: ignore[call-arg]  # each takes an executor
    report = json.loads(Path(cast("str", result.metadata["report_path"])).read_text(encoding="utf-8"))
    typer.echo(describe(report, alarm_share=alarm_share), err=True)
    places = {"duplicates": result.metadata["duplicates_path"], "report": result.metadata["report_path"]}
    typer.echo("\n" + "\n".join(f"{name:<12} {path}" for name, path in places.items()), err=True)
    for warning in cast("list[str]", result.metadata.get("warnings", [])):
        typer.echo(f"warning: {warning}", err=True)
    if as_json:
        typer.echo(json.dumps(result.metadata, ensure_ascii=False))
