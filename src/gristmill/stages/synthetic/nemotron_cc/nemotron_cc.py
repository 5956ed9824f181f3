"""The five tasks of Nemotron-CC (Su et al., 2024), and the two stages that finish their answers.

| stage                      | document / segment ≥ | input ≤ | output ≤ | answer ≤; what it must be; result ≥  |
|----------------------------|----------------------|---------|----------|--------------------------------------|
| WikipediaParaphrasingStage | 5 / 5                | 512     | 512      | 510; begins with its prefix; 50      |
| DiverseQAStage             | 30 / 30              | 1000    | 600      | 598; questions with answers; 100     |
| DistillStage               | 30 / 10              | 2000    | 1600     | 1598; begins with its prefix; 50     |
| ExtractKnowledgeStage      | 30 / 30              | 1400    | 1400     | 1398; labels of passages removed; 50 |
| KnowledgeListStage         | 30 / 30              | 1000    | 600      | 598; a list, its bullets removed; 50 |

All in tokens, with `segmented=True`. An answer as long as the limit was cut off, hence two tokens fewer. The first task
is meant for documents of low quality, the others for those of high quality: `where` says which they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import pyarrow as pa

from gristmill.models.client.llm_client import AsyncLLMClient, GenerationConfig, LLMClient
from gristmill.stages.base import ProcessingStage
from gristmill.stages.synthetic.nemotron_cc.answer_texts import (
    QA_PREFIX,
    after_prefix,
    choose_pairs,
    list_items,
    question_answer_pairs,
    without_passage_labels,
)
from gristmill.stages.synthetic.nemotron_cc.base import BaseSyntheticStage
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.synthetic.segments import TokenLimits
from gristmill.stages.synthetic.token_counts import (
    CountTokens,
    Encodes,
    absolute_tokenizer,
    check_tokenizer,
    fetch_tokenizer,
    is_downloaded,
    token_counter,
    tokenizer_name,
)
from gristmill.stages.worker_info import NodeInfo, WorkerMetadata
from gristmill.tasks import DocumentBatch


class WikipediaParaphrasingStage(BaseSyntheticStage):
    """Rewrite a text in the style of an encyclopedia: for documents that are badly written."""

    name = "wikipedia_paraphrasing"
    default_prompt: ClassVar[str] = "wikipedia_paraphrasing"
    default_output_field: ClassVar[str] = "rephrased"
    limits: ClassVar[TokenLimits] = TokenLimits(5, 5, 512, 512, 510, 50)

    def finish(self, answer: str, segment: str) -> str | None:
        del segment
        return after_prefix(answer, self.prompt.prefix) or None


class DiverseQAStage(BaseSyntheticStage):
    """Ask for questions of many kinds with their answers; with `segmented`, add some of them to the text."""

    name = "diverse_qa"
    default_prompt: ClassVar[str] = "diverse_qa"
    default_output_field: ClassVar[str] = "diverse_qa"
    limits: ClassVar[TokenLimits] = TokenLimits(30, 30, 1000, 600, 598, 100)

    def __init__(
        self,
        system_prompt: str | None = None,
        prompt: str | Prompt | None = None,
        input_field: str = "text",
        output_field: str | None = None,
        client: AsyncLLMClient | LLMClient | None = None,
        model_name: str = "",
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        *,
        segmented: bool = False,
        tokenizer: str | Encodes | None = None,
        where: str | None = None,
        max_num_pairs: int = 10,
        prefix: str = QA_PREFIX,
        seed: int = 0,
    ) -> None:
        super().__init__(
            system_prompt,
            prompt,
            input_field,
            output_field,
            client,
            model_name,
            generation_config,
            segmented=segmented,
            tokenizer=tokenizer,
            where=where,
        )
        self.max_num_pairs = max_num_pairs
        self.prefix = prefix
        self.seed = seed

    def finish(self, answer: str, segment: str) -> str | None:
        return with_pairs(segment, answer, self.prefix, self.max_num_pairs, self.count_tokens, seed=self.seed)


class DistillStage(BaseSyntheticStage):
    """Condense a text: the same in fewer words."""

    name = "distill"
    default_prompt: ClassVar[str] = "distill"
    default_output_field: ClassVar[str] = "distill"
    limits: ClassVar[TokenLimits] = TokenLimits(30, 10, 2000, 1600, 1598, 50)

    def finish(self, answer: str, segment: str) -> str | None:
        del segment
        return after_prefix(answer, self.prompt.prefix) or None


class ExtractKnowledgeStage(BaseSyntheticStage):
    """Rewrite the knowledge in a text as passages of a textbook."""

    name = "extract_knowledge"
    default_prompt: ClassVar[str] = "extract_knowledge"
    default_output_field: ClassVar[str] = "extract_knowledge"
    limits: ClassVar[TokenLimits] = TokenLimits(30, 30, 1400, 1400, 1398, 50)

    def finish(self, answer: str, segment: str) -> str | None:
        del segment
        return without_passage_labels(answer) or None


class KnowledgeListStage(BaseSyntheticStage):
    """List what can be learnt from a text, one fact per line."""

    name = "knowledge_list"
    default_prompt: ClassVar[str] = "knowledge_list"
    default_output_field: ClassVar[str] = "knowledge_list"
    limits: ClassVar[TokenLimits] = TokenLimits(30, 30, 1000, 600, 598, 50)

    def finish(self, answer: str, segment: str) -> str | None:
        del segment
        return list_items(answer) or None


def with_pairs(text: str, answer: str, prefix: str, most: int, count: CountTokens, *, seed: int) -> str | None:
    """Return a text followed by some of the questions about it, or None if the answer holds none."""
    pairs = choose_pairs(question_answer_pairs(answer, prefix), text, most, count, seed=seed)
    return "\n\n".join([text, *pairs]) if pairs else None


@dataclass(eq=False)
class DiverseQAPostProcessingStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Turn an answer of `DiverseQAStage` into the text followed by some of the questions, in `qa_field`.

    Which, how many (one to `max_num_pairs` for every 150 tokens of text) and in which order is decided by a hash of the
    text and `seed`. An answer without questions becomes null, and is counted.
    """

    adds_only_declared_columns: ClassVar[bool] = True

    max_num_pairs: int = 10
    prefix: str = QA_PREFIX
    _: KW_ONLY
    input_field: str = "text"
    qa_field: str = "diverse_qa"
    tokenizer: str | Encodes | None = None
    seed: int = 0
    name: str = "diverse_qa_post_processing"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.input_field, self.qa_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.qa_field]

    def check_ready(self) -> None:
        check_tokenizer(self.tokenizer, who=self.name)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "tokenizer": tokenizer_name(self.tokenizer)}

    def wants_node_setup(self) -> bool:
        return is_downloaded(self.tokenizer)

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        fetch_tokenizer(self.tokenizer, who=self.name)

    def make_paths_absolute(self) -> None:
        self.tokenizer = absolute_tokenizer(self.tokenizer)

    def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:
        del worker_metadata
        token_counter(self.tokenizer, who=self.name)  # opened once, and kept in this process

    def process(self, task: DocumentBatch) -> DocumentBatch:
        count = token_counter(self.tokenizer, who=self.name)
        texts = task.column(self.input_field).to_pylist()

        def finish(row: int, answer: str) -> str | None:
            if texts[row] is None:
                return None
            return with_pairs(texts[row], answer, self.prefix, self.max_num_pairs, count, seed=self.seed)

        return finish_column(self, task, self.qa_field, finish)


@dataclass(eq=False)
class KnowledgeListPostProcessingStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Take the bullets off an answer of `KnowledgeListStage`, and the line before the list if there is one."""

    adds_only_declared_columns: ClassVar[bool] = True

    input_field: str = "knowledge_list"
    _: KW_ONLY
    name: str = "knowledge_list_post_processing"

    def inputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.input_field]

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], [self.input_field]

    def process(self, task: DocumentBatch) -> DocumentBatch:
        return finish_column(self, task, self.input_field, lambda _, answer: list_items(answer) or None)


def finish_column(
    stage: ProcessingStage[DocumentBatch, DocumentBatch],
    batch: DocumentBatch,
    field: str,
    finish: Callable[[int, str], str | None],
) -> DocumentBatch:
    """Replace the answers in a column with what is kept of them; count those that leave nothing."""
    answers = batch.column(field).to_pylist()
    made = [None if answer is None else finish(row, answer) for row, answer in enumerate(answers)]
    unusable = sum(new is None and old is not None for new, old in zip(made, answers, strict=True))
    if unusable:
        stage.context.count("unusable_answers", unusable)
    return batch.with_column(field, pa.array(made, pa.string()))
