"""`FaithEvalFilter`: a model's marks for every translation, and those below a threshold dropped."""

import json
from collections.abc import Mapping

import pyarrow as pa

from gristmill.models.client.llm_client import AsyncLLMClient, GenerationConfig
from gristmill.stages.synthetic.llm_stage import Asker, LLMStage, Row, Values
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.text.experimental.translation.faith_scores import FAITH_COLUMNS, FaithScores, parse_faith
from gristmill.stages.text.experimental.translation.translate import FAITH_SOURCE, FAITH_TRANSLATION, METADATA
from gristmill.tasks import DocumentBatch

AVERAGE, FAILED = "faith_avg", "faith_parse_failed"
REASON = "faith_avg"
MAX_TOKENS = 256
_SCORES = "faith_scores"


class FaithEvalFilter(LLMStage):
    """Add `faith_*`, `faith_avg` and `faith_parse_failed`; with `filter_enabled`, drop what is below `threshold`.

    A document that was not translated, or whose marks cannot be read, is kept: it is not known to be bad. With
    `merge_scores` the marks are entered into the column `translation_metadata` as well.
    """

    name = "faith_eval"

    def __init__(
        self,
        client: AsyncLLMClient,
        model_name: str,
        prompt: Prompt,
        *,
        languages: tuple[str, str],
        source_text_field: str = FAITH_SOURCE,
        translated_text_field: str = FAITH_TRANSLATION,
        threshold: float = 2.5,
        filter_enabled: bool = True,
        merge_scores: bool = False,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
    ) -> None:
        self.source_text_field = source_text_field
        self.translated_text_field = translated_text_field
        self.threshold = threshold
        self.filter_enabled = filter_enabled
        self.merge_scores = merge_scores
        super().__init__(
            client,
            model_name,
            prompt,
            input_field=source_text_field,
            output_field=AVERAGE,
            generation_config=generation_config or GenerationConfig(temperature=0.0, max_tokens=MAX_TOKENS),
            constants={"source_language": languages[0], "target_language": languages[1]},
        )

    def columns_read(self) -> list[str]:
        merged = [METADATA] if self.merge_scores else []
        return [self.source_text_field, self.translated_text_field, *merged]

    def inputs(self) -> tuple[list[str], list[str]]:
        self.prompt.check(["source_text", "translated_text", *self.constants], who=self.stage_name())
        return ["data"], self.columns_read()

    def columns_added(self) -> dict[str, pa.DataType]:
        merged = {METADATA: pa.string()} if self.merge_scores else {}
        return {**dict.fromkeys((*FAITH_COLUMNS, AVERAGE), pa.float64()), FAILED: pa.bool_(), **merged}

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        texts = {"source_text": row[self.source_text_field], "translated_text": row[self.translated_text_field]}
        scores = FaithScores()
        if all(isinstance(text, str) and text.strip() for text in texts.values()):
            filled = self.prompt.fill({**self.constants, **{name: str(text) for name, text in texts.items()}})
            scores = parse_faith((await ask(filled)).text)
            ask.counts["faith_parse_failed"] += scores.parse_failed
        marks = scores.marks or (None,) * len(FAITH_COLUMNS)
        values: dict[str, object] = dict(zip(FAITH_COLUMNS, marks, strict=True))
        values |= {AVERAGE: scores.average, FAILED: scores.parse_failed}
        if self.merge_scores:
            values[METADATA] = _merged(row[METADATA], scores)
        return values

    async def process(self, task: DocumentBatch) -> DocumentBatch:  # type: ignore[override]
        batch = (await super().process(task)).drop_columns([FAITH_SOURCE, FAITH_TRANSLATION])
        if not self.filter_enabled:
            return batch
        averages = batch.column(AVERAGE).to_pylist()
        below = [average is not None and average < self.threshold for average in averages]
        self.context.drop(batch, below, reason=REASON, values=averages, threshold=f"{AVERAGE} ≥ {self.threshold:g}")
        return batch.filter([not drop for drop in below])


def _merged(metadata: object, scores: FaithScores) -> object:
    """The metadata of a translation with its marks; None stays None."""
    if not isinstance(metadata, str):
        return metadata
    return json.dumps({**json.loads(metadata), _SCORES: scores.as_object()}, ensure_ascii=False, separators=(",", ":"))
