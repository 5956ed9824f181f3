"""`BaseSyntheticStage`: one text made of another by a prompt, segment by segment where a document is long.

By default it asks once for each row and stores the answer. With `segmented=True` it does what a task of Nemotron-CC
does around that: documents in segments that fit the prompt, one request for each, answers checked and cleaned, and what
is left joined to one text for the document (`segments.py`, `answer_texts.py`). All of that happens in one row, so a
document is answered wholly or quarantined wholly: a request that fails never leaves a text with a hole in it.
"""

from collections.abc import Mapping
from typing import ClassVar

from gristmill.errors import ConfigError
from gristmill.models.client.llm_client import Answer, AsyncLLMClient, GenerationConfig, LLMClient
from gristmill.stages.synthetic.llm_stage import Asker, LLMStage, Row, Values, all_answers
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.synthetic.segments import TokenLimits, room_for_text, segment
from gristmill.stages.synthetic.token_counts import Encodes

JOINT = "\n"  # between the texts made of a document's segments, as between the segments in the document
TEMPERATURE, TOP_P = 0.5, 0.9  # of the published examples: the point is to say it in other words


class BaseSyntheticStage(LLMStage):
    """Ask about `input_field` with `prompt`, and put the answer into `output_field`.

    `prompt` is a text with `{document}` in it, the name of a shipped prompt, or a `Prompt`. A subclass sets defaults
    for it, for `output_field` and for `limits`, and says in `finish` what is kept of an answer about a segment.

    `segmented=True` needs `limits`. `where`, such as "bucketed_results > 11", says which documents are asked about; the
    others have null in `output_field`, and so have documents of which nothing was kept.
    """

    name = "synthetic"
    default_prompt: ClassVar[str | None] = None
    default_output_field: ClassVar[str] = "answer"
    limits: ClassVar[TokenLimits | None] = None

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
    ) -> None:
        given = prompt if prompt is not None else self.default_prompt
        if given is None or client is None or not model_name:
            raise ConfigError(
                f"{type(self).__name__}: expected prompt, client and model_name; "
                f"got {given!r:.80}, {client!r:.80} and {model_name!r}"
            )
        if segmented and self.limits is None:
            raise ConfigError(f"{type(self).__name__}: expected limits of the class for segmented=True; got none")
        if generation_config is None and segmented and self.limits is not None:
            generation_config = GenerationConfig(
                max_tokens=self.limits.max_output, temperature=TEMPERATURE, top_p=TOP_P
            )
        super().__init__(
            client,
            model_name,
            given,
            system_prompt=system_prompt,
            input_field=input_field,
            output_field=output_field or self.default_output_field,
            generation_config=generation_config,
            tokenizer=tokenizer,
            where=where,
        )
        self.segmented = segmented

    def finish(self, answer: str, segment: str) -> str | None:
        """Return the text to keep of an answer about a segment, or None if the answer is not what was asked for."""
        del segment
        return answer.strip() or None

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        text = self.text_of(row)
        if text is None or not self.segmented or self.limits is None:
            return await super().answer_row(row, ask)
        room = room_for_text(self.limits, self.tokens_of_prompt(), who=self.stage_name())
        found = segment(text, self.limits, room, self.count_tokens)
        for name, number in found.left_out():
            ask.counts[name] += number
        answers = await all_answers(ask(self.messages(row, part)) for part in found.segments)
        kept = [
            made
            for answer, part in zip(answers, found.segments, strict=True)
            if (made := self._kept(answer, part, self.limits, ask)) is not None
        ]
        joined = JOINT.join(kept)
        if not kept or self.count_tokens(joined) < self.limits.min_result:
            ask.counts["documents_without_result"] += 1
            return None
        truncated = any(answer.is_truncated for answer in answers)
        return {self.output_field: joined, f"{self.output_field}_truncated": truncated}

    def _kept(self, answer: Answer, part: str, limits: TokenLimits, ask: Asker) -> str | None:
        if self.count_tokens(answer.text) > limits.max_answer:
            ask.counts["too_long_answers"] += 1
            return None
        made = self.finish(answer.text, part)
        if made is None:
            ask.counts["unusable_answers"] += 1
        return made
