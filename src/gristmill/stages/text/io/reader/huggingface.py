"""`HuggingFaceReader`: datasets of the Hugging Face hub, and directories that its `datasets` library has saved.

Which files a split has is found out while the pipeline is planned: by the dataset's own card, else by their names. From
then on they are files like others, of one commit, and the reader of their format reads and splits them. Code that comes
with a dataset is never run.
"""

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gristmill.errors import ConfigError, NoInputError, nearest
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.text.io.reader.arrow import ArrowReader
from gristmill.stages.text.io.reader.csv import CsvReader
from gristmill.stages.text.io.reader.document_reader import _DocumentReader
from gristmill.stages.text.io.reader.jsonl import JsonlReader
from gristmill.stages.text.io.reader.parquet import ParquetReader
from gristmill.stages.text.io.reader.text import TextReader
from gristmill.storage.open_read import read_start
from gristmill.tasks import DocumentBatch, EmptyTask, Task

READERS: Mapping[str, type[_DocumentReader]] = {
    ".parquet": ParquetReader,
    ".jsonl": JsonlReader,
    ".json": JsonlReader,
    ".arrow": ArrowReader,
    ".csv": CsvReader,
    ".txt": TextReader,
}
COMPRESSED = (".gz", ".zst", ".bz2")
CARD = "README.md"
CARD_BYTES = 1 << 20
_SPLITS = ("train", "validation", "valid", "dev", "val", "test", "eval")
_NOT_DATA = re.compile(r"(^|/)(\.|dataset_infos?\.json$|dataset_dict\.json$|state\.json$)")
_SHARD = re.compile(r"(?P<before>.*-)(?P<number>\d{3,6})-of-(?P<total>\d{3,6})(?P<behind>[^/\d][^/]*)")
_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*(\n|\Z)", re.DOTALL)


class Files(NamedTuple):
    """What there is to choose from: where it is, names below that, and what the dataset's card says."""

    place: str
    names: tuple[str, ...]
    card: str


@dataclass(eq=False)
class HuggingFaceReader(CompositeStage[EmptyTask, DocumentBatch]):
    """Read a split of a dataset: `owner/name` on the hub, a copy of one on disk, or a directory of `save_to_disk`.

    `subset` is what the hub calls a subset or configuration; without it the default one is read. `revision` is a
    branch, a tag or a commit. The plan holds the commit: a run is continued with the same files, or refused where
    a branch has moved on. `fields` are the only columns read. Files may be Parquet, JSON lines, Arrow, CSV or text.
    Reading from the hub needs `pip install 'gristmill[hub]'`, and HF_TOKEN for a private dataset.
    """

    dataset: str
    subset: str | None = None
    split: str = "train"
    revision: str | None = None
    fields: list[str] | None = None
    blocksize: int | str | None = field(default=None, kw_only=True)
    files_per_partition: int | None = field(default=None, kw_only=True)
    name: str = field(default="huggingface_reader", kw_only=True)

    _reader: _DocumentReader | None = field(default=None, init=False, repr=False)

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        """Look up the files once; the reader of their format is two stages."""
        if self._reader is None:
            self._reader = self._choose_reader()
        return self._reader.decompose()

    def make_paths_absolute(self) -> None:
        if Path(self.dataset).expanduser().is_dir():
            self.dataset = str(Path(self.dataset).expanduser().absolute())

    def _choose_reader(self) -> _DocumentReader:
        place, chosen = self._split_files()
        kinds = {kind_of(name) for name in chosen}
        if len(kinds) > 1:
            raise ConfigError(
                f"{self.name}: expected files of one format in the split {self.split!r} of {self.dataset}; "
                f"got {', '.join(sorted(kinds))}"
            )
        kind = kinds.pop()
        return READERS[kind](
            [f"{place}/{name}" for name in chosen],
            files_per_partition=self.files_per_partition,
            blocksize=self.blocksize,
            fields=self.fields,
            file_extensions=[kind, *(kind + suffix for suffix in COMPRESSED)],
            name=self.name,
        )

    def _split_files(self) -> tuple[str, list[str]]:
        """Where the files of the split are, and their names there."""
        local = Path(self.dataset).expanduser()
        saved = _saved(local, self.split, who=self.name) if local.is_dir() else None
        if saved is not None:
            return saved
        files = self._on_disk(local) if local.is_dir() else self._on_hub()
        self._check_name(files)
        return files.place, choose(files, self.subset, self.split, who=f"{self.name}: {self.dataset}")

    def _check_name(self, files: Files) -> None:
        """Raise ConfigError if the stage is called as a subset is: elsewhere that is how a subset is chosen."""
        folders = {name.partition("/")[0] for name in files.names if "/" in name}
        if self.subset is None and self.name in {*_subsets(files.card, self.dataset), *folders}:
            raise ConfigError(
                f"{self.dataset}: expected subset={self.name!r} to read that subset; got name={self.name!r}, which is "
                "what the stage is called"
            )

    def _on_hub(self) -> Files:
        if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", self.dataset):
            raise NoInputError(
                f"{self.name}: expected a directory, or a dataset of the hub such as 'owner/name'; got {self.dataset!r}"
            )
        from gristmill.models.hub import ask_dataset

        commit, names = ask_dataset(self.dataset, self.revision, who=self.name)
        place = f"hf://datasets/{self.dataset}@{commit}"
        card = read_start(f"{place}/{CARD}", CARD_BYTES).decode("utf-8", "replace") if CARD in names else ""
        return Files(place, tuple(names), card)

    def _on_disk(self, directory: Path) -> Files:
        if self.revision is not None:
            raise ConfigError(f"{self.name}: expected no revision for a directory; got {self.revision!r}")
        paths = (path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*")) if path.is_file())
        card = directory / CARD
        text = card.read_bytes()[:CARD_BYTES].decode("utf-8", "replace") if card.is_file() else ""
        return Files(str(directory), tuple(paths), text)


def kind_of(name: str) -> str:
    """The ending that says how a file is read, without the one that says how it is compressed; empty if none does."""
    path = Path(name)
    ending = Path(path.stem).suffix if path.suffix in COMPRESSED else path.suffix
    return ending if ending in READERS else ""


def choose(files: Files, subset: str | None, split: str, *, who: str) -> list[str]:
    """The files of a split, in order: as the card says, else by their names."""
    names = [name for name in files.names if kind_of(name) and not _NOT_DATA.search(name)]
    named = _subsets(files.card, who)
    if named:
        if subset is not None and subset not in named:
            raise ConfigError(f"{who}: expected a subset of {list(named)}; got {subset!r}{nearest(subset, named)}")
        by_split = named[next(iter(named)) if subset is None else subset]
        if split not in by_split:
            raise ConfigError(f"{who}: expected a split of {list(by_split)}; got {split!r}{nearest(split, by_split)}")
        found = [name for pattern in by_split[split] for name in _matching(pattern, names)]
        if not found:
            raise NoInputError(f"{who}: expected files as its card names them, {by_split[split]}; found none")
        _check_shards(found, by_split[split], who)
        return list(dict.fromkeys(found))
    if subset is not None:
        below = [name for name in names if name.startswith(f"{subset}/")]
        if not below:
            folders = {name.partition("/")[0] for name in names if "/" in name}
            raise ConfigError(f"{who}: expected a subset it has; got {subset!r}{nearest(subset, folders)}")
        names = below
    found = _by_names(names, files.names, split, who)
    _check_shards(found, ["**"], who)
    return found


def _check_shards(names: Sequence[str], patterns: Sequence[str], who: str) -> None:
    """Raise ConfigError where names say how many files there are (`train-00000-of-00003`), and some are missing.

    A copy that was cut short looks like that. What no pattern asks for may be missing.
    """
    series: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        if (shard := _SHARD.fullmatch(name)) is not None:
            series.setdefault((shard["before"], shard["total"]), {})[int(shard["number"])] = shard["behind"]
    for (before, total), there in series.items():
        width, behind = len(total), next(iter(there.values()))
        wanted = (
            f"{before}{number:0{width}d}-of-{total}{behind}" for number in range(int(total)) if number not in there
        )
        missing = next((name for name in wanted if any(_matching(pattern, [name]) for pattern in patterns)), None)
        if missing is not None:
            raise ConfigError(
                f"{who}: expected {int(total):,} files {before}*-of-{total}; got {len(there):,}, and {missing} is not "
                "one of them. The reader of their format, such as ParquetReader, reads those there are"
            )


def _subsets(card: str, who: str) -> dict[str, dict[str, list[str]]]:
    """The subsets a card declares, the default one first: patterns of files by split."""
    import yaml  # takes 15 ms, and most runs read other files

    front = _FRONT.match(card)
    try:
        document = yaml.safe_load(front[1]) if front else None
    except yaml.YAMLError as error:
        raise ConfigError(f"{who}: expected YAML at the top of its {CARD}; {error}") from None
    configs = (document.get("configs") if isinstance(document, dict) else None) or []
    if not isinstance(configs, list):
        raise ConfigError(f"{who}: expected a list of configs in its {CARD}; got {configs!r:.200}")
    usable = [one for one in configs if isinstance(one, dict) and one.get("data_files")]
    usable.sort(key=lambda one: not (one.get("default") or one.get("config_name") == "default"))
    try:
        return {str(one.get("config_name", "default")): _patterns(one) for one in usable}
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{who}: expected data_files by split in its {CARD}; got {error!r}") from None


def _patterns(config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Patterns of files by split. A card gives them as a text, a list, or a list or mapping by split."""
    given = config["data_files"]
    if isinstance(given, str) or (isinstance(given, list) and all(isinstance(one, str) for one in given)):
        given = {"train": given}
    elif isinstance(given, list):
        given = {one["split"]: one["path"] for one in given}
    folder = str(config.get("data_dir") or "").strip("/")
    ahead = f"{folder}/" if folder else ""
    return {
        str(split): [f"{ahead}{path}" for path in ([paths] if isinstance(paths, str) else paths)]
        for split, paths in given.items()
    }


def _matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Names that match a pattern of a card; `**` crosses folders, `*` does not.

    >>> _matching("data/*.csv", ["data/a.csv", "data/old/b.csv"])
    ['data/a.csv']
    """
    wanted = fnmatch.translate(pattern.removeprefix("./"))
    if "**" not in pattern:
        wanted = wanted.replace(".*", "[^/]*")
    return sorted(name for name in names if re.match(wanted, name))


def _by_names(names: Sequence[str], everything: Sequence[str], split: str, who: str) -> list[str]:
    """Files whose path says the split: by a folder of that name, or a word in it. All are "train" if none does."""
    by_split: dict[str, list[str]] = {}
    for name in sorted(names):
        words = [folder.lower() for folder in name.split("/")[:-1]]
        words += re.split(r"[^a-z]+", Path(name).name.lower())
        found = next((word for word in words if word in (*_SPLITS, split)), "train")
        by_split.setdefault(found, []).append(name)
    if split in by_split:
        return by_split[split]
    if not by_split:
        script = next((name for name in everything if name.endswith(".py") and "/" not in name), None)
        if script is not None:
            raise ConfigError(
                f"{who}: expected data files; got {script}, a loading script, which is code and is not run. Most such "
                "datasets are on the hub as Parquet too: revision='refs/convert/parquet'"
            )
        raise NoInputError(f"{who}: expected files of {', '.join(READERS)}; found none")
    raise ConfigError(f"{who}: expected a split of {list(by_split)}; got {split!r}{nearest(split, by_split)}")


def _saved(directory: Path, split: str, *, who: str) -> tuple[str, list[str]] | None:
    """Where `save_to_disk` has put the files of a split, and their names in order; None if it did not make this."""
    splits = directory / "dataset_dict.json"
    if splits.is_file():
        known = [str(one) for one in _of_json(splits, "splits", who)]
        if split not in known:
            raise ConfigError(f"{who}: expected a split of {known}; got {split!r}{nearest(split, known)}")
        directory /= split
    state = directory / "state.json"
    if not state.is_file():
        return None
    try:
        names = [str(one["filename"]) for one in _of_json(state, "_data_files", who)]
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{who}: expected the names of data files in {state}; got {error!r}") from None
    for name in names:
        if Path(name).name != name:  # of a stranger's dataset, perhaps
            raise ConfigError(f"{who}: expected names of files in {directory}; got {name!r} in {state.name}")
    return str(directory), names


def _of_json(path: Path, key: str, who: str) -> list[Any]:
    """A list in one of the small files beside the data."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))[key]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{who}: expected {key!r} in {path}; got {error!r}") from None
    if not isinstance(found, list):
        raise ConfigError(f"{who}: expected a list as {key!r} in {path}; got {found!r:.200}")
    return found
