"""Clients of language models: what a stage asks, and what it gets back.

    AsyncLLMClient   `await ask(...)` gives a `Reply`; many calls under way share one window and its retries
    LLMClient        the same for code that waits

The contracts are here, with what every client of a server has in common: how many requests are under way (`Window`)
and what is tried again (`RetryPolicy`), both in `retry.py`. What a server of the usual kind understands is in
`openai_client.py`. A client of your own is a subclass with `setup` and `_query_model_impl`.
"""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial

from gristmill.errors import ConfigError, MachineError, StageError, nearest
from gristmill.models.client.gate import Gate
from gristmill.models.client.retry import Failure, RetryPolicy, Window
from gristmill.models.client.usage import Answer, Reply

__all__ = [
    "Answer",
    "AsyncLLMClient",
    "ConversationFormatter",
    "GenerationConfig",
    "LLMClient",
    "Message",
    "Reply",
    "RequestFailed",
    "as_async",
    "as_generation_config",
]

Message = Mapping[str, object]  # {"role": "user", "content": "..."}


class ConversationFormatter(ABC):
    """Turns messages into the one text that a model without a chat template takes."""

    @abstractmethod
    def format_conversation(self, conv: list[dict[str, object]]) -> str:
        """Return the text to send in place of the messages."""


@dataclass
class GenerationConfig:
    """How a model is to answer. `extra_kwargs` are further fields of the request, sent as they are."""

    max_tokens: int | None = 2048
    n: int | None = 1
    seed: int | None = 0
    stop: str | list[str] | None = None
    stream: bool = False
    temperature: float | None = 0.0
    top_k: int | None = None
    top_p: float | None = 0.95
    extra_kwargs: dict[str, object] | None = None

    def as_request(self) -> dict[str, object]:
        """The fields of a request. What is None is left to the server."""
        # Not `asdict`: it copies every value, and took a third of the time of a question the cache answers.
        left_out = ("extra_kwargs",) if self.stream else ("extra_kwargs", "stream")
        plain = {name: value for name, value in vars(self).items() if value is not None and name not in left_out}
        if not self.extra_kwargs:
            return plain
        extra = dict(self.extra_kwargs)
        body = extra.pop("extra_body", None)  # where the openai package takes fields it does not know
        return plain | extra | (dict(body) if isinstance(body, Mapping) else {})


def as_generation_config(given: GenerationConfig | Mapping[str, object] | None) -> GenerationConfig:
    """Return a configuration; a mapping may have only its field names."""
    if given is None:
        return GenerationConfig()
    if isinstance(given, GenerationConfig):
        return given
    known = [each.name for each in fields(GenerationConfig)]
    for name in given:
        if name not in known:
            raise ConfigError(
                f"GenerationConfig: expected one of {', '.join(known)}; got {name!r}{nearest(name, known)}. "
                "Other fields of a request go into extra_kwargs"
            )
    return replace(GenerationConfig(), **given)  # type: ignore[arg-type]  # the names are checked, the values sent as given


class RequestFailed(StageError):
    """A question got no answer, after as many attempts as were allowed. The row it is about is to blame, if any."""

    status: int | None = None
    attempts: int = 1


class LLMClient(ABC):
    """A client for code that waits for its answers."""

    @abstractmethod
    def setup(self) -> None:
        """Get ready, in the process that asks."""

    @abstractmethod
    def query_model(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        """Return the texts a model answers with."""

    def content(self) -> dict[str, object]:
        """What decides the answers, for the fingerprint of a plan."""
        return _content(self)


class AsyncLLMClient(ABC):
    """A client with many calls under way at once: at most `max_concurrent_requests` requests.

    A subclass writes `setup` and `_query_model_impl`; whatever that raises is tried again `max_retries` times, after
    a random wait of up to `base_delay` seconds, twice as much each time. `is_transient` says which errors are worth it.
    """

    keeps_answers = False  # whether a question asked again is answered without a request

    def __init__(self, max_concurrent_requests: int = 5, max_retries: int = 3, base_delay: float = 1.0) -> None:
        if max_concurrent_requests < 1:
            raise ConfigError(
                f"{type(self).__name__}: expected max_concurrent_requests to be at least 1; "
                f"got {max_concurrent_requests!r}"
            )
        self.max_concurrent_requests = max_concurrent_requests
        self.max_retries = max_retries
        self.base_delay = base_delay
        self._share = 1  # of this many processes that ask at the same time

    @abstractmethod
    def setup(self) -> None:
        """Get ready, in the process that asks."""

    def spend_for(self, scope: str) -> None:
        """Note whose money is spent: a stage of a run. For clients that keep account of it."""
        del scope

    def check(self, model: str, processes: int = 1) -> None:
        """Raise ConfigError for what is known to be wrong before any of `processes` processes asks."""
        del model
        self._check_share(processes)

    async def close(self) -> None:
        """Let go of connections and files. What is under way is given up."""
        self.__dict__.pop("_live_gate", None)

    def divide(self, processes: int) -> None:
        """Take one share of the limits: `processes` processes of the run ask at the same time."""
        self._check_share(processes)
        self._share = processes

    def _check_share(self, processes: int) -> None:
        if processes > self.max_concurrent_requests:
            raise ConfigError(
                f"{type(self).__name__}: expected max_concurrent_requests of at least 1 for each of {processes} "
                f"workers; got {self.max_concurrent_requests}"
            )

    @property
    def window_size(self) -> int:
        """Requests this process may have under way."""
        return max(1, self.max_concurrent_requests // self._share)

    @abstractmethod
    async def _query_model_impl(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        """Send one request and return its texts, or raise."""

    def is_transient(self, error: BaseException) -> bool:
        """Whether it may help to send the same request again."""
        return isinstance(error, OSError | asyncio.TimeoutError) and not isinstance(error, MachineError)

    async def query_model(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        """Return the texts a model answers with."""
        reply = await self.ask(
            messages=messages,
            model=model,
            conversation_formatter=conversation_formatter,
            generation_config=generation_config,
        )
        return reply.texts

    async def ask(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        sample: int = 0,
    ) -> Reply:
        """Return what came of a question, with what it took.

        `sample` tells apart equal questions that want different answers.
        """
        del sample  # means something where answers are kept
        config = as_generation_config(generation_config)
        policy, gate = RetryPolicy(self.max_retries, self.base_delay), self._gate()
        kinds: dict[str, int] = {}
        listed = list(messages)
        attempt = 0
        while True:
            ticket = await gate.enter()
            call = asyncio.ensure_future(
                self._query_model_impl(
                    messages=listed,
                    model=model,
                    conversation_formatter=conversation_formatter,
                    generation_config=config,
                )
            )
            try:
                await asyncio.wait([call])
            finally:
                gate.abandoned(ticket)
                call.cancel()
            error = call.exception()
            if error is None:
                answers = tuple(Answer(text) for text in call.result())
                return Reply(answers, model, requests=attempt + 1, retries=kinds)
            kind = type(error).__name__
            wait_s = policy.wait_s(Failure(kind), attempt, random.random())
            if wait_s is None or not self.is_transient(error):
                raise error
            kinds[kind] = kinds.get(kind, 0) + 1
            attempt += 1
            await asyncio.sleep(wait_s)

    def _gate(self) -> Gate:
        """The gate of this event loop; `asyncio.run` makes a new loop every time."""
        loop = asyncio.get_running_loop()
        held = self.__dict__.get("_live_gate")
        if held is None or held[0] is not loop:
            held = self.__dict__["_live_gate"] = (loop, Gate(Window(self.window_size), _shut))
        gate: Gate = held[1]
        return gate

    def content(self) -> dict[str, object]:
        """What decides the answers, for the fingerprint of a plan: not how fast, how often or with whose key."""
        return _content(self)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_live")}


_HOW = {"max_concurrent_requests", "max_retries", "base_delay", "_share"}


def _content(client: object) -> dict[str, object]:
    own = {name: value for name, value in vars(client).items() if name not in _HOW and not name.startswith("_live")}
    return {"client": f"{type(client).__module__}.{type(client).__qualname__}", **own}


class _InThreads(AsyncLLMClient):
    """A client that blocks, called from as many threads as it is allowed requests."""

    def __init__(self, client: LLMClient) -> None:
        super().__init__(getattr(client, "max_concurrent_requests", 5), max_retries=0)
        self._client = client
        self._live_threads: ThreadPoolExecutor | None = None

    def setup(self) -> None:
        self._client.setup()
        self._live_threads = ThreadPoolExecutor(self.window_size, "gristmill-llm")

    async def close(self) -> None:
        if self._live_threads is not None:
            self._live_threads.shutdown(wait=False, cancel_futures=True)

    async def _query_model_impl(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        ask = partial(
            self._client.query_model,
            messages=messages,
            model=model,
            conversation_formatter=conversation_formatter,
            generation_config=generation_config,
        )
        return await asyncio.get_running_loop().run_in_executor(self._live_threads, ask)


def as_async(client: AsyncLLMClient | LLMClient) -> AsyncLLMClient:
    """Return a client to be awaited. One that blocks is called in threads."""
    if isinstance(client, AsyncLLMClient):
        return client
    inner = getattr(client, "asynchronous", None)
    return inner if isinstance(inner, AsyncLLMClient) else _InThreads(client)


def _shut(window: Window) -> Exception:
    return StageError(f"expected some request to be answered; got {window.last_refusal}")
