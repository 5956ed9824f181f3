"""`gristmill explain`: what a run did to one document, and why. Reads what there is; changes nothing."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import AllowModules, Debug
from gristmill.errors import ConfigError

if TYPE_CHECKING:
    from gristmill.pipeline import Pipeline

RECIPE = "recipe.yaml"


def explain(
    run_dir: Annotated[str, typer.Argument(metavar="RUN_DIR", help="The run directory, or the output directory.")],
    document_id: Annotated[str, typer.Argument(metavar="DOC_ID", help="The document's id.")] = "",
    source: Annotated[
        str | None, typer.Option(metavar="FILE:LINE", help="Where it is in the input, if it has no id.")
    ] = None,
    with_models: Annotated[
        bool, typer.Option("--with-models", help="Also run stages again that have a set-up: models, servers, indexes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one line of JSON.")] = False,
    allow_module: AllowModules = None,
    debug: Debug = False,
) -> None:
    """Tell what a run did to a document: every rule's value and distance, what was changed, which rule dropped it.

    The document is found by its id in quarantine, rejects, outputs and input, and taken through the stages again. If
    the re-run and what the run has written down disagree, that is said.
    """
    from gristmill.pipeline.explain import explain_document, run_directory

    place = run_directory(run_dir)
    if not document_id and source is None:
        raise ConfigError("explain: expected the id of a document, or --source FILE:LINE; got neither")
    pipeline = _pipeline_of(place, allow_module or [])
    told = explain_document(pipeline, place, document_id, source=source, with_models=with_models)
    if as_json:
        answer(told.to_json())
    else:
        typer.echo(str(told))


def _pipeline_of(place: Path, allow_modules: list[str]) -> "Pipeline | None":
    """The pipeline of the run, as its recipe says; None for a run of a program."""
    from gristmill.config.recipe import Recipe

    found = next((path for path in (place / RECIPE, place / ".gristmill" / RECIPE) if path.is_file()), None)
    if found is None:
        return None
    return Recipe.parse(found.read_text(encoding="utf-8"), source=str(found)).build(allow_modules=allow_modules)
