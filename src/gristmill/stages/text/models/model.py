"""`ModelStage`: tokens to a model's answers, in processes of their own.

Batches are made inside one task and never across tasks, so which documents share one depends on the source partition
alone: by length, up to a number of rows and of padded tokens. A batch for which there is no memory is halved and tried
again; what that teaches is passed to workers that start later. A document that does not fit even alone is quarantined.
Every other document comes out, in its place, with null where there was nothing to ask about.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gristmill.errors import ConfigError, StageError
from gristmill.models.runtime import Head, ModelSource, Precision, RuntimeName
from gristmill.models.weights import keep_token
from gristmill.stages.base import snake_case
from gristmill.stages.context import Quarantined
from gristmill.stages.resources import Resources
from gristmill.stages.text.models.files import (
    NOT_CONTENT,
    check_positive,
    download,
    download_note,
    is_from_hub,
    make_absolute,
    model_ready,
)
from gristmill.stages.text.models.tokenizer import PaddingSide, TokenReader
from gristmill.stages.text.models.tokens import (
    ATTENTION_MASK,
    INPUT_IDS,
    TokenLists,
    cut_to,
    from_column,
    to_column,
    to_mask_column,
    without_padding,
)
from gristmill.stages.worker_info import KILLED_FOR_MEMORY, NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import to_bitmap

if TYPE_CHECKING:
    from gristmill.models.batch_runner import BatchAnswer
    from gristmill.models.memory_limits import MemoryLimits
    from gristmill.models.runtime import ModelRuntime

ON_GPU, ON_CPU = Resources(cpus=1.0, gpus=1.0), Resources(cpus=1.0)
# Counted where batches were halved, and so in the report: a batch's other documents move the last bits of a score.
MAY_DIFFER = "documents whose scores may differ in the 6th decimal"

Values = NDArray[np.generic]
log = logging.getLogger(__name__)


@dataclass
class ModelStage(TokenReader):
    """Ask a model about the tokens of each document. Subclasses say which columns its answers become.

    `model_inference_batch_size` and `max_batch_tokens` bound a batch: rows, and rows times the longest of them. By
    default that is 1,024 tokens on a CPU and 65,536 on an accelerator. With `has_seq_order=False` documents are not
    sorted by length. `runtime` is "onnx" or "torch"; by default an .onnx file decides. `autocast` uses 16 bits on an
    accelerator and changes nothing on a CPU. A worker takes a GPU if the executor has one. `unpack_inference_batch` is
    a name users know, and changes nothing.
    """

    model_identifier: str
    cache_dir: str | None = None
    hf_token: str | None = None
    model_inference_batch_size: int = 256
    has_seq_order: bool = True
    padding_side: PaddingSide = "right"
    max_seq_length: int | None = None
    unpack_inference_batch: bool = False
    autocast: bool = True
    _: KW_ONLY
    head: Head = "sequence"
    device: str = "auto"
    runtime: RuntimeName | None = None
    max_batch_tokens: int | None = None
    offline: bool | None = None
    tokens_field: str = INPUT_IDS
    keep_tokens: bool = False
    use_existing_tokens: bool = False
    truncated_from: str | None = None
    truncated_field: str | None = None
    tokenizer_identifier: str | None = None
    base_identifier: str | None = None
    adapter_identifier: str | None = None
    allow_pickle: bool = False
    allow_batch_dependent: bool = False
    owner: str = ""
    who: str = ""
    name: str = ""

    fusible: ClassVar[bool] = False  # tokenizing, reading or writing would keep its worker from the model
    adds_only_declared_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.name = self.name or self.default_name()
        check_positive(self, ("model_inference_batch_size", "max_batch_tokens", "max_seq_length"))
        if self.padding_side not in ("left", "right"):
            raise ConfigError(f'{self.name}: expected padding_side "left" or "right"; got {self.padding_side!r}')
        keep_token(self.hf_token)
        self.hf_token = None
        self._revision: str | None = None
        self._note = ""
        self._runtime: ModelRuntime | None = None
        self._limits: MemoryLimits | None = None
        self._hands_on = False

    def default_name(self) -> str:
        return f"{self.owner}_model" if self.owner else snake_case(type(self).__name__.strip("_"))

    # What a subclass says

    def answer_types(self) -> dict[str, pa.DataType]:
        """Return the columns that answers become, with their types."""
        raise NotImplementedError(f"{self.stage_name()}: a ModelStage must define answer_types and answer_columns")

    def process_model_output(self, answer: "BatchAnswer") -> tuple[Values, ...]:
        """Return what is kept of the answer for one batch: arrays with an entry for each of its rows."""
        return cast("tuple[Values, ...]", answer.outputs)

    def answer_columns(self, values: tuple[Values, ...]) -> Mapping[str, pa.Array]:
        """Return the columns of all documents that were answered, from what was kept of their batches, in order."""
        raise NotImplementedError(f"{self.stage_name()}: a ModelStage must define answer_types and answer_columns")

    # What it reads and adds

    def inputs(self) -> tuple[list[str], list[str]]:
        if self.use_existing_tokens:
            return ["data"], [INPUT_IDS, ATTENTION_MASK]
        return ["data"], [self.tokens_field, *([self.truncated_from] if self.truncated_from else [])]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [*self.answer_types(), *self._more_columns()]

    def new_columns(self) -> list[str]:
        kept = set() if self.tokens_field != INPUT_IDS else {INPUT_IDS}
        return [name for name in self.outputs()[1] if name not in kept]

    def _more_columns(self) -> list[str]:
        kept = [INPUT_IDS, ATTENTION_MASK] if self.keep_tokens and not self.use_existing_tokens else []
        return [*([self.truncated_field] if self.truncated_field else []), *kept]

    def handing_tokens_on(self) -> Self:
        changed = cast("Self", self.with_())
        changed._hands_on = True
        return changed

    # Before a run

    def source(self) -> ModelSource:
        """Which model it is, and what may be done to get it."""
        return ModelSource(
            self.model_identifier,
            self.cache_dir,
            self._revision,
            offline=self.offline,
            runtime=self.runtime,
            allow_pickle=self.allow_pickle,
            allow_batch_dependent=self.allow_batch_dependent,
            tokenizer_identifier=self.tokenizer_identifier,
            base_identifier=self.base_identifier,
            adapter_identifier=self.adapter_identifier,
            who=self.who or self.name,
        )

    def check_ready(self) -> None:
        found = model_ready(self.source(), self.max_seq_length)
        self._revision, self._note = found.revision, download_note(found, self.source())

    def plan_note(self) -> str:
        return self._note

    def get_config(self) -> dict[str, object]:
        given = {name: value for name, value in super().get_config().items() if name not in NOT_CONTENT}
        return {**given, "revision": self._revision}

    def resources_where(self, *, has_gpu: bool) -> Resources:
        chosen = self.__dict__.get("resources")
        found = chosen or (ON_GPU if has_gpu and self.device != "cpu" else ON_CPU)
        if self.autocast and not found.requires_gpu and self.device in ("auto", "cpu"):
            # Here, while planning: what workers log is not read. Not in the plan: autocast is on by default.
            log.debug("%s: autocast has no effect on a CPU", self.name)
        return found

    def make_paths_absolute(self) -> None:
        make_absolute(self)

    def wants_node_setup(self) -> bool:
        return is_from_hub(self.source())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        download(self.source())

    # In a worker

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        from gristmill.models.batch_runner import LEARNT_ROWS, LEARNT_TOKENS
        from gristmill.models.device import default_batch_tokens
        from gristmill.models.memory_limits import MemoryLimits

        self._runtime = self.open_model()
        most_tokens = self.max_batch_tokens or default_batch_tokens(self._runtime.device)
        self._limits = MemoryLimits(self.model_inference_batch_size, most_tokens)
        learnt = {} if worker_metadata is None else worker_metadata.learnt
        self._limits.begin_at(
            rows=learnt.get(LEARNT_ROWS),
            tokens=learnt.get(LEARNT_TOKENS),
            deaths=learnt.get(KILLED_FOR_MEMORY, 0),
            now=time.monotonic(),
        )

    def open_model(self) -> "ModelRuntime":
        """Load the model."""
        from gristmill.models.runtime import open_runtime

        threads = max(1, int(self.resources.cpus))
        precision: Precision = "auto" if self.autocast else "float32"
        given = self.__dict__.get("resources")  # by the plan; a stage that is called by hand has been given nothing
        was_given_none = given is not None and not given.requires_gpu
        # A worker on CPUs sees the machine's GPUs all the same. They belong to the workers that asked for them.
        device = "cpu" if self.device == "auto" and was_given_none else self.device
        return open_runtime(self.source(), device=device, threads=threads, precision=precision, head=self.head)

    def teardown(self) -> None:
        if self._runtime is not None:
            self._runtime.close()
        self._runtime = None

    def process(self, task: DocumentBatch) -> DocumentBatch:
        if self._runtime is None:
            self.setup()  # called by hand, outside a run
        tokens = self._tokens(task)
        answered, values, too_large = self._ask(task, tokens)
        made = self._with_answers(task, answered, values)
        if self.truncated_field is not None and self.truncated_from is not None:
            cut = task.column(self.truncated_from).combine_chunks()
            made = made.with_column(self.truncated_field, _spread(cut.filter(_mask(answered)), answered))
        if self.keep_tokens and not self.use_existing_tokens:
            made = made.with_column(INPUT_IDS, to_column(tokens)).with_column(ATTENTION_MASK, to_mask_column(tokens))
        made = made.drop_columns(self._used_up())
        if not len(too_large):
            return made
        self._put_aside(task.drop_columns(self._used_up()), tokens, too_large)
        kept = np.ones(task.num_items, np.bool_)
        kept[too_large] = False
        return made.filter(_mask(kept))

    def _used_up(self) -> list[str]:
        """Columns between tokenizer and model that no later stage reads."""
        if self._hands_on or self.use_existing_tokens:
            return []
        keeps = self.keep_tokens and self.tokens_field == INPUT_IDS
        return [*([] if keeps else [self.tokens_field]), *([self.truncated_from] if self.truncated_from else [])]

    def _tokens(self, task: DocumentBatch) -> TokenLists:
        if not self.use_existing_tokens:
            return from_column(task.column(self.tokens_field), who=self.name, name=self.tokens_field)
        ids = from_column(task.column(INPUT_IDS), who=self.name)
        mask = from_column(task.column(ATTENTION_MASK), who=self.name, name=ATTENTION_MASK)
        most = self.max_seq_length or cast("ModelRuntime", self._runtime).max_length
        return cut_to(without_padding(ids, mask, who=self.name), most)

    def _ask(
        self, task: DocumentBatch, tokens: TokenLists
    ) -> tuple[NDArray[np.bool_], tuple[Values, ...] | None, NDArray[np.int64]]:
        """Return which documents were answered, what was kept of the answers, and which have no room in memory."""
        from gristmill.models.batch_runner import run_batches

        runtime, limits = cast("ModelRuntime", self._runtime), cast("MemoryLimits", self._limits)
        rows: list[NDArray[np.int64]] = []
        kept: list[tuple[Values, ...]] = []
        too_large: list[int] = []
        failures = before = limits.failures
        answers = run_batches(
            runtime, tokens.ids, tokens.offsets, limits, sort=self.has_seq_order, side=self.padding_side
        )
        for answer in answers:
            if limits.failures > failures:
                self._tell(task, limits, limits.failures - failures)
                failures = limits.failures
            if answer.outputs is None:
                too_large += answer.rows.tolist()
                continue
            self._check(answer)
            rows.append(answer.rows)
            kept.append(self.process_model_output(answer))
        answered = np.zeros(task.num_items, np.bool_)
        if not rows:
            return answered, None, np.array(too_large, np.int64)
        places = np.concatenate(rows)
        answered[places] = True
        order = np.argsort(places, kind="stable")
        if limits.failures > before:
            self.context.count(MAY_DIFFER, len(places), of=task)
        values = tuple(np.concatenate(parts)[order] for parts in zip(*kept, strict=True))
        return answered, values, np.array(too_large, np.int64)

    def _tell(self, task: DocumentBatch, limits: "MemoryLimits", number: int) -> None:
        from gristmill.models.batch_runner import LEARNT_ROWS, LEARNT_TOKENS, OOM_COUNT

        self.context.count(OOM_COUNT, number, of=task)
        self.context.learn(LEARNT_ROWS, limits.rows)
        self.context.learn(LEARNT_TOKENS, limits.tokens)

    def _check(self, answer: "BatchAnswer") -> None:
        """Raise StageError for answers that are not numbers: the batch is then taken apart, and the culprit found."""
        for output in answer.outputs or ():
            if not np.isfinite(output).all():
                bad = np.flatnonzero(~np.isfinite(output).reshape(len(answer.rows), -1).all(axis=1))
                raise StageError(
                    f"{self.name}: expected numbers from the model; got NaN or infinity for {len(bad)} of "
                    f"{len(answer.rows)} documents of a batch, the first in row {int(answer.rows[bad[0]])}"
                )

    def _with_answers(
        self, task: DocumentBatch, answered: NDArray[np.bool_], values: tuple[Values, ...] | None
    ) -> DocumentBatch:
        columns = {} if values is None else self.answer_columns(values)
        made = task
        for name, kind in self.answer_types().items():
            column = pa.nulls(task.num_items, kind) if values is None else _spread(columns[name], answered)
            made = made.with_column(name, column)
        return made

    def _put_aside(self, task: DocumentBatch, tokens: TokenLists, rows: NDArray[np.int64]) -> None:
        for row in rows.tolist():
            item = task.item(row)
            self.context.quarantine(
                Quarantined(
                    f"{self.name}: expected memory for one document; got {int(tokens.lengths[row])} tokens that do not "
                    f"fit alone. A smaller max_seq_length, or max_chars, is one way out",
                    "OutOfMemory",
                    document=item.text or item.preview,
                    document_id=item.id,
                    source=item.source,
                    row=row,
                )
            )


def _mask(values: NDArray[np.bool_]) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def _spread(column: pa.Array, answered: NDArray[np.bool_]) -> pa.Array:
    """Return a column for all documents: what there is for those that were answered, in order, and null elsewhere."""
    if answered.all():
        return column
    places = np.cumsum(answered) - 1
    places[~answered] = 0
    indices = pa.Array.from_buffers(pa.int64(), len(answered), [to_bitmap(answered), pa.py_buffer(places)])
    return column.take(indices)
