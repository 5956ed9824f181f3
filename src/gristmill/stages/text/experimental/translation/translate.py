"""`TranslateDocuments`: the texts of a document taken apart, translated piece by piece and put together again.

A document is translated wholly or it is quarantined: a segment that fails never becomes an empty text. To get a text
that is partly in its own language instead, say `on_segment_error="keep_source"`; then `translation_errors` says what
went wrong.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import pyarrow as pa

from gristmill.errors import ConfigError, StageError
from gristmill.models.client.llm_client import Answer, AsyncLLMClient, GenerationConfig, RequestFailed
from gristmill.stages.synthetic.llm_stage import Asker, LLMStage, Row, RowFailed, Values, settled
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.text.experimental.translation.field_paths import FieldPath, Json
from gristmill.stages.text.experimental.translation.segmentation import Mode, Template, take_apart
from gristmill.stages.worker_info import WorkerMetadata
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_lines import JSON_MARK, is_json, loads

OutputMode = Literal["replaced", "raw", "both"]
OnSegmentError = Literal["quarantine", "keep_source"]
METADATA, MESSAGES, ERRORS = "translation_metadata", "translated_messages", "translation_errors"
FAITH_SOURCE, FAITH_TRANSLATION = (
    "_faith_source_text",
    "_faith_translated_text",
)  # for the next stage, which drops them
OPENING, CLOSING = "〘", "〙"
_BETWEEN = "\n\n"  # texts of one document that are shown together
_HEALTHY = "Hello"
_KEPT = "kept: "  # in a row, before the names of columns that the document already has


@dataclass(frozen=True)
class Translation:
    """One text: how it was taken apart, and its segments in the other language."""

    template: Template
    translated: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.template.rebuild(self.translated)

    def pairs(self) -> list[dict[str, str]]:
        """The segments with their translations."""
        sources = self.template.segments()
        return [{"src": src, "tgt": tgt} for src, tgt in zip(sources, self.translated, strict=True)]


@dataclass(frozen=True)
class Output:
    """Which columns are made of the translations of a document.

    `field` is for the translation itself: a text for a plain path, a copy of the column's value for a path into one, an
    object of such copies by column for several.
    """

    field: str = "translated_text"
    mode: OutputMode = "replaced"
    messages_field: str | None = None
    for_faith: bool = False


def unwrapped(answer: str, segment: str) -> str:
    """Return the translation between the brackets of an answer, or all of it if there are none.

    >>> unwrapped("Here: 〘Hallo〙", "Hello")
    'Hallo'
    """
    start = answer.find(OPENING) if OPENING in segment else answer.rfind(OPENING)
    end = answer.rfind(CLOSING)
    if start < 0:
        return answer.strip()
    return answer[start + 1 : end if end > start else None].strip()


class TranslateDocuments(LLMStage):
    """Translate the texts that `paths` lead to."""

    name = "translate_documents"

    def __init__(
        self,
        client: AsyncLLMClient,
        model_name: str,
        prompt: Prompt,
        paths: Sequence[FieldPath],
        *,
        output: Output,
        languages: tuple[str, str],
        target_lang: str,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        segmentation_mode: Mode = "coarse",
        min_segment_chars: int = 0,
        on_segment_error: OnSegmentError = "quarantine",
        skip_column: str | None = None,
        health_check: bool = True,
        dry_run_prompts: int | None = None,
    ) -> None:
        self.paths = tuple(paths)
        self.output = output
        self.target_lang = target_lang
        self.segmentation_mode = segmentation_mode
        self.min_segment_chars = min_segment_chars
        self.on_segment_error = on_segment_error
        self.skip_column = skip_column
        self.health_check = health_check
        self.dry_run_prompts = dry_run_prompts
        super().__init__(
            client,
            model_name,
            prompt,
            input_field=self.paths[0].column,
            output_field=output.field,
            generation_config=generation_config,
            constants={"source_lang": languages[0], "target_lang": languages[1]},
        )

    # What it reads and adds

    def columns_read(self) -> list[str]:
        return list(dict.fromkeys(path.column for path in self.paths))

    def inputs(self) -> tuple[list[str], list[str]]:
        self.prompt.check(["src", *self.constants], who=self.stage_name())
        return ["data"], self.columns_read()

    def columns_added(self) -> dict[str, pa.DataType]:
        added = {} if self.output.mode == "raw" else {self.output_field: pa.string()}
        added |= {f"{self.output_field}_truncated": pa.bool_()}
        if self.output.mode != "replaced":
            added[METADATA] = pa.string()
        if self.output.messages_field is not None:
            added[MESSAGES] = pa.string()
        if self.on_segment_error == "keep_source":
            added[ERRORS] = pa.string()
        if self.output.for_faith:
            added |= {FAITH_SOURCE: pa.string(), FAITH_TRANSLATION: pa.string()}
        return added

    def new_columns(self) -> list[str]:
        return [] if self.skip_column is not None else super().new_columns()

    # Making ready

    async def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:  # type: ignore[override]
        await super().setup(worker_metadata)
        self._prompts_shown = 0
        if not self.health_check or self.dry_run_prompts is not None or getattr(self.client, "cache", "") == "only":
            return
        ask = Asker(self._asked, self.model_name, self.generation_config)
        try:
            await ask(self._messages(_HEALTHY))
        except (RequestFailed, OSError) as error:
            raise StageError(
                f"{self.stage_name()}: expected the translation backend to answer; got {str(error).rstrip('.')}. "
                "health_check=False begins without asking"
            ) from error

    # Rows

    async def process(self, task: DocumentBatch) -> DocumentBatch:  # type: ignore[override]
        batch = await super().process(task)
        if not self._is_structured() and self.output.messages_field is None:
            return batch
        source = self.output.messages_field or self.paths[0].column
        if self._is_structured() and self.output.mode != "raw":
            only = self.paths[0].column if len(self.columns_read()) == 1 else None
            batch = _typed_as(batch, self.output_field, task, only)
        return batch if self.output.messages_field is None else _typed_as(batch, MESSAGES, task, source)

    def rows_of(self, task: DocumentBatch) -> list[Row]:
        names = self.columns_read()
        columns = {name: _values(task, name, as_json=self._is_nested(name)) for name in names}
        if self.skip_column is not None:
            structured = {self.output_field, self.skip_column, MESSAGES} if self._is_structured() else set()
            there = [name for name in [self.skip_column, *self.columns_added()] if task.has_column(name)]
            columns |= {_KEPT + name: _values(task, name, as_json=name in structured) for name in there}
        return [{name: values[row] for name, values in columns.items()} for row in range(task.num_items)]

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        done = row.get(_KEPT + (self.skip_column or ""))
        if done is not None and str(done).strip():
            ask.counts["already_translated"] += 1
            kept = {name.removeprefix(_KEPT): value for name, value in row.items() if name.startswith(_KEPT)}
            kept.setdefault(self.output_field, done)
            return {name: _encoded(value) if isinstance(value, dict | list) else value for name, value in kept.items()}
        texts = {path: self._texts(path, row[path.column]) for path in self.paths}
        if not any(each.strip() for found in texts.values() for each in found):
            return None
        templates = {path: [self._template(each) for each in found] for path, found in texts.items()}
        segments = dict.fromkeys(s for found in templates.values() for each in found for s in each.segments())
        if self.dry_run_prompts is not None:
            self._show(list(segments), ask)
            return None
        answers = dict(zip(segments, await settled(ask(self._messages(each)) for each in segments), strict=True))
        made, errors = self._translations(answers, ask)
        done_of = {
            path: [Translation(each, tuple(made[s] for s in each.segments())) for each in found]
            for path, found in templates.items()
        }
        is_cut = any(isinstance(answer, Answer) and answer.is_truncated for answer in answers.values())
        return {
            **self._columns(row, texts, done_of),
            f"{self.output_field}_truncated": is_cut,
            ERRORS: "; ".join(errors) or None,
        }

    def _texts(self, path: FieldPath, value: object) -> list[str]:
        if value is None:
            return []
        if path.is_plain and not isinstance(value, str):
            raise RowFailed(f"expected {path.column!r} to be text; got {type(value).__name__}")
        if not path.is_plain and not isinstance(value, dict | list):
            raise RowFailed(f"expected {path.column!r} to hold what {path.text!r} leads into; got {value!r:.80}")
        return path.texts(value)  # type: ignore[arg-type]  # it was JSON

    def _template(self, text: str) -> Template:
        return take_apart(text, self.segmentation_mode, min_segment_chars=self.min_segment_chars)

    def _translations(self, answers: Mapping[str, Answer | Exception], ask: Asker) -> tuple[dict[str, str], list[str]]:
        """Return the translation of every segment, and what is to be said of those that have none."""
        made: dict[str, str] = {}
        errors: list[str] = []
        ask.counts["segments"] += len(answers)
        for segment, answer in answers.items():
            text = unwrapped(answer.text, segment) if isinstance(answer, Answer) else ""
            if text:
                made[segment] = text
                continue
            error = (
                answer if isinstance(answer, Exception) else RowFailed("expected a translation; got an empty answer")
            )
            if self.on_segment_error == "quarantine":
                raise RowFailed(f"segment {segment[:80]!r} was not translated: {error}") from error
            ask.counts["segments_kept_in_source"] += 1
            made[segment] = segment
            errors.append(f"{segment[:80]!r}: {error}")
        return made, errors

    def _columns(
        self, row: Row, texts: Mapping[FieldPath, list[str]], done: Mapping[FieldPath, list[Translation]]
    ) -> dict[str, object]:
        columns: dict[str, object] = {}
        new: dict[str, Json] = {}
        for path, found in done.items():
            value: Json = new.get(path.column, row[path.column])  # type: ignore[arg-type]  # it was JSON
            new[path.column] = path.replaced(value, [each.text for each in found])
        if self.output.mode != "raw":
            whole: Json = new if len(new) > 1 else next(iter(new.values()))
            columns[self.output_field] = _encoded(whole) if self._is_structured() else whole
        if self.output.mode != "replaced":
            columns[METADATA] = _encoded(self._metadata(done))
        if self.output.messages_field is not None:
            columns[MESSAGES] = _encoded(new[self.output.messages_field])
        if self.output.for_faith:
            columns[FAITH_SOURCE] = _BETWEEN.join(each for found in texts.values() for each in found)
            columns[FAITH_TRANSLATION] = _BETWEEN.join(each.text for found in done.values() for each in found)
        return columns

    def _metadata(self, done: Mapping[FieldPath, list[Translation]]) -> dict[str, object]:
        """Everything about a translation: the texts by path, and every segment with its own."""
        whole = {
            p.text: [t.text for t in found] if p.has_many else "".join(t.text for t in found)
            for p, found in done.items()
        }
        pairs = {path.text: [pair for each in found for pair in each.pairs()] for path, found in done.items()}
        return {"target_lang": self.target_lang, "translation": whole, "segmented_translation": pairs}

    def _messages(self, segment: str) -> list[Mapping[str, object]]:
        return self.prompt.fill({**self.constants, "src": segment})

    def _show(self, segments: Sequence[str], ask: Asker) -> None:
        """Print some prompts in place of asking."""
        ask.counts["segments_not_asked"] += len(segments)
        for segment in segments[: max(0, (self.dry_run_prompts or 0) - self._prompts_shown)]:
            self._prompts_shown += 1
            print(f"{self.stage_name()}: would ask {_encoded(self._messages(segment))}", file=sys.stderr)

    def _is_nested(self, column: str) -> bool:
        return any(path.column == column and not path.is_plain for path in self.paths)

    def _is_structured(self) -> bool:
        return len(self.columns_read()) > 1 or not self.paths[0].is_plain


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _values(batch: DocumentBatch, name: str, *, as_json: bool) -> list[object]:
    """The values of a column; of JSON, objects as they were written, without keys that only other rows have."""
    lines = batch.lines
    if not as_json:
        return list(batch.column(name).to_pylist())
    if lines is not None and lines.is_live(name):
        return [None if text is None else _parsed(loads(bytes(text))) for text in lines.texts(name)]
    return [_parsed(value) for value in batch.column(name).to_pylist()]


def _parsed(value: object) -> object:
    """A value that may be JSON in a text."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _typed_as(batch: DocumentBatch, name: str, source: DocumentBatch, column: str | None) -> DocumentBatch:
    """Give a column of JSON texts the form of the column it was made of: values, a nested type, or text."""
    texts = batch.column(name)
    field = None if column is None else source.field(column)
    if field is not None and pa.types.is_nested(field.type) and source.lines is None:
        values = [None if text is None else json.loads(text) for text in texts.to_pylist()]
        return batch.with_column(name, pa.array(values, field.type), pa.field(name, field.type))
    if field is not None and pa.types.is_string(field.type) and not is_json(field):
        return batch
    return batch.with_column(name, texts, pa.field(name, pa.string(), metadata=JSON_MARK))


def check_messages_path(messages_field: str, content_field: str, paths: Sequence[FieldPath], *, who: str) -> None:
    """Raise unless the texts that are translated are those of the messages."""
    wanted = f"{messages_field}.*.{content_field}"
    if wanted not in [path.text for path in paths]:
        raise ConfigError(
            f"{who}: expected text_field to be {wanted!r} with reconstruct_messages; got {[p.text for p in paths]}"
        )
