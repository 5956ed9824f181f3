"""`LLMScoreStage`: a model's judgement of every document as a number or a label, to train a classifier on."""

from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from gristmill.errors import ConfigError, nearest
from gristmill.models.client.llm_client import AsyncLLMClient, GenerationConfig, LLMClient
from gristmill.stages.synthetic.answers import AnswerParser, Kind, answer_parser
from gristmill.stages.synthetic.llm_stage import Asker, LLMStage, Overlong, Row, RowFailed, Values
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.synthetic.token_counts import Encodes

Unparsed = Literal["quarantine", "null"]
UNPARSED: tuple[Unparsed, ...] = ("quarantine", "null")


class LLMScoreStage(LLMStage):
    """Ask for a score of each document, and put it into `output_field` as `parse` finds it in the answer.

    `parse` is "int:0-5" (an integer of this range), "json:FIELD" (a number in a JSON object; FIELD may be a path with
    dots) or "regex:PATTERN" (its first group, as text). `as_type` changes the type: "int", "float" or "text".
    `answer_field` keeps the whole answer beside the score.

    An answer that holds no such value, or two that could be meant, puts the document into quarantine: better to see at
    once that a prompt does not work than to train on what is left. With `on_unparsed="null"` the score is null.
    """

    name = "llm_score"

    def __init__(
        self,
        prompt: str | Prompt,
        client: AsyncLLMClient | LLMClient,
        model_name: str,
        output_field: str = "llm_score",
        parse: str = "int:0-5",
        *,
        as_type: Kind | None = None,
        on_unparsed: Unparsed = "quarantine",
        answer_field: str | None = None,
        input_field: str = "text",
        system_prompt: str | None = None,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        max_input_tokens: int | None = None,
        on_overlong: Overlong = "truncate",
        tokenizer: str | Encodes | None = None,
        where: str | None = None,
    ) -> None:
        if on_unparsed not in UNPARSED:
            near = nearest(str(on_unparsed), UNPARSED)
            raise ConfigError(f"{self.name}: expected on_unparsed to be one of {UNPARSED}; got {on_unparsed!r}{near}")
        if on_overlong == "split":
            raise ConfigError(f"{self.name}: expected on_overlong 'truncate' or 'skip'; a score has no parts to join")
        self.parse = parse
        self.as_type = as_type
        self.on_unparsed = on_unparsed
        self.answer_field = answer_field
        self._parser()
        super().__init__(
            client,
            model_name,
            prompt,
            system_prompt=system_prompt,
            input_field=input_field,
            output_field=output_field,
            generation_config=generation_config,
            max_input_tokens=max_input_tokens,
            on_overlong=on_overlong,
            tokenizer=tokenizer,
            where=where,
        )

    def columns_added(self) -> dict[str, pa.DataType]:
        whole = {} if self.answer_field is None else {self.answer_field: pa.string()}
        return {self.output_field: self._parser().arrow_type, f"{self.output_field}_truncated": pa.bool_(), **whole}

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        said = await super().answer_row(row, ask)
        if said is None:
            return None
        answer = str(said[self.output_field])
        value = self._parser()(answer)
        if value is None:
            ask.counts["unparsed_answers"] += 1
            if self.on_unparsed == "quarantine":
                raise RowFailed(f"expected an answer that {self.parse!r} finds one value in; got {answer[-200:]!r}")
        return {**said, self.output_field: value} | ({self.answer_field: answer} if self.answer_field else {})

    def _parser(self) -> AnswerParser:
        return answer_parser(self.parse, self.as_type, who=self.name)
