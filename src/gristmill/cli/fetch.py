"""`gristmill fetch`: the downloads of a recipe, or of some URLs, and nothing else."""

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gristmill.cli.answer import answer
from gristmill.cli.options import AllowModules, Debug, Inputs, Output, Settings

if TYPE_CHECKING:
    from gristmill.engine.plan import Plan
    from gristmill.stages.text.download.base import DocumentDownloader, DocumentDownloadStage

_WEB = ("http://", "https://", "s3://")
LOST = 1  # exit code: some files could not be had


def fetch(
    what: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE|URL...", help="A recipe that downloads, or URLs of files (http, https, s3)."),
    ],
    to: Annotated[str | None, typer.Option("--to", metavar="DIR", help="Where files of URLs go. Default: here")] = None,
    inputs: Inputs = None,
    output: Output = None,
    settings: Settings = None,
    allow_module: AllowModules = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be fetched, and fetch nothing.")] = False,
    contact: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Given to servers, so that they can write before they block you."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = False,
    debug: Debug = False,
) -> None:
    """Download the files of a recipe, or of URLs. Broken downloads are continued; whole files are left as they are."""
    from gristmill.stages.text.download.base.forecast import forecast

    if any(name.startswith(_WEB) for name in what):
        plan = _plan_of_urls(what, to, contact)
    else:
        plan = _plan_of_recipe(what, inputs, output, settings, allow_module)
    stage = _download_of(plan, what[0])
    if dry_run:
        found = forecast([stage], plan.inputs)
        answer({**vars(found), "is_exact": found.is_exact} if found else {}) if as_json else typer.echo(str(found))
        return
    _run(stage.downloader, plan.inputs, as_json=as_json, quiet=quiet)


def _run(
    downloader: "DocumentDownloader", files: Sequence[tuple[str, int, str]], *, as_json: bool, quiet: bool
) -> None:
    paths: list[str] = []
    lost: list[str] = []
    for is_there, said in _fetched(downloader, files):
        (paths if is_there else lost).append(said)
        if not quiet and not as_json:
            number = f"{len(paths) + len(lost):,} of {len(files):,}"
            typer.echo(f"{number}: {'' if is_there else 'lost: '}{said}", err=True)
    if as_json:
        answer({"fetched": sorted(paths), "lost": sorted(lost)})
    elif not quiet:
        typer.echo(f"{len(paths):,} of {len(files):,} files are there")
    if lost:
        raise typer.Exit(LOST)


def _fetched(downloader: "DocumentDownloader", files: Sequence[tuple[str, int, str]]) -> Iterator[tuple[bool, str]]:
    """Fetch all files, several at once; yield whether each is there, and its path or what went wrong.

    The threads of the pool are daemons: Ctrl-C ends the program, and a file that has come in part is continued next
    time. Whatever else a downloader raises, a user's own included, is raised here: no file is to blame for it.
    """
    from multiprocessing.pool import ThreadPool

    from gristmill.errors import DownloadFailed
    from gristmill.storage.transfer import RemoteFile

    def fetched(file: tuple[str, int, str]) -> tuple[bool, str]:
        url, size, version = file
        try:
            return True, downloader.download_file(RemoteFile(url, size or None, version))
        except DownloadFailed as failed:
            return False, str(failed)

    pool = ThreadPool(min(len(files), downloader.downloads_at_once))
    yield from pool.imap_unordered(fetched, files)


def _plan_of_recipe(
    what: list[str],
    inputs: list[str] | None,
    output: str | None,
    settings: list[str] | None,
    allow_module: list[str] | None,
) -> "Plan":
    from gristmill.backends.local import LocalExecutor
    from gristmill.cli.recipe_values import recipe_values
    from gristmill.config.shipped import find_recipe
    from gristmill.errors import ConfigError

    if len(what) != 1:
        raise ConfigError(f"fetch: expected one recipe, or URLs that begin with {', '.join(_WEB)}; got {what}")
    values = recipe_values(inputs or [], output, settings or [])
    return find_recipe(what[0]).build(values, allow_modules=allow_module or []).plan(LocalExecutor())


def _plan_of_urls(urls: Sequence[str], to: str | None, contact: str | None) -> "Plan":
    from urllib.parse import unquote, urlsplit

    from gristmill.backends.local import LocalExecutor
    from gristmill.errors import ConfigError
    from gristmill.pipeline import Pipeline
    from gristmill.stages.text.download.base import DocumentDownloadStage, URLGenerationStage, URLGenerator
    from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader
    from gristmill.storage.transfer import TransferOptions

    class Given(URLGenerator):
        """The URLs of the command line."""

        def generate_urls(self) -> list[str]:
            return list(urls)

    class Plainly(TransferDownloader):
        """Files under their own names."""

        def _get_output_filename(self, url: str) -> str:
            return unquote(urlsplit(url).path).rpartition("/")[2]

    for url in urls:
        if not url.startswith(_WEB) or url.endswith("/"):
            raise ConfigError(f"fetch: expected URLs of files that begin with {', '.join(_WEB)}; got {url!r}")
    downloader = Plainly(to or ".", transfer=TransferOptions(contact=contact))
    fetching = Pipeline("fetch").add_stage(URLGenerationStage(Given())).add_stage(DocumentDownloadStage(downloader))
    return fetching.plan(LocalExecutor())


def _download_of(plan: "Plan", what: str) -> "DocumentDownloadStage":
    """The stage of a plan that downloads, changed so that the files stay."""
    from dataclasses import replace

    from gristmill.errors import ConfigError
    from gristmill.stages.io.splitting import WholeFiles
    from gristmill.stages.text.download.base import DocumentDownloadStage
    from gristmill.stages.text.download.base.transfer_downloader import TransferDownloader

    stages = [stage for group in plan.groups for stage in group.stages]
    found = next((stage for stage in stages if isinstance(stage, DocumentDownloadStage)), None)
    if found is None or found.downloader.streams:
        why = "it downloads nothing" if found is None else "its files are read where they are (download_dir is null)"
        raise ConfigError(f"fetch: expected {what!r} to download files; {why}")
    stage = found.splitting(WholeFiles(), 0)  # a copy
    if isinstance(stage.downloader, TransferDownloader) and not stage.downloader.transfer.keep_files:
        stage.downloader = copy.copy(stage.downloader)
        stage.downloader.transfer = replace(stage.downloader.transfer, keep_files=True)
    return stage
