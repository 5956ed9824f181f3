"""The reference of the Python interface: a page for each door, with everything that is promised there.

`tests/architecture/public_api.txt` says what is promised; signatures are its, words are the docstrings'.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from docs_site.pages import cell, first_sentence, prose, table

PROMISED = Path(__file__).parents[2] / "tests" / "architecture" / "public_api.txt"
_LINE = re.compile(r"(?P<door>[\w.]+):(?P<name>\w+)(?:\.(?P<method>\w+))?(?P<rest>.*)")
_AGAIN = re.compile(r"(?P<door>[\w.]+): (?P<names>.+)")


def python_pages() -> Iterator[tuple[str, str]]:
    """Yield an overview and a page for each door as (path, text)."""
    doors: dict[str, dict[str, list[str]]] = {}
    homes: dict[str, str] = {}  # name -> the door whose page describes it
    again: dict[str, list[str]] = {}
    for line in PROMISED.read_text(encoding="utf-8").splitlines():
        if found := _AGAIN.fullmatch(line):
            again.setdefault(found["door"], []).extend(found["names"].split(", "))
        elif found := _LINE.fullmatch(line):
            doors.setdefault(found["door"], {}).setdefault(found["name"], []).append(line.partition(":")[2])
            homes.setdefault(found["name"], found["door"])
    every = sorted({*doors, *again})
    rows = [[f"[{door}]({_file(door)})", cell(", ".join(_names(door, doors, again)))] for door in every]
    yield (
        "reference/python/overview.md",
        "# Python interface\n\nUsers come in by these modules, and what they export is promised: it changes only "
        "with a release that says so. Everything else is an internal detail, whatever its name looks like.\n\n"
        + table(("module", "names"), rows),
    )
    for door in every:
        yield f"reference/python/{_file(door)}", _page(door, doors.get(door, {}), again.get(door, []), homes)


def _file(door: str) -> str:
    return f"{door}.md"


def _names(door: str, doors: dict[str, dict[str, list[str]]], again: dict[str, list[str]]) -> list[str]:
    return [f"`{name}`" for name in (*doors.get(door, {}), *again.get(door, []))]


def _page(door: str, described: dict[str, list[str]], again: list[str], homes: dict[str, str]) -> str:
    module = importlib.import_module(door)
    text = f"# {door}\n\n{prose(inspect.getdoc(module))}\n\n"
    for name, lines in described.items():
        text += _thing(getattr(module, name), name, lines)
    if again:
        rows = [[_link(name, door, homes), first_sentence(getattr(module, name))] for name in again]
        text += "## Also importable from here\n\n" + table(("name", "what it is"), rows)
    return text


def _link(name: str, door: str, homes: dict[str, str]) -> str:
    home = homes.get(name)
    return f"[{name}]({_file(home)}#{name.lower()})" if home and home != door else f"`{name}`"


def _thing(thing: object, name: str, lines: list[str]) -> str:
    text = f"## {name}\n\n"
    own = [line for line in lines if not line.startswith(f"{name}.")]
    text += "".join(f"```python\n{_wrapped(line)}\n```\n\n" for line in own if "(" in line)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        text += f"{prose(inspect.getdoc(thing))}\n\n"
    else:
        text += f"`{name} = {thing!r:.200}`\n\n"
    for line in lines:
        if line.startswith(f"{name}."):
            method = line.removeprefix(f"{name}.")
            attribute = inspect.getattr_static(thing, method.partition("(")[0], None)
            found = getattr(attribute, "__func__", getattr(attribute, "fget", attribute))
            text += f"### {name}.{method.partition('(')[0]}\n\n```python\n{_wrapped(method)}\n```\n\n"
            text += f"{prose(inspect.getdoc(found))}\n\n"
    return text


def _wrapped(signature: str, width: int = 88) -> str:
    """A signature over several lines if it is long, one parameter each."""
    shown = re.sub(r"\((self|cls)(, )?", "(", signature, count=1)
    if len(shown) <= width:
        return shown
    start = shown.index("(") + 1
    depth, parts, begun, end = 0, [], start, len(shown)
    for place in range(start, len(shown)):
        letter = shown[place]
        if letter == ")" and depth == 0:
            end = place
            break
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(shown[begun:place].strip())
            begun = place + 1
    parts.append(shown[begun:end].strip())
    return shown[:start] + "".join(f"\n    {part}," for part in parts if part) + "\n" + shown[end:]
