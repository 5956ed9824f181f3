"""Downloading from the hub. The one place that imports huggingface_hub, and the only one that uses the network.

Once per machine: the first process holds a lock while it downloads, the others wait and then find the files. Files are
chosen by name, not everything a repository holds, from one revision, and each is compared with the hash the hub has for
it. The name of the branch is written last: a download that was killed is not taken for complete, and the next one goes
on where it stopped.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gristmill.errors import ConfigError, EngineBug, MachineError, ReadError, RunFailed, require
from gristmill.models.runtime import ModelSource
from gristmill.models.weights import (
    TOKEN,
    cache_roots,
    find,
    is_hub_id,
    is_offline,
    not_found,
    repository,
    token,
    weight_files,
)
from gristmill.storage.atomic_write import explained, whole_file

RECORD = "gristmill.json"  # what was fetched into a directory: identifier, revision, hashes
SMALL = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "adapter_config.json",
    "modules.json",
    "sentence_bert_config.json",
)
# Of the modules of sentence-transformers: pooling, layers after it, a table of token vectors.
MODULE_FILES = re.compile(r"\d+_\w+/(config\.json|model\.safetensors|tokenizer\.json)")
ONNX = ("model.onnx", "onnx/model.onnx")
CHUNK = 1 << 20


@dataclass(frozen=True)
class HubFile:
    """A file of a repository, with the hash the hub has for it."""

    name: str
    size: int
    sha256: str | None  # of large files
    git_sha1: str | None  # of the others: git's own, over a header and the content


@dataclass(frozen=True)
class Listing:
    """A revision of a repository, and the files of it that are wanted."""

    revision: str
    files: tuple[HubFile, ...]

    @property
    def num_bytes(self) -> int:
        """How much there is to download."""
        return sum(file.size for file in self.files)


def fetch(source: ModelSource, *, into: Path | None = None, is_main: bool = False) -> Path:
    """Download what a model needs that is not on this machine; return the model's directory.

    With `into`, its files are put into that directory, whatever is elsewhere. `is_main` says that the revision asked
    for was that of the branch `main` a moment ago, so that callers who name no revision find it again.
    """
    for part in source.parts()[1:]:
        fetch(part)
    if into is not None:
        return _fetch_into(source, into)
    found = find(source)
    if found is not None:
        return found
    if is_offline(source) or not is_hub_id(source.model_identifier):
        raise not_found(source)
    root = cache_roots(source)[0]
    with _alone(root, source.model_identifier):
        found = find(source)  # another process may have been quicker
        if found is not None:
            return found
        listing = ask(source)
        folder = repository(root, source.model_identifier)
        _check_room(listing, root, who=source.who)
        for file in listing.files:
            _verify(Path(_download(source, file, listing.revision, cache_dir=str(root))), file)
        reference = folder / "refs" / ("main" if is_main else source.revision or "main")
        if reference.name != listing.revision:
            reference.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(reference) as temporary:
                temporary.write_text(listing.revision, encoding="ascii")
    found = find(source)
    if found is None:
        raise EngineBug(f"{source.who}: {source.model_identifier} was fetched to {root} and is not found there")
    return found


def _fetch_into(source: ModelSource, directory: Path) -> Path:
    if is_offline(source):
        raise not_found(source)
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory, source.model_identifier):
        listing = ask(source)
        _check_room(listing, directory, who=source.who)
        for file in listing.files:
            _verify(Path(_download(source, file, listing.revision, local_dir=str(directory))), file)
        record = {
            "model": source.model_identifier,
            "revision": listing.revision,
            "files": {file.name: _hashes(directory / file.name)[0] for file in listing.files},
        }
        with whole_file(directory / RECORD) as temporary:
            temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
    shutil.rmtree(directory / ".cache", ignore_errors=True)  # the hub's notes about a download that is complete
    shutil.rmtree(directory / LOCKS, ignore_errors=True)
    return directory


def ask(source: ModelSource) -> Listing:
    """Return the revision the hub has, and the files of it to download."""
    with _errors_in_words(source.model_identifier, source.revision, who=source.who):
        api = require("huggingface_hub", extra="hub").HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
        info = api.model_info(source.model_identifier, revision=source.revision, files_metadata=True, token=token())
    files = [
        HubFile(
            each.rfilename,
            int(each.size or 0),
            None if each.lfs is None else str(each.lfs["sha256"] if isinstance(each.lfs, dict) else each.lfs.sha256),
            each.blob_id,
        )
        for each in info.siblings or ()
    ]
    known = {file.name: file for file in files}
    chosen = choose_files(list(known), source)
    _check_usable(chosen, list(known), source)
    return Listing(str(info.sha), tuple(known[name] for name in chosen))


def ask_dataset(name: str, revision: str | None, *, who: str) -> tuple[str, list[str]]:
    """Return the commit that a revision of a dataset stands for, and the names of its files."""
    with _errors_in_words(name, revision, who=who, kind="dataset"):
        api = require("huggingface_hub", extra="hub").HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
        info = api.dataset_info(name, revision=revision, token=token())
    return str(info.sha), [each.rfilename for each in info.siblings or ()]


def _check_usable(chosen: Sequence[str], names: Sequence[str], source: ModelSource) -> None:
    """Raise ConfigError if what is wanted is not among the files, before any of them is downloaded."""
    who, place = source.who, f"{source.model_identifier} on the hub"
    if source.files == "tokenizer":
        if "tokenizer.json" not in chosen:
            raise ConfigError(f"{who}: expected a tokenizer.json in {place}; it has none")
    elif not any(name.endswith((".onnx", ".safetensors", ".bin")) for name in chosen):
        pickled = weight_files(names, ".bin")
        got = f"{pickled[-1]}, a pickle; allow_pickle=True takes it" if pickled else "neither"
        wanted = {"onnx": "model.onnx", "torch": ".safetensors"}.get(source.runtime or "", ".safetensors or model.onnx")
        raise ConfigError(f"{who}: expected {wanted} in {place}; got {got}")


def choose_files(names: Sequence[str], source: ModelSource) -> list[str]:
    """Return those files of a repository that are needed to run the model here, and no other format of its weights.

    The weights are last: where they are, everything is.
    """
    small = [name for name in names if name in SMALL or MODULE_FILES.fullmatch(name)]
    if source.files == "tokenizer":
        return small
    onnx = [name for name in ONNX if name in names][:1]
    data = [name for name in names if onnx and name.startswith(onnx[0]) and name != onnx[0]]  # weights of large graphs
    tensors = weight_files(names, ".safetensors")
    pickled = weight_files(names, ".bin") if source.allow_pickle else []
    if source.runtime == "onnx" or (onnx and source.runtime is None):
        return [*small, *onnx, *data]
    return [*small, *(tensors or pickled)]


def _download(source: ModelSource, file: HubFile, revision: str, **where: str) -> str:
    hub: Any = require("huggingface_hub", extra="hub")
    hub.utils.disable_progress_bars()
    with _errors_in_words(source.model_identifier, source.revision, who=source.who):
        got: str = hub.hf_hub_download(
            source.model_identifier,
            file.name,
            revision=revision,
            token=token(),
            endpoint=os.environ.get("HF_ENDPOINT"),
            **where,
        )
    return got


@contextlib.contextmanager
def _errors_in_words(name: str, revision: str | None, *, who: str, kind: str = "model") -> Iterator[None]:
    errors: Any = require("huggingface_hub.errors", extra="hub")
    try:
        yield
    except errors.GatedRepoError:
        raise ConfigError(f"{who}: access to {name} is granted on its page; then set {TOKEN}") from None
    except errors.RevisionNotFoundError:
        raise ConfigError(f"{who}: expected a revision {revision!r} of {name} on the hub; it has none") from None
    except errors.RepositoryNotFoundError:
        raise ConfigError(
            f"{who}: expected a {kind} {name} on the hub; found none. If it is private, set {TOKEN}"
        ) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise MachineError(f"{who}: expected room for {name}; got {error}") from None
        # Which library speaks HTTP changes with the version of the hub's package; none of them is imported here.
        if type(error).__module__.partition(".")[0] in HTTP or isinstance(error, ConnectionError | TimeoutError):
            raise RunFailed(
                f"{who}: expected to download {name}; the hub did not answer as it should: {error}"
            ) from None
        raise


HTTP = ("httpcore", "httpx", "httpx2", "huggingface_hub", "requests", "urllib3")
LOCKS = ".gristmill-locks"


@contextlib.contextmanager
def _alone(root: Path, identifier: str) -> Iterator[None]:
    """Hold the lock of a model on this machine. It ends with the process that holds it, however that ends."""
    file = root / LOCKS / f"{identifier.replace('/', '--')}.lock"
    with contextlib.ExitStack() as stack:
        with explained(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            opened = stack.enter_context(file.open("w"))
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _check_room(listing: Listing, directory: Path, *, who: str) -> None:
    needed, free = listing.num_bytes, shutil.disk_usage(directory).free
    if needed > free:
        raise MachineError(f"{who}: expected {needed / 1e6:,.0f} MB free in {directory}; got {free / 1e6:,.0f} MB")


def _hashes(path: Path) -> tuple[str, str]:
    sha256, git = hashlib.sha256(), hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            sha256.update(chunk)
            git.update(chunk)
    return sha256.hexdigest(), git.hexdigest()


def _verify(path: Path, file: HubFile) -> None:
    """Raise ReadError, and remove the file, if it is not what the hub says it is."""
    sha256, git = _hashes(path)
    wrong = (file.sha256 not in (None, sha256)) if file.sha256 else file.git_sha1 not in (None, git)
    if path.stat().st_size == file.size and not wrong:
        return
    size = path.stat().st_size
    for each in {path, path.resolve()}:
        each.unlink(missing_ok=True)
    raise ReadError(
        f"{file.name}: expected {file.size} bytes with the hash {file.sha256 or file.git_sha1}; got {size} bytes with "
        f"{sha256 if file.sha256 else git}. It was removed; run the same command again"
    )


def damaged_files(directory: Path) -> list[str]:
    """Return the files of a fetched model that have changed: by its record, or by the names in the hub's cache."""
    record = directory / RECORD
    if record.is_file():
        files = json.loads(record.read_text(encoding="utf-8"))["files"]
        gone = [name for name in files if not (directory / name).is_file()]
        return gone + [name for name in files if name not in gone and _hashes(directory / name)[0] != files[name]]
    damaged = []
    for path in sorted(path for path in directory.rglob("*") if path.is_symlink()):
        expected = path.readlink().name
        if not path.exists() or (len(expected) in (40, 64) and expected not in _hashes(path)):
            damaged.append(str(path.relative_to(directory)))
    return damaged
