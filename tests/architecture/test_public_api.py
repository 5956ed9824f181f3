"""The public API is what public_api.txt says; a change of it shows up in review as a change of that file.

Public is what a module of gristmill defines at its top level without a leading underscore, with its signature.
Read from the syntax tree, so nothing is imported and optional libraries need not be there.

    python tests/architecture/test_public_api.py --write       writes the file anew
"""

import ast
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
SNAPSHOT = Path(__file__).with_name("public_api.txt")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_public(name: str) -> bool:
    return not name.startswith("_")


def signature(node: Function) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def describe_assignment(node: ast.AST, scope: str) -> Iterator[str]:
    """Yield a field with its type and default, a constant without its value, which may be long."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_public(node.target.id):
        value = f" = {ast.unparse(node.value)}" if node.value and scope.endswith(".") else ""
        yield f"{scope}{node.target.id}: {ast.unparse(node.annotation)}{value}"
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        yield from (f"{scope}{name}" for name in names if is_public(name))


def describe_class(node: ast.ClassDef, module: str) -> Iterator[str]:
    """Yield the class with its bases, then its fields, its constructor and its public methods."""
    bases = ", ".join(ast.unparse(base) for base in [*node.bases, *node.keywords])
    scope = f"{module}:{node.name}"
    yield f"{scope}({bases})"
    for member in node.body:
        if isinstance(member, Function) and (is_public(member.name) or member.name == "__init__"):
            yield f"{scope}.{signature(member)}"
        else:
            yield from describe_assignment(member, f"{scope}.")


def describe_module(tree: ast.Module, module: str) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from describe_class(node, module)
        elif isinstance(node, Function) and is_public(node.name):
            yield f"{module}:{signature(node)}"
        else:
            yield from describe_assignment(node, f"{module}:")


def public_modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if all(is_public(part) for part in parts):
            yield ".".join(parts), path


def describe_package() -> list[str]:
    """Return the lines of the snapshot, modules in order of name, members in order of definition."""
    return [
        line
        for module, path in public_modules()
        for line in dict.fromkeys(describe_module(ast.parse(path.read_text(encoding="utf-8")), module))
    ]


def test_the_public_api_is_the_recorded_one():
    recorded = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    difference = difflib.unified_diff(recorded, describe_package(), "recorded", "found", lineterm="", n=0)

    assert "\n".join(difference) == "", "intended? then run `make docs` and commit public_api.txt with the change"


def test_private_names_and_imports_are_no_part_of_it():
    tree = ast.parse("import os\nfrom a import b\n_x = 1\ndef _f(): ...\nclass _C: ...\ndef f(a, *, b: int = 1): ...")

    assert list(describe_module(tree, "m")) == ["m:f(a, *, b: int=1)"]


def test_a_class_shows_its_fields_and_methods_but_no_private_ones():
    tree = ast.parse(
        "class C(B):\n    x: int = 1\n    _y: int = 2\n    def go(self) -> None: ...\n    def _no(self): ..."
    )

    assert list(describe_module(tree, "m")) == ["m:C(B)", "m:C.x: int = 1", "m:C.go(self) -> None"]


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"{Path(__file__).name}: expected --write; got {sys.argv[1:]!r}")
    SNAPSHOT.write_text("\n".join(describe_package()) + "\n", encoding="utf-8")
