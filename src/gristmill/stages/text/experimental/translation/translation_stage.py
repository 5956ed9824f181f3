"""`TranslationStage`: documents in another language, with or without marks for the translation.

To its user it is one stage; it runs as `translate_documents` and, with `enable_faith_eval`, `faith_eval`.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

from gristmill.errors import ConfigError, nearest
from gristmill.models.client.llm_client import AsyncLLMClient, GenerationConfig, LLMClient
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.text.experimental.translation.backends import BACKENDS, translation_client
from gristmill.stages.text.experimental.translation.faith import FaithEvalFilter
from gristmill.stages.text.experimental.translation.field_paths import FieldPath, parse_path
from gristmill.stages.text.experimental.translation.segmentation import MODES, Mode
from gristmill.stages.text.experimental.translation.translate import (
    OnSegmentError,
    Output,
    OutputMode,
    TranslateDocuments,
    check_messages_path,
)
from gristmill.tasks import DocumentBatch, Task

OUTPUT_MODES = ("replaced", "raw", "both")
ON_SEGMENT_ERROR = ("quarantine", "keep_source")
_LANGUAGES = {
    "ar": "Arabic",
    "bn": "Bengali",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "te": "Telugu",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


@dataclass(eq=False, kw_only=True)
class TranslationStage(CompositeStage[DocumentBatch, DocumentBatch]):
    """Translate documents from `source_lang` into `target_lang`.

    `text_field` is a column, a path into one ("messages.*.content"), or a list of these. `segmentation_mode` "coarse"
    translates line by line, "fine" sentence by sentence; code blocks, and lines without a letter, stay as they are. A
    text of fewer than `min_segment_chars` characters is translated as a whole.

    `backend_type` "llm" asks `model_name` at `client`; "nmt", "aws" and "google" are described by `backend_config`
    (`backends.py`). `max_concurrent_requests` is an upper limit beside that of the client. `dry_run` asks nothing and
    prints the first `dry_run_log_count` prompts. `health_check` asks once when a worker starts.

    `output_mode` "replaced" puts the translation into `output_field`, "raw" into `translation_metadata`, an object with
    every segment beside its translation, and "both" into both. Source columns are never changed, unless `output_field`
    is one. `reconstruct_messages` adds `translated_messages`, a copy of the messages with their contents translated.
    `skip_translated` leaves alone documents that have something in `translation_column`.

    `enable_faith_eval` has the translations marked (FAITH) and drops documents below `faith_threshold`, unless
    `filter_enabled` is False; `merge_scores` enters the marks into `translation_metadata`.

    A segment that cannot be translated puts its document into quarantine, or stays in its language with
    `on_segment_error="keep_source"`.
    """

    source_lang: str
    target_lang: str
    text_field: str | list[str] = "text"
    output_field: str = "translated_text"
    segmentation_mode: Mode = "coarse"
    min_segment_chars: int = 0
    client: AsyncLLMClient | LLMClient | None = None
    model_name: str = ""
    generation_config: GenerationConfig | Mapping[str, object] | None = None
    translation_prompt_path: str | None = None
    max_concurrent_requests: int = 64
    health_check: bool = True
    dry_run: bool = False
    dry_run_log_count: int = 5
    backend_type: str = "llm"
    backend_config: Mapping[str, object] = field(default_factory=dict)
    enable_faith_eval: bool = False
    faith_threshold: float = 2.5
    faith_model_name: str = ""
    filter_enabled: bool = True
    faith_generation_config: GenerationConfig | Mapping[str, object] | None = None
    faith_prompt_path: str | None = None
    faith_max_concurrent_requests: int = 64
    output_mode: OutputMode = "replaced"
    merge_scores: bool = False
    reconstruct_messages: bool = False
    messages_field: str = "messages"
    messages_content_field: str = "content"
    skip_translated: bool = False
    translation_column: str = "translated_text"
    on_segment_error: OnSegmentError = "quarantine"
    name: str = "translation"

    def __post_init__(self) -> None:
        self.source_lang, self.target_lang = self.source_lang.strip(), self.target_lang.strip()
        if not self.source_lang or not self.target_lang:
            raise ConfigError(
                f"{self.name}: expected source_lang and target_lang; got {self.source_lang!r} and {self.target_lang!r}"
            )
        self._check_choices()
        if self.merge_scores and self.output_mode == "replaced":
            raise ConfigError(
                f"{self.name}: expected output_mode 'raw' or 'both' with merge_scores, which enters marks into "
                "translation_metadata; got 'replaced'"
            )
        if self.merge_scores and not self.enable_faith_eval:
            raise ConfigError(f"{self.name}: expected enable_faith_eval with merge_scores; there are no marks without")
        if self.reconstruct_messages:
            check_messages_path(self.messages_field, self.messages_content_field, self._paths(), who=self.name)
        self._check_models()
        self.decompose()

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        stages: list[object] = [self._translating()]
        if self.enable_faith_eval and not self.dry_run:
            stages.append(self._marking())
        return stages  # type: ignore[return-value]  # stages are invariant

    def _translating(self) -> TranslateDocuments:
        is_llm = self.backend_type == "llm"
        offered = ("source_lang", "target_lang", "src")
        translate = (
            Prompt.named("translate")
            if self.translation_prompt_path is None
            else Prompt.from_file(self.translation_prompt_path, offered=offered)
        )
        return TranslateDocuments(
            _at_most(self.client, self.max_concurrent_requests) if is_llm else self._backend(),  # type: ignore[arg-type]
            self.model_name or self.backend_type,
            translate if is_llm else Prompt("{src}", variables=("src",), name=f"{self.name}: text"),
            self._paths(),
            output=Output(
                self.output_field,
                self.output_mode,
                self.messages_field if self.reconstruct_messages else None,
                self.enable_faith_eval and not self.dry_run,
            ),
            languages=(_language(self.source_lang), _language(self.target_lang)),
            target_lang=self.target_lang,
            generation_config=self.generation_config,
            segmentation_mode=self.segmentation_mode,
            min_segment_chars=self.min_segment_chars,
            on_segment_error=self.on_segment_error,
            skip_column=self.translation_column if self.skip_translated else None,
            health_check=self.health_check,
            dry_run_prompts=self.dry_run_log_count if self.dry_run else None,
        )

    def _marking(self) -> FaithEvalFilter:
        offered = ("source_language", "target_language", "source_text", "translated_text")
        prompt = (
            Prompt.named("faith_eval")
            if self.faith_prompt_path is None
            else Prompt.from_file(self.faith_prompt_path, offered=offered)
        )
        return FaithEvalFilter(
            _at_most(self.client, self.faith_max_concurrent_requests),  # type: ignore[arg-type]  # checked before
            self.faith_model_name or self.model_name,
            prompt,
            languages=(_language(self.source_lang), _language(self.target_lang)),
            threshold=self.faith_threshold,
            filter_enabled=self.filter_enabled,
            merge_scores=self.merge_scores,
            generation_config=self.faith_generation_config,
        )

    def _backend(self) -> AsyncLLMClient:
        return translation_client(
            self.backend_type,
            self.backend_config,
            self.source_lang,
            self.target_lang,
            self.max_concurrent_requests,
            who=self.name,
        )

    def _paths(self) -> list[FieldPath]:
        given = [self.text_field] if isinstance(self.text_field, str) else list(self.text_field)
        if not given or len(set(given)) < len(given):
            raise ConfigError(f"{self.name}: expected text_field to name columns or paths, each once; got {given!r}")
        return [parse_path(each, who=self.name) for each in given]

    def _check_choices(self) -> None:
        for option, known in (
            ("segmentation_mode", MODES),
            ("output_mode", OUTPUT_MODES),
            ("backend_type", BACKENDS),
            ("on_segment_error", ON_SEGMENT_ERROR),
        ):
            value = getattr(self, option)
            if value not in known:
                near = nearest(str(value), known)
                raise ConfigError(f"{self.name}: expected {option} to be one of {known}; got {value!r}{near}")

    def _check_models(self) -> None:
        if self.backend_type == "llm" and (self.client is None or not self.model_name.strip()):
            raise ConfigError(
                f"{self.name}: expected client and model_name for backend_type='llm'; "
                f"got {self.client!r:.80} and {self.model_name!r}"
            )
        if self.enable_faith_eval and (self.client is None or not (self.faith_model_name or self.model_name).strip()):
            raise ConfigError(
                f"{self.name}: expected client and faith_model_name, or model_name, for enable_faith_eval; "
                f"got {self.client!r:.80} and {self.faith_model_name!r}"
            )


def _language(code: str) -> str:
    """The name of a language, for a prompt; what is not a known code stands for itself."""
    return _LANGUAGES.get(code.lower(), code)


def _at_most(client: AsyncLLMClient | LLMClient | None, requests: int) -> AsyncLLMClient | LLMClient | None:
    """A copy of a client that has no more requests under way than a stage allows."""
    if not isinstance(client, AsyncLLMClient) or client.max_concurrent_requests <= requests:
        return client
    fewer = copy.copy(client)
    fewer.max_concurrent_requests = requests
    return fewer
