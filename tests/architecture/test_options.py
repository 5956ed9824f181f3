"""An option does something, or says that it does not: no field of a workflow, executor or reader is read by nobody."""

import ast
import dataclasses
import importlib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "gristmill"
# Folders whose classes users configure.
FOLDERS = ("workflows", "deduplication", "backends", "runs", "worker", "stages")
CLASS_VARIABLES = ("ClassVar", "KW_ONLY")
READ_BY_USERS = {"SimulationResult", "WorkerMetadata"}  # what we tell, not what we are told


def classes():
    """Every dataclass of these folders: file, class, and names of its fields."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ClassDef)
                and node.name not in READ_BY_USERS
                and any("dataclass" in ast.unparse(d) for d in node.decorator_list)
            ):
                fields = [
                    line.target.id
                    for line in node.body
                    if isinstance(line, ast.AnnAssign)
                    and isinstance(line.target, ast.Name)
                    and not any(word in ast.unparse(line.annotation) for word in CLASS_VARIABLES)
                ]
                yield path, node, fields


def reads(node):
    """Names of attributes that are read, of whatever object, and names that are looked up by text."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
            yield inner.attr
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def ignored_by(node):
    """What the class itself lists as without effect."""
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.target.id == "IGNORED":
            return ast.literal_eval(line.value)
    return ()


def reads_all_fields(node):
    return any(isinstance(inner, ast.Call) and ast.unparse(inner) == "fields(self)" for inner in ast.walk(node))


def own_reads(node):
    """What the methods of a class read of it, what is only listed left out."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef):
            yield from (
                inner.attr
                for inner in ast.walk(method)
                if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load)
            )


def unread_options(path, node, fields, read_somewhere):
    """The fields of a class that nobody reads, and those it lists as such: the two should be the same."""
    if path.parts[len(ROOT.parts)] in {"workflows", "deduplication"} and node.name.endswith("Workflow"):
        unread = set(fields) - set(own_reads(node)) - {"_"}  # users set them, so its own methods have to look
    else:
        unread = set(fields) - read_somewhere - {"_"}
    return unread, set(ignored_by(node))


def test_every_option_is_read_somewhere_or_listed_as_ignored():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")]
    read_somewhere = {name for tree in trees for name in reads(tree)}
    judged = [(node, *unread_options(path, node, fields, read_somewhere)) for path, node, fields in classes()]
    wrong = {
        node.name: (unread, listed)
        for node, unread, listed in judged
        if unread != listed and not reads_all_fields(node)
    }

    assert len(judged) > 300
    assert wrong == {}


WORKFLOWS = {
    "exact.ExactDeduplicationWorkflow": {"output_path": "o"},
    "fuzzy.FuzzyDeduplicationWorkflow": {"cache_path": None, "output_path": "o"},
    "semantic.SemanticDeduplicationWorkflow": {
        "input_path": "i",
        "output_path": "o",
        "n_clusters": 2,
        "eps": 0.1,
    },
    "text_semantic.TextSemanticDeduplicationWorkflow": {"input_path": "i", "output_path": "o"},
    "removal.TextDuplicatesRemovalWorkflow": {
        "input_path": "i",
        "ids_to_remove_path": "d",
        "output_path": "o",
    },
}


@pytest.mark.parametrize("path", WORKFLOWS)
def test_an_ignored_option_warns_and_the_defaults_do_not(path):
    module, _, name = path.rpartition(".")
    workflow = getattr(importlib.import_module(f"gristmill.deduplication.{module}"), name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workflow(**WORKFLOWS[path])
    for option in workflow.IGNORED:
        assert option in {field.name for field in dataclasses.fields(workflow)}
        with pytest.warns(UserWarning, match=f"{name}: {option} has no effect here"):
            workflow(**WORKFLOWS[path], **{option: "something"})
