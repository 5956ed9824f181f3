"""`LLMStage`: ask a language model about every document, and add its answer as a column.

What every stage of this kind has in common is here: a row whose request fails is one row in quarantine, and its
neighbours go on; a document without text is not asked about; the requests of all lanes of a worker share the client's
window; what was asked, retried, paid for and found in the cache is counted. A subclass says what to ask about a row
and which columns to make of the answers, in `answer_row` and `columns_added`.

`process` is a coroutine and not a function in a thread: the worker's one event loop then holds all requests of all
lanes, and a request costs no hand-over from thread to thread (docs/adr/0025-own-client.md).
"""

import asyncio
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from gristmill.errors import ConfigError, MachineError, ServerRefused, SpendingLimit, StageError, nearest
from gristmill.models.client.llm_client import (
    Answer,
    AsyncLLMClient,
    GenerationConfig,
    LLMClient,
    Message,
    Reply,
    RequestFailed,
    as_async,
    as_generation_config,
)
from gristmill.stages.base import ProcessingStage
from gristmill.stages.context import Quarantined
from gristmill.stages.resources import Resources
from gristmill.stages.synthetic.condition import parse_condition
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.synthetic.token_counts import (
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

Row = Mapping[str, object]  # the columns the stage reads, of one document
Values = Mapping[str, object]  # the columns it adds
Overlong = Literal["skip", "truncate", "split"]
OVERLONG = ("skip", "truncate", "split")
NOBODYS_DOCUMENT = (401, 404)  # wrong key; wrong address or model. A 403 may be about what a document says
BEGUN = 2  # rows of a task that are begun at once, counted in windows: the next is ready when a request ends


class RowFailed(StageError):
    """Nothing can be made of what a model said about a row: the row goes into quarantine, its neighbours do not."""


class Asker:
    """Asks a stage's model on behalf of one call, and counts what that took."""

    def __init__(self, client: AsyncLLMClient, model: str, config: GenerationConfig) -> None:
        self.client = client
        self.model = model
        self.config = config
        self.counts: Counter[str] = Counter()
        self.cost = 0.0

    async def __call__(
        self, messages: Sequence[Message], *, generation_config: GenerationConfig | None = None, sample: int = 0
    ) -> Answer:
        """Return the first answer to a question. `sample` tells apart equal questions that want different answers."""
        return (await self.all_of(messages, generation_config=generation_config, sample=sample)).answers[0]

    async def all_of(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        generation_config: GenerationConfig | None = None,
        sample: int = 0,
    ) -> Reply:
        """Return everything that came of a question, which has `n` answers."""
        reply = await self.client.ask(
            messages=messages,
            model=model or self.model,
            generation_config=generation_config or self.config,
            sample=sample,
        )
        if not reply.answers:
            raise RowFailed(f"{self.model}: expected an answer; got none")
        self._count(reply)
        return reply

    def _count(self, reply: Reply) -> None:
        counts = self.counts
        counts["llm_answers"] += 1
        counts["llm_requests"] += reply.requests
        counts["llm_cache_hits"] += reply.from_cache
        counts["llm_prompt_tokens"] += reply.prompt_tokens
        counts["llm_completion_tokens"] += reply.completion_tokens
        counts["llm_truncated"] += any(answer.is_truncated for answer in reply.answers)
        for kind, number in reply.retries.items():
            counts[f"llm_retries_{kind}"] += number
        counts["llm_answers_not_kept"] += not self.client.keeps_answers
        self.cost += reply.cost


class LLMStage(ProcessingStage[DocumentBatch, DocumentBatch]):
    """Ask `model_name` what `prompt` says about the text in `input_field`; the answer goes into `output_field`.

    `prompt` is a text with `{document}` in it, the name of a prompt that comes with gristmill, the path of a YAML file
    or a `Prompt`. Its other variables are columns of the same name, or `constants`. `where`, such as
    "bucketed_results > 11", says which documents are asked about. `<output_field>_truncated` is True where an answer
    was cut off at `max_tokens`, or where only the beginning of a document was shown. A document that is not asked
    about, or has no text but white space, has null in both.

    A prompt over `max_input_tokens` is not sent: the document is left without answer (`on_overlong="skip"`), cut
    ("truncate"), or asked about in parts whose answers are joined ("split"). Tokens are counted with `tokenizer`, a
    directory, a package or a hub id, and estimated if none is named (`token_counts.py`).

    `client.max_concurrent_requests` holds for the stage in the whole run. The stage has one worker, which is enough for
    thousands of requests a second; with `with_(num_workers=4)` each worker gets a quarter.
    """

    name = "llm"
    lanes = 8
    resources = Resources(cpus=0.25)
    adds_only_declared_columns = True

    def __init__(
        self,
        client: AsyncLLMClient | LLMClient,
        model_name: str,
        prompt: str | Prompt,
        *,
        system_prompt: str | None = None,
        input_field: str = "text",
        output_field: str = "answer",
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        constants: Mapping[str, str] | None = None,
        max_input_tokens: int | None = None,
        on_overlong: Overlong = "skip",
        tokenizer: str | Encodes | None = None,
        where: str | None = None,
    ) -> None:
        who = self.stage_name()
        if not isinstance(client, AsyncLLMClient | LLMClient):
            raise ConfigError(f"{who}: expected client to be an AsyncLLMClient or LLMClient; got {client!r:.80}")
        if on_overlong not in OVERLONG:
            near = nearest(str(on_overlong), OVERLONG)
            raise ConfigError(f"{who}: expected on_overlong to be one of {OVERLONG}; got {on_overlong!r}{near}")
        self.client = client
        self.model_name = model_name
        self.prompt = Prompt.of(prompt, system=system_prompt, who=who)
        self.input_field = input_field
        self.output_field = output_field
        self.generation_config = as_generation_config(generation_config)
        self.constants = dict(constants or {})
        self.max_input_tokens = max_input_tokens
        self.on_overlong = on_overlong
        self.tokenizer = tokenizer
        self.where = where
        self._condition = None if where is None else parse_condition(where, who=who)
        if tokenizer is None:  # else it is opened when the plan is made
            self._check_room()

    # What a subclass says

    def columns_added(self) -> dict[str, pa.DataType]:
        """Return the columns the stage adds, with their types."""
        return {self.output_field: pa.string(), f"{self.output_field}_truncated": pa.bool_()}

    def columns_read(self) -> list[str]:
        """Return the columns that `answer_row` gets of a document."""
        others = [name for name in self.prompt.variables if name != "document" and name not in self.constants]
        asked_by = [] if self._condition is None else [self._condition.field]
        return list(dict.fromkeys([self.input_field, *others, *asked_by]))

    def unasked_row(self, row: Row) -> Values | None:
        """Return values for a document that `where` leaves out; None for null in all of them."""
        del row
        return None

    async def answer_row(self, row: Row, ask: Asker) -> Values | None:
        """Return values for the added columns, or None for null in all of them.

        Whatever it raises puts this row into quarantine, and no other: raise `RowFailed` to say why. May ask as often
        as it likes, one after another or at once with `asyncio.gather`.
        """
        text = self.text_of(row)
        if text is None:
            return None
        pieces, is_cut = self.shown_of(text)
        if not pieces:
            ask.counts["llm_overlong_skipped"] += 1
            return None
        answers = await all_answers(ask(self.messages(row, piece)) for piece in pieces)
        joined = "\n".join(answer.text for answer in answers)
        truncated = is_cut or any(answer.is_truncated for answer in answers)
        return {self.output_field: joined, f"{self.output_field}_truncated": truncated}

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has, by the tokenizer or by estimate."""
        return token_counter(self.tokenizer, who=self.stage_name())(text)

    # What a subclass may use

    def text_of(self, row: Row) -> str | None:
        """Return the text to ask about, or None if there is nothing but white space."""
        text = row[self.input_field]
        if text is not None and not isinstance(text, str):
            raise RowFailed(f"expected {self.input_field!r} to be text; got {type(text).__name__}")
        return text if text and text.strip() else None

    def messages(self, row: Row, document: str) -> list[Message]:
        """Return the prompt filled in for a row, with `document` for `{document}`."""
        values = {name: _as_text(value) for name, value in row.items()} | self.constants | {"document": document}
        return self.prompt.fill(values)

    def shown_of(self, text: str) -> tuple[list[str], bool]:
        """Return the pieces of a text to ask about, and whether anything of it is left out."""
        room = self._room()
        if room is None or self.count_tokens(text) <= room:
            return [text], False
        if self.on_overlong == "skip":
            return [], True
        first = _fitting(text, room, self.count_tokens)
        if self.on_overlong == "truncate":
            return [text[:first]], True
        pieces = []
        while text.strip():
            size = _fitting(text, room, self.count_tokens)
            pieces.append(text[:size])
            text = text[size:]
        return pieces, False

    # What the engine asks

    def inputs(self) -> tuple[list[str], list[str]]:
        given = [*self.columns_read(), *self.constants, "document"]
        self.prompt.check(given, who=self.stage_name())
        return ["data"], self.columns_read()

    def outputs(self) -> tuple[list[str], list[str]]:
        return ["data"], list(self.columns_added())

    def new_columns(self) -> list[str]:
        return [name for name in self.columns_added() if name not in self.columns_read()]

    def check_ready(self) -> None:
        as_async(self.client).check(self.model_name, self.num_workers() or 1)
        if check_tokenizer(self.tokenizer, who=self.stage_name()):
            self._check_room()

    def wants_node_setup(self) -> bool:
        return is_downloaded(self.tokenizer)

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        fetch_tokenizer(self.tokenizer, who=self.stage_name())

    def make_paths_absolute(self) -> None:
        self.tokenizer = absolute_tokenizer(self.tokenizer)

    def num_workers(self) -> int | None:
        return super().num_workers() or 1

    def get_config(self) -> dict[str, object]:
        config = super().get_config()
        config["client"] = self.client.content()
        config["tokenizer"] = tokenizer_name(self.tokenizer)
        return config

    async def setup(self, worker_metadata: WorkerMetadata | None = None) -> None:  # type: ignore[override]  # awaited by the worker
        self._asked = as_async(self.client)
        self._asked.divide(self.num_workers() or 1)
        run = "" if worker_metadata is None else worker_metadata.run
        self._asked.spend_for(f"{run}/{self.stage_name()}" if run else "")
        self._asked.setup()

    async def teardown(self) -> None:  # type: ignore[override]
        await self._asked.close()

    async def process(self, task: DocumentBatch) -> DocumentBatch:  # type: ignore[override]
        rows = self.rows_of(task)
        ask = Asker(self._asked, self.model_name, self.generation_config)
        most = BEGUN * self._asked.window_size

        async def answer(row: Row) -> Values | None:
            if self._condition is not None and not self._condition.holds(row[self._condition.field]):
                return self.unasked_row(row)
            return await self.answer_row(row, ask)

        made = await answer_rows(rows, answer, most)
        _check_not_all_refused(made, ask)
        self._report(ask)
        good: list[int] = []
        values: list[Values] = []
        for number, each in enumerate(made):
            if isinstance(each, BaseException):
                self.context.quarantine(quarantined_row(task, number, each))
            else:
                good.append(number)
                values.append(each or {})
        batch = task if len(good) == len(rows) else task.take(good)
        for name, kind in self.columns_added().items():
            batch = batch.with_column(name, pa.array([each.get(name) for each in values], kind))
        return batch

    def _report(self, ask: Asker) -> None:
        for name, number in ask.counts.items():
            if number:
                self.context.count(name, number)
        if ask.cost:
            self.context.count("llm_cost_millionths", round(ask.cost * 1e6))

    def rows_of(self, task: DocumentBatch) -> list[Row]:
        """Return what `answer_row` gets of each document."""
        names = self.columns_read()
        columns = [task.column(name).to_pylist() for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def tokens_of_prompt(self) -> int:
        """Return how many tokens a request has without a document."""
        held = self.__dict__.get("_prompt_tokens")
        if held is None:
            blank = dict.fromkeys(self.prompt.variables, "") | self.constants
            filled = self.prompt.fill(blank)
            held = self.__dict__["_prompt_tokens"] = sum(self.count_tokens(str(each["content"])) for each in filled)
        return int(held)

    def _room(self) -> int | None:
        """Tokens there are for a document; None if there is no limit."""
        return None if self.max_input_tokens is None else self.max_input_tokens - self.tokens_of_prompt()

    def _check_room(self) -> None:
        room = self._room()
        if room is not None and room < 1:
            raise ConfigError(
                f"{self.stage_name()}: expected max_input_tokens to leave room for a document; got "
                f"{self.max_input_tokens}, and the prompt alone has about {self.tokens_of_prompt()} tokens"
            )


async def all_answers(asked: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """Return all answers, or raise the first error when all have come: what was paid for is then in the cache."""
    answers: list[Answer] = []
    for each in await settled(asked):
        if isinstance(each, Exception):
            raise each
        answers.append(each)
    return answers


async def settled(asked: Iterable[Awaitable[Answer]]) -> list[Answer | Exception]:
    """Return for each question its answer or its error; an error that is not this row's affair is raised."""
    made: list[Answer | Exception] = []
    for each in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(each, BaseException) and (_is_everybodys(each) or not isinstance(each, Exception)):
            raise each
        made.append(each)
    return made


async def answer_rows(
    rows: Sequence[Row], answer: Callable[[Row], Awaitable[Values | None]], most: int
) -> list[Values | BaseException | None]:
    """Return for each row what `answer` gives or raises, with at most `most` rows begun.

    An error that is not a row's affair (a server that refuses everything, a full disk, a spending limit) ends all of
    them and is raised.
    """
    room = asyncio.Semaphore(most)
    begun: list[asyncio.Future[Values | None]] = []
    ended: list[BaseException] = []

    def over(done: "asyncio.Future[Values | None]") -> None:
        room.release()
        error = None if done.cancelled() else done.exception()
        if error is not None and not ended and _is_everybodys(error):
            ended.append(error)
            for each in begun:
                each.cancel()

    try:
        for row in rows:
            await room.acquire()
            if ended:
                break
            task = asyncio.ensure_future(answer(row))
            begun.append(task)
            task.add_done_callback(over)
        made = await asyncio.gather(*begun, return_exceptions=True)
    finally:
        for each in begun:
            each.cancel()
    if ended:
        raise ended[0]
    return made


def _check_not_all_refused(made: Sequence[Values | BaseException | None], ask: Asker) -> None:
    """Raise if the server has refused all that was asked, for a reason that lies in no document: the key, the address.

    The client stops after ten refusals in a row; a run with fewer documents would end with all of them in quarantine.
    """
    errors = [each for each in made if isinstance(each, BaseException)]
    refused = [
        cause
        for error in errors
        for cause in (error, error.__cause__)
        if isinstance(cause, RequestFailed) and cause.status in NOBODYS_DOCUMENT
    ]
    if errors and not ask.counts["llm_answers"] and len(refused) == len(errors):
        raise ServerRefused(f"{refused[0]}. No request has been answered") from refused[0]


def _is_everybodys(error: BaseException) -> bool:
    return isinstance(error, MachineError | SpendingLimit) or not isinstance(error, Exception)


def quarantined_row(batch: DocumentBatch, row: int, error: BaseException) -> Quarantined:
    """Return the record of a row that failed by itself."""
    item = batch.item(row)
    return Quarantined(
        error=f"{type(error).__name__}: {error}",
        kind=type(error).__name__,
        document=item.text or item.preview,
        document_id=item.id or f"{batch.task_id}#{row}",
        source=item.source,
        row=row,
        traceback="".join(traceback.format_exception(error)),
    )


def _as_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _fitting(text: str, most: int, count: Callable[[str], int]) -> int:
    """Return how many characters of a text have at most `most` tokens, to the end of a line or word if one is near."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    if low == len(text):
        return low
    for mark in ("\n", " "):
        end = text.rfind(mark, low // 2, low) + 1
        if end:
            return end
    return low
