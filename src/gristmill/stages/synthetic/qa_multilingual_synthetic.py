"""`QAMultilingualSyntheticStage`: questions and answers in many languages, made from nothing but a prompt.

Which language a sample is in depends on its number and the seed, so a run that is continued, or repeated with more
samples, makes the same ones. Samples are made in partitions, each committed by itself.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import pyarrow as pa

from gristmill.errors import ConfigError
from gristmill.models.client.llm_client import AsyncLLMClient, GenerationConfig, LLMClient, as_generation_config
from gristmill.stages.base import CompositeStage, ProcessingStage
from gristmill.stages.synthetic.llm_stage import Asker, LLMStage, Row, RowFailed, Values
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.text.judging.document_filter import DocumentFilter
from gristmill.tasks import DocumentBatch, EmptyTask, Task

SAMPLES_PER_TASK = 256
TEMPERATURE = 0.9  # at 0 all samples of a language would be the same


@dataclass(eq=False)
class QAMultilingualSyntheticStage(CompositeStage[EmptyTask, DocumentBatch]):
    """Ask `num_samples` times, each time for one of `languages`, which stands for `{language}` in the prompt.

    It is the first stage of a pipeline, and gives the columns `sample` (from 0 on), `language` and `text`. Each request
    has a seed of its own, counted from that of `generation_config`.
    """

    prompt: str | Prompt
    languages: list[str]
    client: AsyncLLMClient | LLMClient
    model_name: str
    num_samples: int
    generation_config: GenerationConfig | Mapping[str, object] | None = None
    _: KW_ONLY
    seed: int = 0
    name: str = "qa_multilingual_synthetic"

    def __post_init__(self) -> None:
        languages: object = self.languages
        if not isinstance(languages, list | tuple) or not languages or not all(languages):
            raise ConfigError(f"{self.name}: expected languages to be a list of names; got {languages!r}")
        samples: object = self.num_samples
        if not isinstance(samples, int) or samples < 0:
            raise ConfigError(f"{self.name}: expected num_samples to be a whole number ≥ 0; got {samples!r}")
        self.decompose()

    def decompose(self) -> list[ProcessingStage[Task[object], Task[object]]]:
        numbers = NumberSamples(list(self.languages), self.num_samples, self.seed, name=f"{self.name}_numbers")
        config = as_generation_config(self.generation_config or {"temperature": TEMPERATURE})
        asking = AskForSamples(self.client, self.model_name, self._prompt(), generation_config=config)
        return [numbers, asking.with_(name=self.name)]  # type: ignore[list-item]  # stages are invariant

    def _prompt(self) -> Prompt:
        if isinstance(self.prompt, str) and "{language}" in self.prompt:
            return Prompt(self.prompt, variables=("language",), name=f"{self.name}: prompt")
        return Prompt.of(self.prompt, who=self.name)


@dataclass(eq=False)
class NumberSamples(ProcessingStage[EmptyTask, DocumentBatch]):
    """The samples to be made: a number and a language each."""

    languages: list[str]
    num_samples: int
    seed: int
    _: KW_ONLY
    name: str = "number_samples"

    def partitions(self) -> Sequence[DocumentBatch]:
        starts = range(0, self.num_samples, SAMPLES_PER_TASK) or [0]
        return [self._batch(range(start, min(start + SAMPLES_PER_TASK, self.num_samples))) for start in starts]

    def columns(self) -> list[str]:
        return ["sample", "language"]

    def process(self, task: EmptyTask) -> list[DocumentBatch]:
        del task
        return list(self.partitions())

    def _batch(self, samples: range) -> DocumentBatch:
        languages = [language_of(sample, self.languages, self.seed) for sample in samples]
        columns = {"sample": pa.array(samples, pa.int64()), "language": pa.array(languages, pa.string())}
        return DocumentBatch("samples", pa.Table.from_pydict(columns))


def language_of(sample: int, languages: Sequence[str], seed: int) -> str:
    """Return the language of a sample: every number has one, whatever was asked for before it."""
    digest = hashlib.blake2b(f"{seed}/{sample}".encode(), digest_size=8).digest()
    return languages[int.from_bytes(digest, "little") % len(languages)]


class AskForSamples(LLMStage):
    """Ask for one sample a row."""

    name = "ask_for_samples"

    def __init__(
        self,
        client: AsyncLLMClient | LLMClient,
        model_name: str,
        prompt: Prompt,
        *,
        generation_config: GenerationConfig | None = None,
    ) -> None:
        super().__init__(
            client,
            model_name,
            prompt,
            input_field="language",
            output_field="text",
            generation_config=generation_config,
        )

    def columns_read(self) -> list[str]:
        return ["sample", "language"]

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        sample, config = int(str(row["sample"])), self.generation_config
        if config.seed is not None:
            config = replace(config, seed=config.seed + sample)
        answer = await ask(self.messages(row, ""), generation_config=config, sample=sample)
        text = answer.text.replace("*", "").strip()  # some models make words bold
        if not text:
            raise RowFailed("expected a text; got an empty answer")
        return {"text": text, "text_truncated": answer.is_truncated}


@dataclass
class LanguageFilter(DocumentFilter[float]):
    """Keep texts that begin with the name of one of these languages, as the shipped prompt asks for."""

    measure: ClassVar[str] = "names_its_language"

    languages: list[str]

    def score_document(self, text: str) -> float:
        return float(text.startswith(tuple(self.languages)))

    def keep_document(self, score: float) -> bool:
        return score == 1.0
