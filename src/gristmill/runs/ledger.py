"""What a run has committed, line by line, and the header that says which plan's it is."""

import contextlib
import errno
import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
import xxhash

from gristmill import __version__
from gristmill.engine.events import Fact
from gristmill.engine.plan import Plan
from gristmill.errors import ResumeRefused
from gristmill.metrics.snapshot import NamedCounts, StageCounts
from gristmill.secrets import without_url_secrets
from gristmill.tasks import StagedFile

# What the ledger says, as text. One line is one committed source partition: a person can read it, `tail` follow it.
#
#     {"root":0,"name":"a.jsonl",…,"xxh3":"9fd1c2e8a1b04c77"}
#
# Each line ends with a checksum of itself. The last line may be torn by a crash, and any may be lost or damaged with
# the machine or by a person; it is then as if it had not been written, and its partition is done again. So is a line
# that does not fit the plan: it is of another run. A partition committed twice (its files had vanished and it was done
# again) counts once: the later line holds. Reading and writing the file is the executor's.

CHECKSUM = ',"xxh3":"'  # ends what is checked
_TAIL_CHARS = len(CHECKSUM) + 16 + len('"}\n')


class CommitRecord(NamedTuple):
    """Everything that came out of one source partition."""

    root: int
    name: str
    files: tuple[StagedFile, ...]  # outputs, in order
    side_files: tuple[StagedFile, ...]  # rejects and quarantine
    counts: tuple[tuple[str, StageCounts], ...]  # by stage name
    facts: tuple[Fact, ...]  # what stages said about the partition, for their own use when the run has ended


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """A record as the line has it. msgspec accepts no other types."""

    root: int
    name: str
    files: tuple[StagedFile, ...]
    side_files: tuple[StagedFile, ...]
    counts: dict[str, NamedCounts]
    facts: tuple[tuple[str, msgspec.Raw], ...]
    xxh3: str = ""


class Replayed(NamedTuple):
    """What a ledger says: the committed partitions by number, in order, and how many lines could not be used."""

    records: dict[int, CommitRecord]
    damaged: int


def sealed(text: str) -> str:
    """Return a JSON object, given as text, with a checksum of itself as its last field."""
    body = text.rstrip().removesuffix("}")
    return f'{body}{CHECKSUM}{xxhash.xxh3_64_hexdigest(body.encode())}"}}\n'


def is_sealed(text: str) -> bool:
    """Whether a text is as `sealed` returned it."""
    body = text[:-_TAIL_CHARS]
    try:
        return text == sealed(body + "}")
    except UnicodeEncodeError:  # a lone surrogate: no program of ours wrote it
        return False


def encode(record: CommitRecord) -> str:
    """Return the line, with its newline."""
    fields = record._asdict() | {
        "counts": {name: NamedCounts.of(counts) for name, counts in record.counts},
        "facts": [(stage, msgspec.Raw(said)) for stage, said in record.facts],  # JSON already: as readable as the rest
    }
    return sealed(msgspec.json.encode(fields).decode())


def decode(line: str) -> CommitRecord:
    """The inverse of `encode`. ValueError if it is not a whole line."""
    if not is_sealed(line):
        raise ValueError("the checksum of the line differs")
    found = msgspec.json.decode(line, type=_Line)
    counts = tuple((name, counts.plain()) for name, counts in found.counts.items())
    facts = tuple((stage, bytes(said)) for stage, said in found.facts)
    return CommitRecord(found.root, found.name, found.files, found.side_files, counts, facts)


def decode_if_whole(line: str) -> CommitRecord | None:
    """Return the record of a line, or None if it is torn or damaged."""
    try:
        return decode(line) if line.endswith("\n") else None
    except ValueError:
        return None


def replay(lines: Iterable[str], plan: Plan | None = None) -> Replayed:
    """Read the lines of a ledger; with `plan`, those that do not belong to it count as damaged."""
    records: dict[int, CommitRecord] = {}
    damaged = 0
    is_of_plan = fits(plan)
    for line in lines:
        record = decode_if_whole(line)
        if record is not None and is_of_plan(record):
            records[record.root] = record
        else:
            damaged += line.endswith("\n")  # otherwise torn by a crash, which need not be reported
    return Replayed(dict(sorted(records.items())), damaged)


def fits(plan: Plan | None) -> Callable[[CommitRecord], bool]:
    """Return a check of whether a plan has a record's partition and stages; without a plan, any record will do."""
    if plan is None:
        return lambda record: True
    stages, names = set(plan.stage_names), plan.source_names

    def is_of_plan(record: CommitRecord) -> bool:
        is_there = 0 <= record.root < len(names) and record.name == names[record.root]
        return is_there and all(name in stages for name, _ in record.counts)

    return is_of_plan


# The ledger as a file: where each line is stays in memory, what it says is read on demand.
#
# A record is a kilobyte as an object and its place eight bytes, and a run over a crawl is continued with a million of
# them. Lines are never changed, only added, so a place stays good for as long as the file is open.

BLOCK_BYTES = 1 << 16  # read at a time, backwards


class _Lines:
    """The file of a ledger, open for as long as its records are in use."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")

    def __del__(self) -> None:
        if hasattr(self, "file"):  # not set if there was no file
            self.file.close()

    def at(self, place: int) -> str:
        self.file.seek(place)
        return self.file.readline().decode("utf-8", "replace")


class LedgerRecords(Mapping[int, CommitRecord]):
    """Committed partitions by number, in order, read from their lines."""

    def __init__(self, lines: _Lines, roots: "array[int]", places: "array[int]") -> None:
        """`roots` are in order, each once; `places` are where their lines begin."""
        self._lines = lines
        self._roots = roots
        self._places = places

    def only(self, roots: Iterable[int]) -> "LedgerRecords":
        """Return those of some partitions, which are given in order."""
        chosen = array("q", roots)
        return LedgerRecords(self._lines, chosen, array("q", (self._places[self._at(root)] for root in chosen)))

    def _at(self, root: int) -> int:
        at = bisect_left(self._roots, root)
        if at == len(self._roots) or self._roots[at] != root:
            raise KeyError(root)
        return at

    def __contains__(self, root: object) -> bool:
        if not isinstance(root, int):
            return False
        at = bisect_left(self._roots, root)
        return at < len(self._roots) and self._roots[at] == root

    def __len__(self) -> int:
        return len(self._roots)

    def __iter__(self) -> Iterator[int]:
        return iter(self._roots)

    def __getitem__(self, root: int) -> CommitRecord:
        return decode(self._lines.at(self._places[self._at(root)]))


class Found(NamedTuple):
    """What a ledger says: the last word on each partition, and how many lines could not be used."""

    records: Mapping[int, CommitRecord]
    damaged: int


def read_ledger(path: Path, plan: Plan | None = None) -> Found:
    """Return what a ledger says, nothing if it is missing. With `plan`, lines that do not fit it count as damaged."""
    try:
        lines = _Lines(path)
    except FileNotFoundError:
        return Found({}, 0)
    roots, places, damaged, place = array("q"), array("q"), 0, 0
    is_of_plan = fits(plan)
    for line in lines.file:
        record = decode_if_whole(line.decode("utf-8", "replace"))
        if record is not None and is_of_plan(record):
            roots.append(record.root)
            places.append(place)
        else:
            damaged += line.endswith(b"\n")  # otherwise torn by a crash, which need not be reported
        place += len(line)
    order = sorted(range(len(roots)), key=roots.__getitem__)
    last = [at for at, then in zip_longest(order, order[1:], fillvalue=-1) if then < 0 or roots[at] != roots[then]]
    records = LedgerRecords(lines, array("q", (roots[at] for at in last)), array("q", (places[at] for at in last)))
    return Found(records, damaged)


def published_files(path: Path) -> Iterator[str]:
    """Return what a ledger of any form names as published, for removing a run of an earlier version too.

    Lines of every form so far have `files` and `side_files`, each with its `final` name. A line that says it has a
    checksum and does not fit it is left out: a damaged name may be that of someone else's file.
    """
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, RecursionError, TypeError, LookupError):
                text = line.decode()
                found = json.loads(text)
                if "xxh3" in found and not is_sealed(text):
                    continue
                finals = [each["final"] for each in (*found["files"], *found["side_files"])]
                yield from (final for final in finals if isinstance(final, str) and final)


def whole_lines_end(path: Path) -> int:
    """Return where the last whole line of a file ends: what is behind was torn by a crash."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - BLOCK_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


class LedgerFile:
    """The ledger of a run that is under way, open for more lines."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
        end = whole_lines_end(path)
        if end != os.fstat(self._fd).st_size:  # the last line was torn by a crash
            os.ftruncate(self._fd, end)

    def check_is_in_place(self) -> None:
        """Raise if the file was removed or moved away: lines could still be written, but would never be found again."""
        if not os.path.samestat(self.path.stat(), os.fstat(self._fd)):
            raise FileNotFoundError(errno.ENOENT, "it was replaced while the run was using it")

    def append(self, records: Iterable[CommitRecord]) -> None:
        """Write lines and force them to disk, all at once. If that fails, none of them has been written."""
        view = memoryview("".join(encode(record) for record in records).encode())
        size = os.fstat(self._fd).st_size
        try:
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, size)
            raise

    def close(self) -> None:
        """Let the file go."""
        os.close(self._fd)


FORMAT = 3  # of header and ledger: 2 gave lines checksums; 3 has facts of stages in place of counts of lines
CODE = "<code>"  # stands for code in a configuration (pipeline/compile.py)
SHOWN = 5  # differences named in a message
SHOWN_CHARS = 80  # of each value
HOW_TO_GO_ON = "choose another directory, or start over with fresh=True (--fresh)."

Header = dict[str, object]


def header_of(plan: Plan, rejects_path: str | None) -> Header:
    """Return what a later run has to equal. Its inputs are the plan's: `as_texts` and `in_full` write them out."""
    return {
        "format": FORMAT,
        "version": __version__.rpartition(".")[0],
        "pipeline": plan.name,
        "fingerprint": plan.fingerprint,
        "stages": [list(stage) for stage in plan.stage_configs],
        "inputs": plan.inputs,
        "partitions": len(plan.sources),
        "initial_tasks": plan.held,
        "rejects_path": rejects_path,
        **({"listing": plan.listing} if plan.listing else {}),
    }


def as_texts(header: Header) -> Iterator[str]:
    """Return a header as the file has it, in pieces: there may be a million inputs."""
    digest = xxhash.xxh3_64()
    inputs = (
        f"[\n   {json.dumps(without_url_secrets(path))},\n   {size},\n   {json.dumps(version)}\n  ]"
        for path, size, version in _inputs(header)
    )
    for text in with_long_list(header, "inputs", inputs, end=""):
        digest.update(text.encode())
        yield text
    yield f'{CHECKSUM}{digest.hexdigest()}"}}\n'


def in_full(header: Header) -> Header:
    """Return a header as `parse` would, with everything in memory."""
    inputs = [[without_url_secrets(path), size, version] for path, size, version in _inputs(header)]
    return _compared(header | {"inputs": inputs})


def _compared(header: Header) -> Header:
    """A header without what only helps to begin: how inputs were listed does not matter if they are the same."""
    return {key: value for key, value in header.items() if key not in ("xxh3", "listing")}


def _inputs(header: Header) -> Sequence[tuple[str, int, str]]:
    return cast("Sequence[tuple[str, int, str]]", header["inputs"])


def with_long_list(document: dict[str, object], key: str, elements: Iterable[str], *, end: str = "}") -> Iterator[str]:
    """Return an object as JSON in pieces, of which one list is long and has its elements as JSON already.

    All together it is what `json.dumps(document, indent=1)` gives.
    """
    short = json.dumps(document | {key: []}, indent=1).removesuffix("}")
    before, _, behind = short.partition(f'\n "{key}": []')  # nowhere else: a line break in a string is escaped
    yield f'{before}\n "{key}": ['
    number = 0
    for number, element in enumerate(elements, 1):
        yield f"{',' * (number > 1)}\n  {element}"
    close = "\n ]" if number else "]"
    yield f"{close}{behind}{end}"


def parse(path: object, text: str) -> Header | None:
    """Return a header, or None if it is damaged. One of an older version is refused: its ledger has another format."""
    found: object = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(text)
    if not isinstance(found, dict):
        return None
    if is_sealed(text) and found.get("format") == FORMAT:
        return _compared(found)
    if "fingerprint" in found and found.get("format") != FORMAT:
        raise ResumeRefused(
            f"{path}: expected a run directory of this version of gristmill, whose ledgers have format {FORMAT}; this "
            f"one has format {found.get('format')!r}, written by {found.get('version')}, and was left as it is. "
            f"Continue it with the version that began it, {HOW_TO_GO_ON}"
        )
    return None


class HeaderMissing(ResumeRefused):
    """There are lines of a ledger, and nothing says which run they belong to."""


def refusal(path: object, before: Header, now: Header) -> str:
    """Say what differs, and how to go on."""
    found = differences(before, now) or ["the code of a stage has changed"]
    shown = "\n  ".join(found[:SHOWN])
    more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    retry = ""
    if differs_in_code_only(before, now):
        retry = " With retry_quarantined=True (--retry-quarantined) the new code does only what is in quarantine."
    return (
        f"{path}: expected the run that was started here; this one differs:\n  {shown}{more}\n"
        f"Run the earlier pipeline to continue it, {HOW_TO_GO_ON}{retry}"
    )


def differences(before: Header, now: Header) -> list[str]:
    """Say what differs between two runs, a line for each stage, input and setting."""
    found = [*_stage_differences(before, now), *_input_differences(before, now)]
    if before.get("initial_tasks") != now.get("initial_tasks"):
        found.append("initial_tasks: what they hold has changed")
    keys = [key for key in ("pipeline", "partitions", "rejects_path", "version") if before.get(key) != now.get(key)]
    return [*found, *(f"{key}: {before.get(key)!r} then, {now.get(key)!r} now" for key in keys)]


def differs_in_code_only(before: Header, now: Header) -> bool:
    """Whether a run is the same as before except for the code of its stages."""
    same = all(before.get(key) == now[key] for key in now if key not in ("fingerprint", "stages"))
    return same and _without_code(before.get("stages")) == _without_code(now["stages"])


def _without_code(stages: object) -> object:
    """The configurations without what stands for code in them."""
    found = []
    for name, text in stages or []:  # type: ignore[attr-defined]
        try:
            found.append((name, _stripped(json.loads(text))))
        except ValueError:
            found.append((name, text))
    return found


def _stripped(value: object) -> object:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if key != CODE}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _stage_differences(before: Header, now: Header) -> Iterator[str]:
    old: dict[str, str] = dict(before.get("stages") or [])  # type: ignore[call-overload]
    new: dict[str, str] = dict(now.get("stages") or [])  # type: ignore[call-overload]
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield f"stage {name}: was there before, is gone now"
        elif name not in old:
            yield f"stage {name}: is new"
        elif old[name] != new[name]:
            yield f"stage {name}: {_changed_part(old[name], new[name])}"


def _changed_part(old: str, new: str) -> str:
    """The parameters that differ, if the configurations are objects of parameters."""
    try:
        parts = list(_changed_values("", json.loads(old), json.loads(new)))
    except ValueError:
        parts = []
    return ", ".join(parts[:SHOWN]) or "its code has changed"


def _changed_values(name: str, old: object, new: object) -> Iterator[str]:
    """Each value that differs, by its path: a threshold may be a field of a filter that is a field of a stage."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _changed_values(f"{name}.{key}" if name else str(key), old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (before, now) in enumerate(zip(old, new, strict=True)):
            yield from _changed_values(f"{name}[{place}]", before, now)
    elif old != new and name.rpartition(".")[2] == CODE:
        yield f"the {name.replace(CODE, 'code')} has changed"
    elif old != new:
        yield f"{name} {_shortened(old)} then, {_shortened(new)} now"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _input_differences(before: Header, now: Header) -> Iterator[str]:
    old = {path: tuple(rest) for path, *rest in before.get("inputs") or []}  # type: ignore[attr-defined]
    new = {path: tuple(rest) for path, *rest in now.get("inputs") or []}  # type: ignore[attr-defined]
    for path in dict.fromkeys([*old, *new]):
        if path not in new:
            yield f"input {path}: was there before, is gone now"
        elif path not in old:
            yield f"input {path}: is new"
        elif old[path] != new[path]:
            yield f"input {path}: has changed (size or modification time)"


def has_text(path: Path, texts: Iterable[str]) -> bool:
    """Whether a file has this text, given in pieces."""
    try:
        with path.open("rb") as file:
            is_same = all(file.read(len(text)) == text for text in (text.encode() for text in texts))
            return is_same and not file.read(1)
    except FileNotFoundError:
        return False
