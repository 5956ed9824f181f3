"""Where a model's files are on this machine, and what to say if they are not.

    directory ──► package ──► `cache_dir`, then the hub's cache ──► download

`locate` looks in the first three and touches no network. `check` is for the driver, while the plan is made: what is
missing is reported then, with the command that helps, before any worker starts. Only `hub.fetch` downloads; it is
called in `setup_on_node` and by `gristmill models fetch`.

A stage does this, and pickles no token (`stages/text/models/files.py`):

    keep_token(hf_token)             when it is made
    check(source).revision           in check_ready; from then on `source` has that revision
    hub.fetch(source)                in setup_on_node
    open_runtime(source, ...)        in setup
"""

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gristmill.errors import ConfigError, MissingDependency
from gristmill.models.known_configs import read_json
from gristmill.models.runtime import ModelSource, check_installed
from gristmill.secrets import remember

PACKAGE = "package:"
OFFLINE = ("GRISTMILL_OFFLINE", "HF_HUB_OFFLINE")
TOKEN = "HF_TOKEN"  # noqa: S105  # the name of a variable
_WEIGHTS = ("*.safetensors", "*.onnx", "onnx/*.onnx")
_PICKLES = ("*.bin", "*.pth", "*.pt")
SAMPLED = 1 << 16  # bytes at each end of a file that show whether it is another one

_token: str | None = None  # what stages of this process were given, until it is wanted


def keep_token(token: str | None) -> None:
    """Remember a token for downloads. It is never part of a stage, and so of no plan, fingerprint, pickle or log."""
    global _token  # noqa: PLW0603  # a secret has one place, and objects are copied and pickled
    if token:
        remember({"hf_token": token})
        _token = token


def token() -> str | None:
    """Return the token to download with, from the argument or from the environment."""
    found = _token or os.environ.get(TOKEN) or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    remember({"hf_token": found})
    return found


def is_offline(source: ModelSource) -> bool:
    """Whether the network must not be used."""
    if source.offline is not None:
        return source.offline
    return any(os.environ.get(name, "").lower() in ("1", "true", "yes", "on") for name in OFFLINE)


@dataclass(frozen=True)
class Presence:
    """What was found out about a model while planning."""

    directory: Path | None  # None: it has to be downloaded
    revision: str | None = None  # of the hub: fixed from now on, whatever is published while the run goes on
    download_bytes: int = 0


def check(source: ModelSource) -> Presence:
    """Return where a model and all it needs is, or what has to be downloaded; raise if neither is possible."""
    if source.files == "all":
        check_installed(source)
    found = [_check_part(part) for part in source.parts()]
    if any(each.directory is None for each in found) and _token:
        # Another process does the download. It inherits the environment, and nothing is written down.
        os.environ[TOKEN] = _token
    return replace(found[0], download_bytes=sum(each.download_bytes for each in found))


def _check_part(source: ModelSource) -> Presence:
    found = find(source)
    if found is not None:
        return Presence(found, revision_of(found, source))
    if is_offline(source) or not is_hub_id(source.model_identifier):
        raise not_found(source)
    if importlib.util.find_spec("huggingface_hub") is None:
        raise MissingDependency(
            f"{source.who} needs huggingface-hub to download {source.model_identifier}; it is not installed. "
            "Install: pip install 'gristmill[hub]'"
        )
    from gristmill.models.hub import ask

    listing = ask(source)
    return Presence(None, listing.revision, listing.num_bytes)


def locate(source: ModelSource) -> Path:
    """Return the directory with the files of a model that is on this machine. Raises ConfigError if it is not."""
    found = find(source)
    if found is None:
        raise not_found(source)
    return found


def find(source: ModelSource) -> Path | None:
    """Return the directory with a model's files, or None."""
    given = source.model_identifier
    if given.startswith(PACKAGE):
        return _in_package(given.removeprefix(PACKAGE), source)
    directory = Path(given).expanduser()
    if directory.is_dir():
        return directory
    return _in_caches(source) if is_hub_id(given) else None


def is_hub_id(identifier: str) -> bool:
    """Whether it looks like OWNER/NAME. What begins with a dot or a slash is a path that is not there."""
    owner, _, name = identifier.partition("/")
    return bool(owner and name) and not identifier.startswith((".", "/", "~", PACKAGE)) and "/" not in name


def not_found(source: ModelSource) -> ConfigError:
    """Return the error to raise where a model is missing and cannot or must not be downloaded."""
    name, who = source.model_identifier, source.who
    if not is_hub_id(name):
        return ConfigError(f"{who}: expected a directory, 'package:NAME' or a hub id OWNER/NAME; got {name!r}")
    places = "the hub cache" if source.cache_dir is None else f"{source.cache_dir} or the hub cache"
    why = "and offline is set" if is_offline(source) else "and it was not downloaded"
    return ConfigError(
        f"{who}: expected the weights of {name} in {places}; found none, {why}. "
        f"On a machine with network: gristmill models fetch {name} --to DIR; then model_path=DIR"
    )


# Packages


def _in_package(name: str, source: ModelSource) -> Path:
    """Return the directory of a package's weights. The package is found, not imported."""
    module, _, below = name.partition("/")
    found = importlib.util.find_spec(module) if module.isidentifier() else None
    if found is None or found.origin is None:
        raise ConfigError(f"{source.who}: expected a package {module!r} with the weights; it is not installed")
    directory = Path(found.origin).parent / below
    for place in (directory, directory / "model"):
        if has_weights(place, source) or (place / "tokenizer.json").is_file():
            return place
    raise ConfigError(f"{source.who}: expected .safetensors or .onnx in {directory}; the package has none")


def has_weights(directory: Path, source: ModelSource) -> bool:
    """Whether there is a file with weights that may be opened."""
    patterns = (*_WEIGHTS, *(_PICKLES if source.allow_pickle else ()))
    return any(next(directory.glob(pattern), None) is not None for pattern in patterns)


def weight_files(names: Sequence[str], ending: str) -> list[str]:
    """Return the files that make up the weights in one format: a single one, or an index and its parts."""
    stem = "model" if ending == ".safetensors" else "pytorch_model"
    adapter = [name for name in (f"adapter_model{ending}",) if name in names]
    if f"{stem}{ending}" in names:
        return [f"{stem}{ending}", *adapter]
    index = f"{stem}{ending}.index.json"
    parts = [name for name in names if name.startswith(f"{stem}-") and name.endswith(ending) and "/" not in name]
    named = ([index, *parts] if index in names else parts) + adapter
    others = [name for name in names if name.endswith(ending) and "/" not in name]
    return named or (others if len(others) == 1 else [])


# The cache of the hub: models--OWNER--NAME/{blobs/HASH, refs/main, snapshots/REVISION/FILE -> blobs}


def cache_roots(source: ModelSource) -> list[Path]:
    """Return the caches to look in; the first is the one that is downloaded to."""
    own = [] if source.cache_dir is None else [Path(source.cache_dir).expanduser()]
    return [*own, hub_cache()]


def hub_cache() -> Path:
    """Return where the hub's own tools keep what they download."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(name):
            return Path(os.environ[name]).expanduser()
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser() / "hub"
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "huggingface" / "hub"


def repository(root: Path, identifier: str) -> Path:
    """Return the directory of a repository in a cache."""
    return root / f"models--{identifier.replace('/', '--')}"


def _in_caches(source: ModelSource) -> Path | None:
    for root in cache_roots(source):
        snapshot = _snapshot(repository(root, source.model_identifier), source)
        if snapshot is not None:
            return snapshot
    return None


def _snapshot(folder: Path, source: ModelSource) -> Path | None:
    """Return the snapshot of the revision asked for, or of the branch `main`, if all of it is there."""
    reference = folder / "refs" / (source.revision or "main")
    try:
        named = reference.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        # A revision fetched by its hash leaves no branch behind. If there is only one snapshot, it is meant.
        held = [path.name for path in (folder / "snapshots").glob("*")]
        named = source.revision or (held[0] if len(held) == 1 else "")
    snapshot = folder / "snapshots" / named if named else None
    return snapshot if snapshot is not None and snapshot.is_dir() and is_complete(snapshot, source) else None


def is_complete(snapshot: Path, source: ModelSource) -> bool:
    """Whether no file is missing: fetching just the tokenizer leaves no weights, and an index names parts."""
    if source.files == "tokenizer":
        return (snapshot / "tokenizer.json").is_file()
    # A link may point at what is not there yet.
    if any(file.is_symlink() and not file.exists() for file in snapshot.rglob("*")):
        return False
    parts: set[str] = set()
    for index in snapshot.glob("*.index.json"):
        weight_map = read_json(index).get("weight_map")
        parts |= set(weight_map.values()) if isinstance(weight_map, dict) else set()
    return has_weights(snapshot, source) and all((snapshot / name).is_file() for name in parts)


def revision_of(directory: Path, source: ModelSource) -> str:
    """Return what distinguishes one state of a model from another: the hub's revision, or a hash of its files' ends.

    A run that is continued has to find the model it began with, and reading gigabytes would delay every plan.
    """
    if directory.parent.name == "snapshots" and is_hub_id(source.model_identifier):
        return directory.name
    digest = hashlib.sha256()
    names = [path.name for path in sorted(directory.iterdir()) if path.is_file()]
    small = [name for name in names if name.endswith(".json")]
    weights = [name for name in names if name.endswith((".safetensors", ".onnx", ".bin", ".pth", ".pt"))]
    for name in small if source.files == "tokenizer" else [*small, *weights]:
        path = directory / name
        size = path.stat().st_size
        with path.open("rb") as opened:
            first = opened.read(SAMPLED)
            opened.seek(max(size - SAMPLED, 0))
            digest.update(f"{name} {size} ".encode() + first + opened.read())
    return f"files:{digest.hexdigest()[:16]}"
