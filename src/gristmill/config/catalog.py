"""The names recipes may use without a dotted path, and where the classes behind them are defined.

The modules are imported when a name is first looked up, not before: `gristmill --help` needs none of them.
"""

import importlib
import sys
from functools import cache
from pathlib import Path

from gristmill.backends.options import EXECUTORS
from gristmill.errors import ConfigError, nearest

STAGE_MODULES = (
    "gristmill.stages.file_partitioning",
    "gristmill.stages.exchange",
    "gristmill.stages.text.io.reader",
    "gristmill.stages.text.io.writer",
    "gristmill.stages.text.decontamination",
    "gristmill.stages.text.filters",
    "gristmill.stages.text.modifiers",
    "gristmill.stages.text.modules",
    "gristmill.stages.text.rules",
)
FILTER_MODULES = (
    "gristmill.stages.text.filters.heuristic",
    "gristmill.stages.text.filters.heuristic.code",
    "gristmill.stages.text.filters.fasttext",
    "gristmill.stages.text.filters.histogram",
    "gristmill.stages.text.filters.token",
)
MODIFIER_MODULES = ("gristmill.stages.text.modifiers",)
RULE_SET_MODULES = ("gristmill.stages.text.rules",)


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


def find_class(name: str, *, who: str) -> type:
    """Return the stage, filter, modifier or rule set of this name, or the class at this dotted path."""
    if "." in name:
        found = find_object(name, who=who)
        if not isinstance(found, type):
            raise ConfigError(f"{who}: expected {name!r} to be a class; got {found!r}")
        return found
    from gristmill.stages.registry import stage_classes

    known = {**stage_classes(), **stages(), **filters(), **modifiers(), **rule_sets()}
    if name not in known:
        offered = [*stages(), *filters(), *modifiers(), *rule_sets()]
        raise ConfigError(
            f"{who}: expected the name of a stage, filter, modifier or rule set, or the dotted path of your own; "
            f"got {name!r}{nearest(name, offered)}"
        )
    return known[name]


def find_executor(name: str, *, who: str) -> type:
    """Return the executor class of this short name, class name or dotted path."""
    by_class = {path.rpartition(".")[2]: path for path in EXECUTORS.values()}
    path = EXECUTORS.get(name) or by_class.get(name) or name
    if "." not in path:
        known = [*EXECUTORS, *by_class]
        raise ConfigError(f"{who}: expected an executor ({', '.join(EXECUTORS)}); got {name!r}{nearest(name, known)}")
    return find_class(path, who=who)


def find_object(path: str, *, who: str) -> object:
    """Return what a dotted path names, looking in the working directory too."""
    module_name, _, attribute = path.rpartition(".")
    # Workers unpickle the user's classes by module name, so the directory has to stay on the path for the whole run.
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
    return getattr(module, attribute)


def _public_classes(modules: tuple[str, ...], base: type) -> dict[str, type]:
    found: dict[str, type] = {}
    for module_name in modules:
        module = importlib.import_module(module_name)
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        for name in names:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, base) and value is not base:
                found[name] = value
    return found
