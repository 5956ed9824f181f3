"""The names recipes may use, and where the classes behind them are defined.

A recipe is data: what it names is one of our stages, filters, modifiers, rule sets and executors, or is defined in a
module that the user, not the recipe, has named. That is decided by the name, before anything is imported.

Our own modules are imported when a name is first looked up, not before: `gristmill --help` needs none of them.
"""

import contextlib
import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TypeGuard

from gristmill.backends.options import EXECUTORS
from gristmill.errors import ConfigError, nearest

# In the order in which a name is looked for; what loads models or downloads comes last, to spare recipes without it.
STAGE_MODULES = (
    "gristmill.stages.text.io.reader",
    "gristmill.stages.text.io.writer",
    "gristmill.stages.file_partitioning",
    "gristmill.stages.text.filters",
    "gristmill.stages.text.modifiers",
    "gristmill.stages.text.modules",
    "gristmill.stages.text.rules",
    "gristmill.stages.text.decontamination",
    "gristmill.stages.exchange",
    "gristmill.stages.deduplication",
    "gristmill.stages.mixing",
    "gristmill.stages.text.download",
    "gristmill.stages.text.pdf",
    "gristmill.stages.text.quality",
    "gristmill.stages.text.models",
    "gristmill.stages.text.classifiers",
    "gristmill.stages.math.classifiers",
    "gristmill.stages.math.download",
    "gristmill.stages.math.modifiers",
    "gristmill.stages.synthetic",
    "gristmill.stages.synthetic.nemotron_cc",
    "gristmill.stages.text.experimental.translation",
)
_LOADED_FIRST = STAGE_MODULES.index("gristmill.stages.mixing") + 1
FILTER_MODULES = (
    "gristmill.stages.text.filters.heuristic",
    "gristmill.stages.text.filters.heuristic.code",
    "gristmill.stages.text.filters.fasttext",
    "gristmill.stages.text.filters.histogram",
    "gristmill.stages.text.filters.token",
    "gristmill.stages.text.quality",
)
MODIFIER_MODULES = ("gristmill.stages.text.modifiers",)
RULE_SET_MODULES = ("gristmill.stages.text.rules",)
CLIENT_MODULES = ("gristmill.models.client",)
SOURCE_MODULES = (  # what raw sources are made of besides their stages
    "gristmill.stages.text.download.common_crawl",
    "gristmill.stages.text.download.html_extractors",
    "gristmill.stages.math.download",
)
WORKFLOW_MODULES = ("gristmill.stages", "gristmill.workflows", "gristmill.deduplication")
# Where a dotted path of a recipe may lead.
OWN_MODULES = (
    "gristmill.stages",
    "gristmill.deduplication",
    *CLIENT_MODULES,
    *(path.rpartition(".")[0] for path in EXECUTORS.values()),
)


@cache
def stages() -> dict[str, type]:
    """The stages shipped with gristmill that a recipe is meant to use, by class name."""
    from gristmill.stages.base import ProcessingStage

    return _public_classes(STAGE_MODULES, ProcessingStage)


@cache
def filters() -> dict[str, type]:
    """The filters shipped with gristmill, by class name."""
    from gristmill.stages.text.filters import DocumentFilter

    return _public_classes(FILTER_MODULES, DocumentFilter)


@cache
def modifiers() -> dict[str, type]:
    """The modifiers shipped with gristmill, by class name."""
    from gristmill.stages.text.modifiers import DocumentModifier

    return _public_classes(MODIFIER_MODULES, DocumentModifier)


@cache
def rule_sets() -> dict[str, type]:
    """The rule sets shipped with gristmill, by class name."""
    from gristmill.stages.text.rules import RuleSet

    return _public_classes(RULE_SET_MODULES, RuleSet)


@cache
def clients() -> dict[str, type]:
    """The clients of language models shipped with gristmill, by class name."""
    from gristmill.models.client import AsyncLLMClient, LLMClient

    return {
        name: cls for base in (AsyncLLMClient, LLMClient) for name, cls in _public_classes(CLIENT_MODULES, base).items()
    }


@cache
def source_parts() -> dict[str, type]:
    """What turns the records of a source into text, by class name."""
    return {name: cls for base in _source_kinds() for name, cls in _public_classes(SOURCE_MODULES, base).items()}


def find_class(name: str, *, who: str, allow_modules: Sequence[str] = ()) -> type:
    """Return the stage, filter, modifier or rule set of this name, or the class at this dotted path."""
    if "." in name:
        found = find_object(name, who=who, allow_modules=allow_modules)
        if not isinstance(found, type):
            raise ConfigError(f"{who}: expected {name!r} to be a class; got {found!r:.200}")
        return found
    from gristmill.stages.registry import check_is_one, stage_classes

    shipped = _find_shipped(name)
    check_is_one(name)
    cls = shipped or _users(stage_classes()).get(name)
    if cls is None:
        raise ConfigError(
            f"{who}: expected the name of a stage, filter, modifier or rule set, or the dotted path of your own; "
            f"got {name!r}{nearest(name, _shipped())}"
        )
    return cls


def is_part(name: str) -> bool:
    """Whether a filter, modifier, rule set or part of a source shipped with gristmill has this name."""
    return _find_part(name) is not None


def _find_part(name: str) -> type | None:
    from gristmill.stages.text.filters import DocumentFilter
    from gristmill.stages.text.modifiers import DocumentModifier
    from gristmill.stages.text.rules import RuleSet

    return (
        _look(name, MODIFIER_MODULES, DocumentModifier)
        or _look(name, RULE_SET_MODULES, RuleSet)
        or _look(name, FILTER_MODULES, DocumentFilter)
        or source_parts().get(name)
    )


def _find_shipped(name: str) -> type | None:
    """Look for a class where recipes find ours, module by module: loading all takes 0.1 s, and most need few."""
    from gristmill.stages.base import ProcessingStage

    return (
        _look(name, STAGE_MODULES[:_LOADED_FIRST], ProcessingStage)
        or _find_part(name)
        or _look(name, STAGE_MODULES, ProcessingStage)
        or clients().get(name)
    )


@cache
def _look(name: str, modules: tuple[str, ...], base: type) -> type | None:
    """Look for one name, and load nothing else of packages that fetch their names when they are used."""
    for path in modules:
        module = importlib.import_module(path)
        if name in _public_names(module) and _is_below_class(found := getattr(module, name), base):
            return found
    return None


def find_executor(name: str, *, who: str, allow_modules: Sequence[str] = ()) -> type:
    """Return the executor class of this short name, with hyphens or underscores, class name or dotted path."""
    by_class = {path.rpartition(".")[2]: path for path in EXECUTORS.values()}
    by_module = {path.split(".")[-2]: path for path in EXECUTORS.values()}  # ray_actor_pool
    short = name.replace("-", "_").lower()
    path = EXECUTORS.get(short) or by_class.get(name) or by_module.get(short) or name
    if "." not in path:
        shown = [each.replace("_", "-") for each in EXECUTORS]
        hint = nearest(name, [*shown, *by_class])
        raise ConfigError(f"{who}: expected an executor ({', '.join(shown)}); got {name!r}{hint}")
    return find_class(path, who=who, allow_modules=allow_modules)


def find_workflow(path: str, *, who: str) -> type:
    """Return the gristmill workflow that a dotted path names."""
    from gristmill.pipeline.workflow import WorkflowBase

    module_name, _, name = path.rpartition(".")
    if _is_below(module_name, WORKFLOW_MODULES):
        with contextlib.suppress(ModuleNotFoundError):
            found = getattr(importlib.import_module(module_name), name, None)
            if isinstance(found, type) and issubclass(found, WorkflowBase) and found is not WorkflowBase:
                return found
    raise ConfigError(f"{who}: expected a gristmill workflow, below {' or '.join(WORKFLOW_MODULES)}; got {path!r}")


def find_object(path: str, *, who: str, allow_modules: Sequence[str] = ()) -> object:
    """Return what a dotted path names, if a recipe may name it; nothing else is imported.

    It may name gristmill's stages, filters, modifiers, rule sets and executors, those already defined in this process,
    and what is defined in or below a module of `allow_modules`; these are looked for in the working directory too.
    """
    module_name, _, attribute = path.rpartition(".")
    allowed = _is_below(module_name, allow_modules)
    if not allowed and not _is_below(module_name, OWN_MODULES):
        return _defined_already(path, who)
    if allowed:
        # Workers unpickle the user's classes by module name, so the directory has to stay on the path for all of a run.
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"{who}: expected a module {module_name!r} for {path!r}; {error}") from None
    if not hasattr(module, attribute):
        raise ConfigError(
            f"{who}: expected {module_name!r} to define {attribute!r}; it does not{nearest(attribute, dir(module))}"
        )
    found: object = getattr(module, attribute)
    _check_may_be_named(found, path, allow_modules, who)
    return found


def _check_may_be_named(found: object, path: str, allow_modules: Sequence[str], who: str) -> None:
    """Refuse what a module merely imported: a module that imports subprocess is not an offer to run commands."""
    if _is_ours(found):
        return
    if not _is_below(path.rpartition(".")[0], allow_modules):
        raise ConfigError(
            f"{who}: expected a stage, filter, modifier or rule set; got {path!r}{_nearest_shipped(path)}"
        )
    home = getattr(found, "__module__", None) or ""
    has_home = isinstance(found, type | FunctionType | BuiltinFunctionType | MethodType | ModuleType)
    if _is_below(home, allow_modules) or not has_home:  # an object, such as a functools.partial, was made where it is
        return
    raise ConfigError(
        f"{who}: expected {path!r} to be defined in the modules named with --allow-module "
        f"({', '.join(allow_modules)}); it comes from {home or 'elsewhere'!r}"
    )


def _defined_already(path: str, who: str) -> object:
    """Return a class of the program that builds the recipe, or refuse the path and say how to allow it."""
    for kind in _kinds():
        for cls in _subclasses(kind):
            if f"{cls.__module__}.{cls.__qualname__}" == path:
                return cls
    module = path.rpartition(".")[0]
    raise ConfigError(
        f"{who}: expected a gristmill stage, filter, modifier or rule set; got {path!r}{_nearest_shipped(path)}"
        f" A recipe reaches other code only in modules you name: --allow-module {module}, or in Python "
        f"allow_modules=[{module!r}]. Do so if you trust that module"
    )


def _nearest_shipped(path: str) -> str:
    return nearest(path.rpartition(".")[2], _shipped()) or "."


def _is_below(module: str, parents: Sequence[str]) -> bool:
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)


def _is_ours(found: object) -> bool:
    """Whether something is a class of gristmill's that recipes are made of."""
    return isinstance(found, type) and issubclass(found, _kinds()) and _is_below(found.__module__, OWN_MODULES)


def _users(classes: dict[str, type]) -> dict[str, type]:
    """Of all stages, those the program itself has defined; ours have the names in the catalog and no others."""
    return {name: cls for name, cls in classes.items() if not _is_below(cls.__module__, ("gristmill",))}


def _shipped() -> dict[str, type]:
    return {**stages(), **filters(), **modifiers(), **rule_sets(), **clients(), **source_parts()}


def _kinds() -> tuple[type, ...]:
    from gristmill.backends.base import BaseExecutor
    from gristmill.models.client import AsyncLLMClient, LLMClient
    from gristmill.stages.base import ProcessingStage
    from gristmill.stages.text.filters import DocumentFilter
    from gristmill.stages.text.modifiers import DocumentModifier
    from gristmill.stages.text.rules import RuleSet

    kinds = (ProcessingStage, DocumentFilter, DocumentModifier, RuleSet, BaseExecutor, AsyncLLMClient, LLMClient)
    return (*kinds, *_source_kinds())


def _source_kinds() -> tuple[type, ...]:
    from gristmill.stages.text.download import DocumentExtractor
    from gristmill.stages.text.download.html_extractors import HTMLExtractorAlgorithm

    return DocumentExtractor, HTMLExtractorAlgorithm


def _subclasses(cls: type) -> Iterator[type]:
    children: list[type] = cls.__subclasses__()
    for below in children:
        yield below
        yield from _subclasses(below)


@cache
def _public_classes(modules: tuple[str, ...], base: type) -> dict[str, type]:
    found: dict[str, type] = {}
    for path in modules:
        module = importlib.import_module(path)
        for name in _public_names(module):
            if _is_below_class(value := getattr(module, name), base):
                found[name] = value
    return found


def _public_names(module: ModuleType) -> Sequence[str]:
    names: Sequence[str] = getattr(module, "__all__", None) or [name for name in vars(module) if name[:1] != "_"]
    return names


def _is_below_class(value: object, base: type) -> TypeGuard[type]:
    return isinstance(value, type) and issubclass(value, base) and value is not base
