"""`header.json`: what a run is. Whoever continues a run must have the same; what differs is said.

Sealed like a line of the ledger: a header that was damaged says nothing, and must not be taken for another run's.
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import xxhash

from gristmill import __version__
from gristmill.engine import ledger
from gristmill.engine.plan import Plan
from gristmill.errors import ResumeRefused
from gristmill.secrets import without_url_secrets

FORMAT = 3  # of header and ledger: 2 gave lines checksums; 3 has facts of stages in place of counts of lines
CODE = "<code>"  # stands for code in a configuration (pipeline/fingerprint.py)
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
    }


def as_texts(header: Header) -> Iterator[str]:
    """Return it as the file has it, in pieces: there may be a million inputs."""
    digest = xxhash.xxh3_64()
    inputs = (
        f"[\n   {json.dumps(without_url_secrets(path))},\n   {size},\n   {json.dumps(version)}\n  ]"
        for path, size, version in _inputs(header)
    )
    for text in with_long_list(header, "inputs", inputs, end=""):
        digest.update(text.encode())
        yield text
    yield f'{ledger.CHECKSUM}{digest.hexdigest()}"}}\n'


def in_full(header: Header) -> Header:
    """Return it as `parse` would, with everything in memory."""
    return header | {"inputs": [[without_url_secrets(path), size, version] for path, size, version in _inputs(header)]}


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
    """Return a header, or None if it is damaged. One of an older version is refused: its ledger has another form."""
    found: object = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(text)
    if not isinstance(found, dict):
        return None
    if ledger.is_sealed(text) and found.get("format") == FORMAT:
        return {key: value for key, value in found.items() if key != "xxh3"}
    if "fingerprint" in found and found.get("format") != FORMAT:
        raise ResumeRefused(
            f"{path}: expected a run directory of this version of gristmill, whose ledgers have form {FORMAT}; this "
            f"one has form {found.get('format')!r}, of a version {found.get('version')}, and was left as it is. "
            f"Continue it with the version that began it, {HOW_TO_GO_ON}"
        )
    return None


def refusal(path: object, before: Header, now: Header) -> str:
    """Say what differs, and how to go on."""
    differences = [*_stage_differences(before, now), *_input_differences(before, now)]
    if before.get("initial_tasks") != now["initial_tasks"]:
        differences.append("initial_tasks: what they hold has changed")
    keys = [key for key in ("pipeline", "partitions", "rejects_path", "version") if before.get(key) != now[key]]
    differences += [f"{key}: {before.get(key)!r} then, {now[key]!r} now" for key in keys]
    if not differences:
        differences = ["the code of a stage has changed"]
    shown = "\n  ".join(differences[:SHOWN])
    more = f"\n  and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
    retry = ""
    if differs_in_code_only(before, now):
        retry = " With retry_quarantined=True (--retry-quarantined) the new code does only what is in quarantine."
    return (
        f"{path}: expected the run that was started here; this one differs:\n  {shown}{more}\n"
        f"Run the earlier pipeline to continue it, {HOW_TO_GO_ON}{retry}"
    )


def differs_in_code_only(before: Header, now: Header) -> bool:
    """Whether a run is the same as before but for the code of its stages."""
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
    new: dict[str, str] = dict(now["stages"])  # type: ignore[call-overload]
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            yield f"stage {name}: was there, is gone"
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
    elif old != new and name.rpartition(".")[2] == CODE:
        yield f"the {name.replace(CODE, 'code')} has changed"
    elif old != new:
        yield f"{name} {_shortened(old)} then, {_shortened(new)} now"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


def _input_differences(before: Header, now: Header) -> Iterator[str]:
    old = {path: tuple(rest) for path, *rest in before.get("inputs") or []}  # type: ignore[attr-defined]
    new = {path: tuple(rest) for path, *rest in now["inputs"]}  # type: ignore[attr-defined]
    for path in dict.fromkeys([*old, *new]):
        if path not in new:
            yield f"input {path}: was there, is gone"
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
