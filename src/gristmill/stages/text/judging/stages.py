"""The stages that judge texts: `Score`, `Filter`, `ScoreFilter` and `ApplyRules`.

Each says in which steps it does so; a `Judge` takes batches through them. Neighbours of any of the four kinds share one
pass, in which everything is counted once and documents are copied once.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, TypeVar, cast

from gristmill.errors import ConfigError, StageError
from gristmill.stages.base import JoinedStages, ProcessingStage, as_list, join_names
from gristmill.stages.context import StageContext
from gristmill.stages.text.judging.document_filter import DocumentFilter, score_fields
from gristmill.stages.text.judging.judge import (
    AnyFilter,
    Check,
    Judge,
    KeptByFilter,
    ScoreOfText,
    Step,
    ValueInColumn,
    steps_of_rules,
)
from gristmill.stages.text.judging.rule import RuleSet
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch, Task

X = TypeVar("X", bound=Task)  # type: ignore[type-arg]  # a stage of any task, as in the base class
Y = TypeVar("Y", bound=Task)  # type: ignore[type-arg]
V = TypeVar("V")

Scorer = Callable[[str], object] | AnyFilter
Keeper = Callable[[object], bool] | AnyFilter


class _JudgingStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """A stage that measures documents, drops some, changes some, or does all of it. Subclasses say in which steps."""

    adds_only_declared_columns: ClassVar[bool] = True

    def steps(self) -> list[Step]:
        """What is done, in order."""
        raise NotImplementedError(f"{self.stage_name()}: a stage that judges texts must define steps")

    def process(self, task: DocumentBatch) -> DocumentBatch:
        judge = self.__dict__.get("_judge")
        if judge is None:
            judge = self.__dict__["_judge"] = Judge([self.steps()])
        return cast("Judge", judge).run(task, [self.context])

    def check_ready(self) -> None:
        for judge in self._filter_objects():
            judge.check_ready()

    def wants_node_setup(self) -> bool:
        """Whether some filter has a model or the like to look for."""
        check = DocumentFilter.model_check_or_download
        return any(type(judge).model_check_or_download is not check for judge in self._filter_objects())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        for judge in self._filter_objects():
            judge.model_check_or_download()

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        for judge in self._filter_objects():
            judge.load_model()
            judge.load_tokenizer()

    def joined_with(self, following: Sequence[ProcessingStage[X, Y]]) -> JoinedStages | None:
        stages = [self, *(stage for stage in following if isinstance(stage, _JudgingStage))]
        return _OnePass(stages) if len(stages) == len(following) + 1 and all(map(_is_plain, stages)) else None

    def _filter_objects(self) -> list[AnyFilter]:
        measures = [step.measure for step in self.steps() if isinstance(step, Check)]
        judges = [measure.judge for measure in measures if isinstance(measure, ScoreOfText | ValueInColumn)]
        return [judge for judge in judges if isinstance(judge, DocumentFilter)]


class _OnePass:
    """Several stages that judge texts as one."""

    def __init__(self, stages: Sequence[_JudgingStage]) -> None:
        self._judge = Judge([stage.steps() for stage in stages])

    def process(
        self, task: Task[object], contexts: Sequence[StageContext], enter: Callable[[int, int], None]
    ) -> Task[object]:
        if not isinstance(task, DocumentBatch):
            raise StageError(f"filters: expected a DocumentBatch; got {type(task).__name__}")
        return cast("Task[object]", self._judge.run(task, contexts, enter))


def _is_plain(stage: _JudgingStage) -> bool:
    """Whether a stage does what its steps say: a user's subclass may do something else."""
    return type(stage).process is _JudgingStage.process and type(stage).process_batch is ProcessingStage.process_batch


def _listed(given: V | list[V]) -> list[V]:
    return list(given) if isinstance(given, list | tuple) else [given]


@dataclass
class Score(_JudgingStage):
    """Add a column of scores for each filter or function of a text. A null text is scored as the empty text."""

    score_fn: Scorer | list[Scorer]
    score_field: str | list[str]
    text_field: str | list[str] = "text"
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        for scorer in self._scorers():
            if not callable(scorer) and not isinstance(scorer, DocumentFilter):
                raise ConfigError(f"Score: expected score_fn to be a DocumentFilter or a function; got {scorer!r}")
        fields = self._score_fields()
        if len(fields) != len(self._scorers()) or len(set(fields)) != len(fields):
            raise ConfigError(
                f"Score: expected a score_field of its own for each of {len(self._scorers())} filters; "
                f"got {self.score_field!r}"
            )
        self._text_fields()
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return f"score_{join_names(self._scorers())}"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self._text_fields()))

    def outputs(self) -> tuple[list[str], list[str]]:
        fields = zip(self._scorers(), self._score_fields(), strict=True)
        return ["data"], [name for scorer, field in fields for name in score_fields(scorer, field)]

    def steps(self) -> list[Step]:
        each = zip(self._scorers(), self._text_fields(), self._score_fields(), strict=True)
        return [Check(ScoreOfText(judge), text, adds=score) for judge, text, score in each]

    def _scorers(self) -> list[Scorer]:
        return _listed(self.score_fn)

    def _score_fields(self) -> list[str]:
        return _listed(self.score_field)

    def _text_fields(self) -> list[str]:
        return as_list(self.text_field, len(self._scorers()), who="Score: text_field")


@dataclass
class Filter(_JudgingStage):
    """Keep the documents whose value in `filter_field` every filter or function keeps.

    A function is given None where the value is missing; a filter object never keeps such a document.
    """

    filter_fn: Keeper | list[Keeper]
    filter_field: str | list[str]
    invert: bool | list[bool] = False
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        for judge in self._judges():
            if not callable(judge) and not isinstance(judge, DocumentFilter):
                raise ConfigError(f"Filter: expected filter_fn to be a DocumentFilter or a function; got {judge!r}")
        self._fields()
        self._inverts()
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return f"filter_{'_and_'.join(dict.fromkeys(self._fields()))}"

    def inputs(self) -> tuple[list[str], list[str]]:
        fields = zip(self._judges(), self._fields(), strict=True)
        return ["data"], list(dict.fromkeys(name for judge, field in fields for name in score_fields(judge, field)))

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def steps(self) -> list[Step]:
        each = zip(self._judges(), self._fields(), self._inverts(), strict=True)
        return [Check(ValueInColumn(judge), field, KeptByFilter(judge, invert)) for judge, field, invert in each]

    def _judges(self) -> list[Keeper]:
        return _listed(self.filter_fn)

    def _fields(self) -> list[str]:
        fields, number = _listed(self.filter_field), len(self._judges())
        if len(fields) != number or not all(isinstance(field, str) for field in fields):
            of_each = "a filter_field" if number == 1 else f"a list of {number} names, one for each filter"
            raise ConfigError(f"Filter: expected {of_each}; got {self.filter_field!r}")
        return fields

    def _inverts(self) -> list[bool]:
        return as_list(self.invert, len(self._judges()), who="Filter: invert")


@dataclass
class ScoreFilter(_JudgingStage):
    """Keep the documents every filter keeps; with `invert`, those it would drop.

    Filters run in the order given, each on what the ones before it left, so a document is dropped for the first reason
    that applies. `score_field` names a column to keep the scores in; the lists are as long as the list of filters.
    """

    filter_obj: AnyFilter | list[AnyFilter]
    text_field: str | list[str] = "text"
    score_field: str | list[str | None] | None = None
    invert: bool | list[bool] = False
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        for judge in self._filters():
            if not isinstance(judge, DocumentFilter):
                raise ConfigError(f"ScoreFilter: expected filter_obj to be a DocumentFilter; got {judge!r}")
        if not self._filters():
            raise ConfigError("ScoreFilter: expected at least one filter; got an empty list")
        self.name = self.name or self.default_name()
        fields = [field for field in self._score_fields() if field is not None]
        if len(set(fields)) != len(fields):
            raise ConfigError(
                f"{self.name}: expected a different score_field for each filter; got {self.score_field!r}"
            )
        self._text_fields()
        self._inverts()

    def default_name(self) -> str:
        return join_names(self._filters())

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(dict.fromkeys(self._text_fields()))

    def outputs(self) -> tuple[list[str], list[str]]:
        fields = zip(self._filters(), self._score_fields(), strict=True)
        return ["data"], [name for f, field in fields if field is not None for name in score_fields(f, field)]

    def steps(self) -> list[Step]:
        each = zip(self.filters(), self._score_fields(), strict=True)
        return [Check(ScoreOfText(f), text, KeptByFilter(f, invert), score) for (f, text, invert), score in each]

    def filters(self) -> list[tuple[AnyFilter, str, bool]]:
        """Return each filter, the column it reads, and whether it keeps what it would otherwise drop."""
        return list(zip(self._filters(), self._text_fields(), self._inverts(), strict=True))

    def _filters(self) -> list[AnyFilter]:
        return _listed(self.filter_obj)

    def _text_fields(self) -> list[str]:
        return as_list(self.text_field, len(self._filters()), who="ScoreFilter: text_field")

    def _score_fields(self) -> list[str | None]:
        if isinstance(self.score_field, str) and len(self._filters()) > 1:
            number = len(self._filters())
            raise ConfigError(f"{self.name}: expected score_field to be a list of {number}; got {self.score_field!r}")
        return cast("list[str | None]", as_list(self.score_field, len(self._filters()), who="ScoreFilter: score_field"))

    def _inverts(self) -> list[bool]:
        return as_list(self.invert, len(self._filters()), who="ScoreFilter: invert")


@dataclass
class ApplyRules(_JudgingStage):
    """Apply rule sets in order, each to what the ones before it left, and clean the text where a set does.

    A document is dropped for the first rule it breaks, with that rule's reason, the value measured and the condition it
    did not meet. Sets next to each other share what they measure: tokens are made once for all of them.
    """

    rules: RuleSet | list[RuleSet]
    text_field: str = "text"
    _: KW_ONLY
    name: str = ""

    def __post_init__(self) -> None:
        if not self._sets():
            raise ConfigError("ApplyRules: expected at least one rule set; got an empty list")
        for rules in self._sets():
            if not isinstance(rules, RuleSet):
                raise ConfigError(f"ApplyRules: expected rules to be a RuleSet; got {rules!r}")
        self.name = self.name or self.default_name()

    def default_name(self) -> str:
        return join_names(self._sets())

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], []

    def steps(self) -> list[Step]:
        return [step for rules in self._sets() for step in steps_of_rules(rules, self.text_field)]

    def check_ready(self) -> None:
        super().check_ready()
        for rules in self._sets():
            rules.check_ready()

    def _sets(self) -> list[RuleSet]:
        return _listed(self.rules)
