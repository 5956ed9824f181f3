"""`ProcessingStage` and `CompositeStage`: what users subclass.

A stage transforms tasks one at a time (`process`) or several together (`process_batch`). It says what it needs
(`resources`, `batch_size`), which columns it reads and adds, and never where or how often it runs. It must give the
same outputs for the same input: a worker may die, and the task is then done again elsewhere.
"""

import copy
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, runtime_checkable

from gristmill.errors import ConfigError, StageError, nearest
from gristmill.stages.context import CURRENT, StageContext
from gristmill.stages.registry import get_stage_class, register
from gristmill.stages.resources import Resources
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import Task

# What filters, modifiers and functions are called in stage names, reasons and metrics, and `as_list` for several.

T = TypeVar("T")

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@runtime_checkable
class Named(Protocol):
    """A filter or a modifier."""

    @property
    def name(self) -> str: ...


def snake_case(class_name: str) -> str:
    """Return a class's name in lower case with underscores.

    >>> snake_case("XMLHeader")
    'xml_header'
    """
    return _WORD_START.sub("_", class_name).lower()


def name_of(thing: object) -> str:
    """A filter's or modifier's name, or a function's."""
    if isinstance(thing, Named):
        return thing.name
    name = getattr(thing, "__name__", type(thing).__name__)
    return "function" if name == "<lambda>" else str(name)


def join_names(things: Sequence[object]) -> str:
    """One name for several: the first one's, and how many follow."""
    first = name_of(things[0])
    return first if len(things) == 1 else f"{first}_and_{len(things) - 1}_more"


def as_list(value: T | Sequence[T], length: int, *, who: str, what: str = "filters") -> list[T]:
    """Return one value for each of `length` things: a single value counts for all of them."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value] * length
    if len(value) != length:
        raise ConfigError(f"{who}: expected one value, or one for each of {length} {what}; got {list(value)!r}")
    return list(value)


__all__ = ["AnyStage", "AnyTask", "CompositeStage", "ProcessingStage", "get_stage_class"]

X = TypeVar("X", bound=Task)  # type: ignore[type-arg]  # a stage of any task; Task[Any] would forbid user subclasses
Y = TypeVar("Y", bound=Task)  # type: ignore[type-arg]

AnyTask = Task[Any]
Columns = tuple[list[str], list[str]]  # task attributes, data columns
Inputs = Columns | Mapping[type[Task], Columns]  # type: ignore[type-arg]  # of any task
_UNSET = object()
SIZED_BATCH = 64  # tasks of a call that is bounded by items or bytes, where no number is given


class _DefaultFrom:
    """A property of a subclass as a default: what `with_` sets on an instance takes precedence."""

    def __init__(self, compute: Callable[..., object]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, stage: object, owner: type) -> object:
        return self if stage is None else self.compute(stage)


def _changed_by_with(own: Callable[[Any], object], key: str) -> Callable[[Any], object]:
    """Wrap a subclass's method so that what `with_` says is not lost: a mapping is added to, a number replaced."""

    @functools.wraps(own)
    def changed(stage: Any) -> object:
        given = stage.__dict__.get(key, _UNSET)
        if given is _UNSET:
            return own(stage)
        return {**cast("Mapping[str, object]", own(stage)), **given} if isinstance(given, Mapping) else given

    return changed


class ProcessingStage(Generic[X, Y]):
    """One step of a pipeline.

    Subclass it and write `process`. Class attributes or dataclass fields set the defaults:

    `name`           unique in a pipeline; the class name if not given
    `resources`      what one worker occupies
    `batch_size`     how many tasks `process_batch` gets at most
    `batch_items`, `batch_bytes`   bound the items, or the bytes, of the tasks of one `process_batch` together; one task
                     is always taken. `batch_size` is then the most tasks, 64 if it is not set
    `lanes`          calls a worker has under way at once: for a stage whose time is spent waiting, for a server most
                     often. They share `self`. `process` may be `async def`; else they run in threads
    `rows_are_independent`   False if a document's result depends on the others in its batch: such a batch is never
                     split to isolate a bad document
    `adds_only_declared_columns`   True if `outputs()` lists every column the stage may add, so that a misspelt column
                     further down is found before the run
    `makes_new_documents`    True if the documents that come out are not those that went in (rows about them, for
                     instance), so that nothing of a single document carries over
    `makes_small_tasks`      True if one task becomes many small ones: files written of them are joined, where possible
    `fusible`        False to keep the stage in worker processes of its own
    `fusible_from`   for a first stage: the least number of source partitions at which it shares a process with the
                     stages behind it. With fewer, other processes help with what it reads
    `fuses_to_the_end`   True if it shares a process with the stages behind it only where all of them up to a writer do.
                     For a stage that streams: its tasks count only when the last of them is written, so they need not
                     come out the same again if the worker dies half-way
    `deadline_s`     a call that takes longer is ended, and the document that caused it is quarantined. An `async`
                     call is cancelled; any other is ended with its process. If a stage streams, that is for one output,
                     and waiting until the output is taken does not count
    `expected_s`     seconds a task is expected to take one worker: a guess to share out workers by before it is known
    `may_run_twice`  True if a task that takes suspiciously long may be given to a second worker as well, when one is
                     idle at the end of a run; the first result counts and the other worker is stopped
    `transient_errors`   exception types whose cause passes by itself (a server that was down): tried again later
    """

    name: str = ""
    resources: Resources = Resources(cpus=1.0)
    batch_size: int | None = 1
    batch_items: int | None = None
    batch_bytes: int | None = None
    lanes: int = 1
    runtime_env: ClassVar[Mapping[str, object] | None] = None

    rows_are_independent: ClassVar[bool] = True
    adds_only_declared_columns: ClassVar[bool] = False
    makes_new_documents: ClassVar[bool] = False
    makes_small_tasks: ClassVar[bool] = False
    fusible: ClassVar[bool] = True
    fusible_from: ClassVar[int] = 0
    fuses_to_the_end: ClassVar[bool] = False
    is_exchange: ClassVar[bool] = False  # stages behind it start when all before it is done: see stages/exchange
    searches: ClassVar[bool] = (
        False  # before its first task it looks at all documents ahead of it: see runs/searches.py
    )
    can_read_again: ClassVar[bool] = False  # its documents can be had again cheaply: they need not be stored
    deadline_s: ClassVar[float | None] = None
    expected_s: ClassVar[float | None] = None
    may_run_twice: ClassVar[bool] = False
    transient_errors: ClassVar[tuple[type[BaseException], ...]] = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for key in ("name", "resources", "batch_size", "lanes"):
            given = cls.__dict__.get(key)
            if isinstance(given, property) and given.fget is not None:
                setattr(cls, key, _DefaultFrom(given.fget))
        for key in ("ray_stage_spec", "xenna_stage_spec", "num_workers"):
            if key in cls.__dict__:
                setattr(cls, key, _changed_by_with(cls.__dict__[key], f"_{key}"))
        if not cls.__name__.startswith("_"):
            register(cls)

    # What a stage does

    def process(self, task: X) -> Y | list[Y] | Iterator[Y] | None:
        """Transform one task: return one, several, or none. An iterator is streamed: its tasks leave as they come."""
        raise NotImplementedError(f"{self.stage_name()}: a stage must define process or process_batch")

    def process_batch(self, tasks: Sequence[X]) -> Sequence[Y | list[Y] | Iterator[Y] | None]:
        """Transform several tasks; element i of the result is what `process(tasks[i])` would return."""
        return [self.process(task) for task in tasks]

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        """Run once per machine before any worker of the stage starts there (fetch a model, build a cache)."""

    def wants_node_setup(self) -> bool:
        """Whether `setup_on_node` has anything to do; if no stage says so, a run starts without that step."""
        return type(self).setup_on_node is not ProcessingStage.setup_on_node

    def before_fork(self) -> None:
        """Run in the process that workers are forked from, where there is one: import what each would have to import.

        It must start no thread, and nothing may depend on it.
        """

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        """Run once in every worker before its first task (load the model)."""

    def teardown(self) -> None:
        """Run once in every worker after its last task."""

    # What a stage says about itself

    def inputs(self) -> Inputs:
        """Return (task attributes, columns) the stage reads; by type of task, if that differs."""
        return [], []

    def outputs(self) -> Columns:
        """Return (task attributes, columns) the stage adds."""
        return [], []

    def new_columns(self) -> list[str]:
        """Return columns the stage adds and refuses to replace: one that already exists is found before the run."""
        return []

    def known_values(self) -> Mapping[str, Sequence[str]]:
        """Return all values the stage may put into a column it adds, where they are few and known: {"level": [...]}."""
        return {}

    def named_values(self) -> Mapping[str, Sequence[str]]:
        """Return the values the parameters name, by column: one the column cannot have is found before the run."""
        return {}

    def input_spec_for_task(self, task: AnyTask) -> Columns:
        """Return (task attributes, columns) the stage reads of this task."""
        said = self.inputs()
        if not isinstance(said, Mapping):
            return said
        return next((said[kind] for kind in type(task).__mro__ if kind in said), ([], []))

    def validate_input(self, task: AnyTask) -> bool:
        """Whether a task has all that the stage reads."""
        attributes, columns = self.input_spec_for_task(task)
        has_column = getattr(task, "has_column", lambda _: True)
        return all(hasattr(task, name) for name in attributes) and all(map(has_column, columns))

    def is_source_stage(self) -> bool:
        """Whether it makes tasks from nothing."""
        return type(self).partitions is not ProcessingStage.partitions

    def is_sink_stage(self) -> bool:
        """Whether it writes files."""
        return self.output_directory() is not None

    def is_fanout_stage(self) -> bool:
        """Whether `process` says that it returns several tasks."""
        said = inspect.signature(type(self).process).return_annotation
        return type(self).process is not ProcessingStage.process and "list[" in str(said).lower()

    def num_workers(self) -> int | None:
        """Return a fixed number of workers, or None to let the engine decide."""
        return cast("int | None", self.__dict__.get("_num_workers"))

    def partitions(self) -> Sequence[Y] | None:
        """Return the source tasks, if this stage makes them from nothing; None for every other stage.

        Called once, in the driver, while the plan is made: whatever is wrong with the inputs is reported there.
        """
        return None

    def columns(self) -> list[str] | None:
        """Return all columns the stage's output has, where it can know them without work (a reader); else None."""
        return None

    def check_ready(self) -> None:
        """Raise ConfigError if something the stage will need is missing: a model, a package, a file.

        Called in the driver while the plan is made, so that users learn of it before workers start.
        """

    def plan_note(self) -> str:
        """Return what `gristmill plan` should say about the stage beside its name; for most there is nothing."""
        return ""

    def resources_where(self, *, has_gpu: bool) -> Resources:
        """Return what a worker occupies on machines with a GPU, or without one. Asked while the plan is made."""
        del has_gpu
        return self.resources

    def done_by(self, before: "Sequence[ProcessingStage[Any, Any]]") -> "Sequence[ProcessingStage[Any, Any]] | None":
        """Return the stages before it, changed so that they do its work too, or None if it has to be done here.

        For work that would be done twice, such as cutting the same texts into the same tokens for two models.
        """
        del before
        return None

    def make_paths_absolute(self) -> None:
        """Turn paths the stage will use into absolute ones, in the copy a plan is made of.

        Then a stage that changes the working directory does no harm, and a run can be continued from another one.
        """

    def input_directories(self) -> list[str]:
        """Return the directories the stage reads everything in, if it lists any."""
        return []

    def output_directory(self) -> str | None:
        """Return the directory the stage publishes files in, or None if it writes none."""
        return None

    def output_options(self) -> Mapping[str, object]:
        """Return what is needed to reach the output directory if it is on a store: `storage_options`."""
        return {}

    def prepare_output(self, *, resuming: bool) -> list[str]:
        """Make the output directory ready when a run starts; return what was removed, to be told to the user."""
        return []

    def streams(self, task: X) -> bool:
        """Whether `process(task)` returns an iterator of many tasks, as for a large file that cannot be split."""
        return False

    def joined_with(self, following: "Sequence[ProcessingStage[X, Y]]") -> "JoinedStages | None":
        """Return what takes a task through this stage and the following ones in one pass over the data, or None.

        For stages that are cheaper together, such as filters that count the same things. A group asks for the longest
        run of its stages that can be joined; each keeps its name, its counts and its reports.
        """
        return None

    def ray_stage_spec(self) -> dict[str, object]:
        return dict(self.__dict__.get("_ray_stage_spec") or {})

    def xenna_stage_spec(self) -> dict[str, object]:
        return dict(self.__dict__.get("_xenna_stage_spec") or {})

    def get_config(self) -> dict[str, object]:
        """Return the parameters that decide what the stage does; they are part of the plan's fingerprint."""
        config = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        # A private attribute that a constructor parameter set (self._n = n) decides as much as a public one does.
        parameters = inspect.signature(type(self).__init__).parameters
        config |= {k: vars(self)[f"_{k}"] for k in parameters if f"_{k}" in vars(self)}
        return config

    # What gristmill does with it

    def tasks_a_call(self) -> int:
        """The most tasks `process_batch` gets."""
        size = self.batch_size or 1
        bounded = self.batch_items is not None or self.batch_bytes is not None
        return SIZED_BATCH if bounded and size == 1 else size

    def stage_name(self) -> str:
        """The name in plans, metrics and messages."""
        return self.name or type(self).__name__

    def default_name(self) -> str:
        """The name if none was chosen; if a pipeline has several such stages, they are numbered."""
        given = inspect.getattr_static(type(self), "name")
        return str(given.compute(self)) if isinstance(given, _DefaultFrom) else str(given)

    @property
    def is_async(self) -> bool:
        """Whether its calls run on the worker's event loop."""
        methods = (type(self).process, type(self).process_batch)
        return any(inspect.iscoroutinefunction(method) for method in methods)

    @property
    def context(self) -> StageContext:
        """Where the current call reports dropped and quarantined documents."""
        current = CURRENT.get()
        if current is not None:
            return current
        if self.__dict__.get("_overlaps"):
            raise StageError(
                f"{self.stage_name()}: expected its context to be asked for in the call; got a thread of its own, "
                "where it is unknown whose call it is. Start it with contextvars.copy_context().run"
            )
        context = self.__dict__.get("_context")
        if context is None:
            context = self.__dict__["_context"] = StageContext()
        return cast("StageContext", context)

    @context.setter
    def context(self, context: StageContext) -> None:
        self.__dict__["_context"] = context

    def with_(
        self,
        name: str | None = None,
        resources: Resources | None = None,
        batch_size: int | None = None,
        runtime_env: Mapping[str, object] | None = None,
        ray_stage_spec: Mapping[str, object] | None = None,
        xenna_stage_spec: Mapping[str, object] | None = None,
        num_workers: object = _UNSET,
        lanes: int | None = None,
        batch_items: int | None = None,
        batch_bytes: int | None = None,
    ) -> "ProcessingStage[X, Y]":
        """Return a copy with some properties replaced; the original is unchanged."""
        changed = copy.copy(self)
        changed.__dict__.pop("_context", None)
        given = {
            "name": name,
            "resources": resources,
            "batch_size": batch_size,
            "batch_items": batch_items,
            "batch_bytes": batch_bytes,
            "lanes": lanes,
            "runtime_env": runtime_env,
            "_ray_stage_spec": ray_stage_spec,
            "_xenna_stage_spec": xenna_stage_spec,
        }
        # Through __dict__, not setattr: a property or a frozen dataclass of the user's must not get in the way.
        changed.__dict__.update({key: value for key, value in given.items() if value is not None})
        if num_workers is not _UNSET:
            changed.__dict__["_num_workers"] = num_workers
        return changed

    def __call__(self, task: X) -> Y | list[Y] | Iterator[Y] | None:
        """Run the stage on one task, outside a pipeline."""
        return self.process(task)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.stage_name()!r})"


AnyStage = ProcessingStage[Any, Any]


def columns_read(stage: AnyStage) -> list[str]:
    """The columns a stage reads, whatever the type of its tasks."""
    said = stage.inputs()
    if not isinstance(said, Mapping):
        return said[1]
    kinds = [columns for _, columns in said.values()]
    return [name for name in (kinds[0] if kinds else []) if all(name in columns for columns in kinds)]


class JoinedStages(Protocol):
    """Several neighbouring stages that take a task in one pass, each of which makes one task of one."""

    def process(
        self, task: Task[object], contexts: Sequence[StageContext], enter: Callable[[int, int], None]
    ) -> Task[object]:
        """Do what the stages would do one after another.

        Stage k reports in `contexts[k]`. `enter(k, n)` is called when it is the turn of stage k, with the number of
        documents that have come so far.
        """
        ...


class CompositeStage(ProcessingStage[X, Y]):
    """A stage that is sugar for several; they may be composites themselves."""

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        """Return the stages this one stands for, in order."""
        raise NotImplementedError(f"{self.stage_name()}: a composite stage must define decompose")

    def process(self, task: X) -> Y | list[Y] | Iterator[Y] | None:
        raise ConfigError(f"{self.stage_name()}: a composite stage is decomposed before it runs and processes nothing")

    def with_(  # type: ignore[override]  # users know this second form for composites: one set of changes per inner stage
        self, stage_with_dict: Mapping[str, Mapping[str, object]] | None = None, **changes: object
    ) -> "CompositeStage[X, Y]":
        """Return a copy whose inner stages are changed: `with_({"jsonl_reader": {"batch_size": 8}})`."""
        if stage_with_dict is None:
            return cast("CompositeStage[X, Y]", super().with_(**changes))  # type: ignore[arg-type]
        changed = copy.copy(self)
        changed.__dict__["_stage_with"] = {**self.__dict__.get("_stage_with", {}), **stage_with_dict}
        return changed

    def decompose_and_apply_with(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        """Decompose, then apply what `with_` asked for to the inner stages."""
        stages = self.decompose()
        wanted: dict[str, Mapping[str, object]] = self.__dict__.get("_stage_with", {})
        names = [stage.stage_name() for stage in stages]
        for name in wanted:
            if name not in names:
                raise ConfigError(
                    f"{self.stage_name()}.with_: expected one of {names}; got {name!r}{nearest(name, names)}"
                )
        return [
            stage.with_(**wanted[stage.stage_name()]) if stage.stage_name() in wanted else stage  # type: ignore[arg-type]
            for stage in stages
        ]

    def get_description(self) -> str:
        """What the composite does, for `Pipeline.describe`."""
        return (inspect.getdoc(type(self)) or "").partition("\n")[0]
