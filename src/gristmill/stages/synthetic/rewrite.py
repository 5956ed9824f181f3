"""`RewriteStage`: texts of low quality rewritten, and `VariantsToDocuments`: columns of texts as documents."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from gristmill.errors import ConfigError
from gristmill.kernels.arrow_arrays import from_numbers
from gristmill.models.client.llm_client import AsyncLLMClient, GenerationConfig, LLMClient
from gristmill.stages.base import ProcessingStage
from gristmill.stages.synthetic.llm_stage import Asker, LLMStage, Overlong, Row, RowFailed, Values, all_answers
from gristmill.stages.synthetic.nemotron_cc.answer_texts import after_prefix
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.synthetic.token_counts import Encodes
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_texts


class RewriteStage(LLMStage):
    """Replace the text of documents with a model's rewriting of it; the old text goes into `original_field`.

    `where`, such as "quality_level == 'low'", says which documents: the others keep their text, and have null in
    `original_field`. So do documents without text, and those that are too long with `on_overlong="skip"`. An answer
    that does not begin as the prompt demands, or that is empty, puts its document into quarantine.
    """

    name = "rewrite"

    def __init__(
        self,
        client: AsyncLLMClient | LLMClient,
        model_name: str,
        prompt: str | Prompt = "rewrite",
        *,
        text_field: str = "text",
        original_field: str = "original_text",
        system_prompt: str | None = None,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        max_input_tokens: int | None = None,
        on_overlong: Overlong = "skip",
        tokenizer: str | Encodes | None = None,
        where: str | None = None,
    ) -> None:
        if on_overlong == "truncate":
            raise ConfigError(
                f"{self.name}: expected on_overlong 'skip' or 'split'; 'truncate' would lose the rest of a text"
            )
        super().__init__(
            client,
            model_name,
            prompt,
            system_prompt=system_prompt,
            input_field=text_field,
            output_field=text_field,
            generation_config=generation_config,
            max_input_tokens=max_input_tokens,
            on_overlong=on_overlong,
            tokenizer=tokenizer,
            where=where,
        )
        self.original_field = original_field

    def columns_added(self) -> dict[str, pa.DataType]:
        return {**super().columns_added(), self.original_field: pa.string()}

    def unasked_row(self, row: Row) -> Values | None:
        return {self.input_field: row[self.input_field]}

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        text = self.text_of(row)
        pieces, is_cut = ([], False) if text is None else self.shown_of(text)
        if not pieces:
            ask.counts["llm_overlong_skipped"] += is_cut
            return self.unasked_row(row)
        answers = await all_answers(ask(self.messages(row, piece)) for piece in pieces)
        rewritten = "\n".join(self._usable(answer.text) for answer in answers)
        truncated = any(answer.is_truncated for answer in answers)
        return {self.input_field: rewritten, f"{self.input_field}_truncated": truncated, self.original_field: text}

    def _usable(self, answer: str) -> str:
        made = after_prefix(answer, self.prompt.prefix) if self.prompt.prefix else answer.strip()
        if not made:
            expected = f"a text after {self.prompt.prefix!r}" if self.prompt.prefix else "a text"
            raise RowFailed(f"expected {expected}; got {answer[:200]!r}")
        return made


@dataclass(eq=False)
class VariantsToDocuments(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Turn every text in the columns `fields` into a document, after the document it was made from.

    A variant has the other columns of its document, its own text in `text_field`, the name of its column in
    `variant_field` (null for the document itself) and, if there is an `id_field`, an id such as `a17#distill`; ids are
    text from then on. The columns `fields` are gone. With `keep_original=False` a document that has a variant gives
    way to it, and one that has none stays.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    fields: Sequence[str]
    text_field: str = "text"
    id_field: str = "id"
    _: KW_ONLY
    variant_field: str = "variant"
    keep_original: bool = True
    name: str = "variants_to_documents"

    def __post_init__(self) -> None:
        self.fields = [self.fields] if isinstance(self.fields, str) else list(self.fields)
        if not self.fields or self.text_field in self.fields or len(set(self.fields)) < len(self.fields):
            raise ConfigError(
                f"{self.name}: expected fields to be columns with variants, each once and not {self.text_field!r}; "
                f"got {self.fields!r}"
            )

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field, *self.fields]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.text_field, self.variant_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        texts = task.column(self.text_field).to_pylist()
        made = {field: task.column(field).to_pylist() for field in self.fields}
        rows: list[int] = []
        variants: list[str | None] = []
        for row in range(task.num_items):
            own: list[str | None] = [field for field in self.fields if made[field][row] is not None]
            kept = [None, *own] if self.keep_original or not own else own
            rows += [row] * len(kept)
            variants += kept
        new = [texts[row] if kind is None else made[kind][row] for row, kind in zip(rows, variants, strict=True)]
        gone = [*self.fields, *(f"{field}_truncated" for field in self.fields)]
        batch = task.drop_columns(gone).take(from_numbers(np.array(rows, np.int64)))
        if any(variants):
            batch = batch.with_column(self.text_field, from_texts(new))
        if task.has_column(self.id_field):
            batch = batch.with_column(self.id_field, self._ids(task, rows, variants))
        return batch.with_column(self.variant_field, self._kinds(task, rows, variants))

    def _kinds(self, task: DocumentBatch, rows: list[int], variants: list[str | None]) -> pa.Array:
        """The kind of every row; a document that was a variant before stays one."""
        before = task.column(self.variant_field).to_pylist() if task.has_column(self.variant_field) else []
        kinds = (
            (before[row] if before else None) if kind is None else kind
            for row, kind in zip(rows, variants, strict=True)
        )
        return pa.array([None if kind is None else str(kind) for kind in kinds], pa.string())

    def _ids(self, task: DocumentBatch, rows: list[int], variants: list[str | None]) -> pa.Array:
        ids = task.column(self.id_field).to_pylist()
        named = ((ids[row], kind) for row, kind in zip(rows, variants, strict=True))
        return from_texts(
            [None if own is None else str(own) if kind is None else f"{own}#{kind}" for own, kind in named]
        )
