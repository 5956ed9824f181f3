"""`Recipe`: a pipeline written down, before its variables have values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gristmill.config.hydra_form import is_hydra_form, to_recipe_form
from gristmill.config.load_yaml import load_yaml
from gristmill.config.variables import Substitution, names_in
from gristmill.errors import ConfigError, nearest
from gristmill.secrets import redacted, without_secrets
from gristmill.storage.file_system import absolute

if TYPE_CHECKING:
    from gristmill.pipeline import Pipeline

PLACES = ("input", "output")  # variables of every command line
KEYS = ("name", "description", "variables", "stages", "executor")
_ONLY_IF = "only_if"  # among a stage's parameters: without a value here, the stage is left out


@dataclass(frozen=True)
class Recipe:
    """`stages` and `executor` are as in the YAML; `variables` are the defaults of the variables that have one."""

    name: str
    stages: tuple[object, ...]
    description: str = ""
    variables: Mapping[str, object] | None = None
    executor: object | None = None

    @classmethod
    def parse(cls, text: str, *, source: str) -> "Recipe":
        """Read YAML text; `source` says where it is from, for messages."""
        return cls.from_document(load_yaml(text, who=f"recipe {source}"), source=source)

    @classmethod
    def from_document(cls, document: object, *, source: str) -> "Recipe":
        """Check the outer form of a recipe. Stages are looked up when the pipeline is built."""
        who = f"recipe {source}"
        if not isinstance(document, Mapping):
            raise ConfigError(f"{who}: expected the keys {', '.join(KEYS)}; got {redacted(document)!r:.200}")
        document = to_recipe_form(document, who=who) if is_hydra_form(document) else dict(document)
        for key in document:
            if key not in KEYS:
                raise ConfigError(
                    f"{who}: expected one of the keys {', '.join(KEYS)}; got {key!r}{nearest(str(key), KEYS)}"
                )
        stages = document.get("stages")
        if not isinstance(stages, list) or not stages:
            raise ConfigError(
                f"{who}: expected 'stages' to be a list of at least one stage; got {redacted(stages)!r:.200}"
            )
        variables = document.get("variables") or {}
        if not isinstance(variables, Mapping):
            raise ConfigError(f"{who}: expected 'variables' as 'name: default' lines; got {redacted(variables)!r:.200}")
        return cls(
            name=_text(document, "name", who) or source,
            stages=tuple(stages),
            description=_text(document, "description", who),
            variables={str(name): default for name, default in variables.items()},
            executor=document.get("executor"),
        )

    def variable_names(self) -> set[str]:
        """All variables the recipe uses or gives a default."""
        defaults = dict(self.variables or {})
        return names_in(list(self.stages)) | names_in(self.executor) | names_in(defaults) | set(defaults)

    def build(self, values: Mapping[str, object] | None = None, *, allow_modules: Sequence[str] = ()) -> "Pipeline":
        """Make the pipeline. A value for a variable the recipe does not have is an error, as is a missing one.

        A recipe is data: apart from gristmill's stages, filters, modifiers and rule sets it reaches what is defined in
        `allow_modules`, and nothing is made before all of it has been found to be allowed.
        """
        from gristmill.config.build import prepare_stage
        from gristmill.pipeline import Pipeline

        stages = self.substituted(values)
        prepared = [
            prepare_stage(item, who=f"recipe {self.name!r}, stage {number}", allow_modules=allow_modules)
            for number, item in enumerate(stages, start=1)
        ]
        built = [stage.make() for stage in prepared]
        pipeline = Pipeline(name=self.name, description=self.description or None, stages=built)
        pipeline.recipe = self.filled_in(values)
        return pipeline

    def filled_in(self, values: Mapping[str, object] | None = None) -> str:
        """The recipe as YAML with every variable replaced by its value: what a run keeps so that it can be explained.

        Input and output are written so that they mean the same in every directory. What has the name of a secret is
        hidden; a pipeline that needs it cannot be built from this.
        """
        import yaml

        placed = {name: _absolute(value) if name in PLACES else value for name, value in (values or {}).items()}
        document = {"name": self.name, "description": self.description, "stages": self.substituted(placed)}
        shown = redacted(_without_variables({key: value for key, value in document.items() if value}))
        return without_secrets(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=120))

    def substituted(self, values: Mapping[str, object] | None = None) -> list[object]:
        """The stages with every variable replaced by its value, without those whose `only_if` has none."""
        stages = self._substituted(list(self.stages), values, kind="stage")
        wanted = [_unconditional(item) for item in stages if _condition(item)]
        if not wanted:
            raise ConfigError(
                f"recipe {self.name!r}: expected at least one stage; got none: each has an {_ONLY_IF} without a value"
            )
        return wanted

    def build_executor(
        self, values: Mapping[str, object] | None = None, *, allow_modules: Sequence[str] = ()
    ) -> object:
        """Make the executor the recipe names, or return None if it names none."""
        from gristmill.config.build import build_executor

        if self.executor is None:
            return None
        [item] = self._substituted([self.executor], values, kind="executor")
        return build_executor(item, who=f"recipe {self.name!r}, executor", allow_modules=allow_modules)

    def _substituted(self, items: list[object], values: Mapping[str, object] | None, *, kind: str) -> list[object]:
        known = self.variable_names()
        for name in values or {}:
            if name not in known:
                uses = ", ".join(sorted(known)) or "none"
                raise ConfigError(
                    f"recipe {self.name!r}: expected one of its variables ({uses}); got {name!r}{nearest(name, known)}"
                )
        made = Substitution(values or {})
        made.add_defaults(self.variables or {}, who=f"recipe {self.name!r}")
        return [
            made.substitute(item, who=f"recipe {self.name!r}, {kind} {number}")
            for number, item in enumerate(items, start=1)
        ]


def _text(document: Mapping[str, object], key: str, who: str) -> str:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{who}: expected {key!r} to be text; got {redacted(value)!r:.200}")
    return value or ""


def _parameters(item: object) -> Mapping[str, object]:
    """A stage's parameters, in whichever form the stage is written."""
    if not isinstance(item, Mapping):
        return {}
    inner = next(iter(item.values()), None) if len(item) == 1 else item
    return inner if isinstance(inner, Mapping) else {}


def _condition(item: object) -> bool:
    """Whether a stage is wanted: its `only_if` is there and not null, false, 0 or empty; or it has none."""
    return bool(_parameters(item).get(_ONLY_IF, True))


def _unconditional(item: object) -> object:
    """The same stage without its condition."""
    parameters = _parameters(item)
    if not isinstance(item, Mapping) or _ONLY_IF not in parameters:
        return item
    left = {key: value for key, value in parameters.items() if key != _ONLY_IF}
    return left if parameters is item else {next(iter(item)): left}


def _absolute(value: object) -> object:
    if isinstance(value, str):
        return absolute(value)
    return [_absolute(each) for each in value] if isinstance(value, list | tuple) else value


def _without_variables(value: object) -> object:
    """The same with every `${` written as plain text, wherever it came from."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _without_variables(inner) for key, inner in value.items()}
    return [_without_variables(each) for each in value] if isinstance(value, list | tuple) else value
