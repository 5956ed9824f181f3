"""What is promised is what public_api.txt says; a change of it shows up in review as a change of that file.

Users come in by doors: the modules listed here. What a door exports, with signatures, fields and public methods, is
promised. Every other module is ours to change, whatever its names look like.

Read from the syntax tree, so nothing is imported and optional libraries need not be there.

    python tests/architecture/test_public_api.py --write       writes the file anew
"""

import ast
import difflib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SNAPSHOT = Path(__file__).with_name("public_api.txt")
# What a person can read through, and a team can keep; 600 before models came with the names users know, 700 before a
# run could be watched and asked what it recorded, 720 before sources, 800 before pages, 840 before PDF
MOST_LINES = 860

DOORS = (
    "gristmill.errors",
    "gristmill.metrics.exporter",
    "gristmill.metrics.observation_files",
    "gristmill.metrics.start_prometheus_grafana",
    "gristmill.models.client",
    "gristmill.pipeline",
    "gristmill.pipeline.workflow",
    "gristmill.tasks",
    "gristmill.stages.base",
    "gristmill.stages.core",
    "gristmill.stages.context",
    "gristmill.stages.exchange",
    "gristmill.stages.file_partitioning",
    "gristmill.stages.function_decorators",
    "gristmill.stages.function_definitions",
    "gristmill.stages.io.files",
    "gristmill.stages.io.splitting",
    "gristmill.stages.io.tar_members",
    "gristmill.stages.math.classifiers",
    "gristmill.stages.math.download",
    "gristmill.stages.math.modifiers",
    "gristmill.stages.mixing",
    "gristmill.stages.resources",
    "gristmill.stages.synthetic",
    "gristmill.stages.synthetic.nemotron_cc",
    "gristmill.stages.text.classifiers",
    "gristmill.stages.text.decontamination",
    "gristmill.stages.text.download",
    "gristmill.stages.text.download.common_crawl",
    "gristmill.stages.text.download.html_extractors",
    "gristmill.stages.ingest_limits",
    "gristmill.stages.text.experimental.translation",
    "gristmill.stages.text.filters",
    "gristmill.stages.text.filters.fasttext",
    "gristmill.stages.text.filters.heuristic",
    "gristmill.stages.text.filters.heuristic.code",
    "gristmill.stages.text.filters.heuristic.repetition",
    "gristmill.stages.text.filters.histogram",
    "gristmill.stages.text.filters.token",
    "gristmill.stages.text.io",
    "gristmill.stages.text.io.reader",
    "gristmill.stages.text.io.writer",
    "gristmill.stages.text.modifiers",
    "gristmill.stages.text.modifiers.pii",
    "gristmill.stages.text.modifiers.string",
    "gristmill.stages.text.modifiers.unicode",
    "gristmill.stages.text.modules",
    "gristmill.stages.text.pdf",
    "gristmill.stages.text.quality",
    "gristmill.stages.text.rules",
    "gristmill.stages.deduplication",
    "gristmill.stages.deduplication.exact.workflow",
    "gristmill.stages.deduplication.fuzzy.workflow",
    "gristmill.stages.deduplication.id_generator",
    "gristmill.stages.deduplication.semantic",
    "gristmill.stages.text.deduplication.removal_workflow",
    "gristmill.stages.text.deduplication.semantic",
    "gristmill.stages.text.embedders",
    "gristmill.stages.text.embedders.vllm",
    "gristmill.deduplication.part_dedup",
    "gristmill.workflows.mixing",
    "gristmill.workflows.thresholds",
    "gristmill.workflows.training",
    "gristmill.backends.base",
    "gristmill.backends.local",
    "gristmill.backends.ray_actor_pool",
    "gristmill.backends.ray_data",
    "gristmill.backends.xenna",
    "gristmill.config.recipe",
    "gristmill.config.run",
    "gristmill.core.client",
    "gristmill.utils.merge_file_prefixes",
    "gristmill.testing",
    "gristmill.testing.contracts",
    "gristmill.testing.file_server",
    "gristmill.testing.llm_server",
    "gristmill.testing.tiny_models",
    "gristmill",  # last: everything it exports has been described where it lives
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
IMPORT = re.compile(r"^ *from (gristmill[\w.]*) import (?:\(([^)]*)\)|([\w, ]+))", re.MULTILINE)


def is_public(name: str) -> bool:
    return not name.startswith("_")


@cache
def tree_of(module: str) -> ast.Module | None:
    """Return the syntax tree of a module of ours, or None if there is none of that name."""
    place = SOURCE.joinpath(*module.split("."))
    found = [path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()]
    return ast.parse(found[0].read_text(encoding="utf-8")) if found else None


def exports_of(tree: ast.Module) -> list[str]:
    """Return what `__all__` says, else the public names that are defined here."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return [name for node in tree.body for name in names_defined(node) if is_public(name)]


def names_defined(node: ast.AST) -> list[str]:
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.AnnAssign):
        return [ast.unparse(node.target)]
    return [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []


def definition(module: str, name: str) -> ast.AST | None:
    """Follow imports to where a name is defined; None for what is not ours, or a module."""
    tree = tree_of(module)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom) and name in {alias.asname or alias.name for alias in node.names}:
            original = next(alias.name for alias in node.names if name == (alias.asname or alias.name))
            return definition(node.module or "", original)
    return next((node for node in tree.body if name in names_defined(node)), None) if tree else None


def describe(node: ast.AST | None, name: str, door: str) -> Iterator[str]:
    """Yield lines for one exported thing, named as it is at its door: a class with what one calls to make one, and
    with the public methods and properties it adds to those of its bases.
    """
    if isinstance(node, ast.ClassDef):
        members = {member.name: member for member in node.body if isinstance(member, Function)}
        fields = [member for member in node.body if isinstance(member, ast.AnnAssign)]
        fields = [field for field in fields if "ClassVar" not in ast.unparse(field.annotation)]
        made_with = [ast.unparse(field) for field in fields if is_public(ast.unparse(field.target))]
        made_with = [ast.unparse(members["__init__"].args)] if "__init__" in members else made_with
        bases = ", ".join(ast.unparse(base) for base in [*node.bases, *node.keywords])
        yield f"{door}:{name}({', '.join(made_with)})" + (f" is {bases}" if bases else "")
        known = {own for base in node.bases for own in methods_of(base, door)}
        for own, member in members.items():
            if is_public(own) and own not in known:
                yield f"{door}:{name}.{signature(member)}"
    elif isinstance(node, Function):
        yield f"{door}:{signature(node, name)}"
    else:
        yield f"{door}:{name}"


def methods_of(base: ast.expr, door: str) -> set[str]:
    """Return the names of methods a base of a class at a door has, of bases that have a door themselves."""
    name = ast.unparse(base).partition("[")[0]
    for place in (door, *DOORS):
        tree = tree_of(place)
        if tree is not None and name in exports_of(tree):
            node = definition(place, name)
            if isinstance(node, ast.ClassDef):
                own = {member.name for member in node.body if isinstance(member, Function)}
                return own.union(*(methods_of(above, place) for above in node.bases))
    return set()


def signature(node: Function, name: str = "") -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name or node.name}({ast.unparse(node.args)}){returns}"


def describe_package() -> list[str]:
    """Return the lines of the snapshot. What has several doors is described at the first; the others name theirs."""
    lines: list[str] = []
    described: set[int] = set()
    for door in DOORS:
        tree = tree_of(door)
        assert tree is not None, f"{door}: there is no such module"
        again: list[str] = []
        for name in exports_of(tree):
            node = definition(door, name)
            if node is not None and id(node) in described:
                again.append(name)
                continue
            lines += dict.fromkeys(describe(node, name, door))
            described |= {id(node)} if node is not None else set()
        lines += [f"{door}: {', '.join(again)}"] if again else []
    return lines


def test_what_is_promised_is_what_is_recorded():
    recorded = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    difference = difflib.unified_diff(recorded, describe_package(), "recorded", "found", lineterm="", n=0)

    assert "\n".join(difference) == "", "intended? then run `make docs` and commit public_api.txt with the change"


def test_what_is_promised_can_be_read_in_one_sitting():
    assert len(describe_package()) <= MOST_LINES


def shown_to_users() -> list[Path]:
    guides = [ROOT / "README.md", ROOT / "docs/index.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
    return [*guides, *sorted((ROOT / "examples").rglob("*.py"))]


@pytest.mark.parametrize("path", shown_to_users(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_users_are_shown_comes_in_by_a_door(path):
    strangers = []
    for door, many, some in IMPORT.findall(path.read_text(encoding="utf-8")):
        tree = tree_of(door) if door in DOORS else None
        known = set(exports_of(tree)) if tree else set()
        named = [part.split(" as ")[0].strip() for part in (many or some).split(",")]
        strangers += [f"{door}: {name}" for name in named if name and name not in known]

    assert strangers == []


def test_a_private_method_is_not_promised_and_a_default_is():
    tree = ast.parse(
        "class C(B):\n    x: int = 1\n    _y: int = 2\n    def go(self) -> None: ...\n    def _no(self): ..."
    )

    assert list(describe(tree.body[0], "C", "m")) == ["m:C(x: int = 1) is B", "m:C.go(self) -> None"]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"{Path(__file__).name}: expected --write; got {sys.argv[1:]!r}")
    SNAPSHOT.write_text("\n".join(describe_package()) + "\n", encoding="utf-8")
