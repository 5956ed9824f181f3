"""`AsyncOpenAIClient` and `OpenAIClient`: clients of any server that speaks OpenAI's protocol (vLLM, SGLang, NIM, ...).

Names and defaults are those users know; the openai package is not used (docs/adr/0025-own-client.md). A question goes

    cache ─▶ the same question under way? ─▶ gate (window, pace, money) ─▶ transport ─▶ answer ─▶ cache
                                              ▲                              │ failure
                                              └──── wait, outside of the window ◀┘

Everything that belongs to an event loop is in one `_Live`; a client is pickled without it, and without its key.
"""

import asyncio
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from gristmill import secrets
from gristmill.errors import ConfigError, ServerRefused, check_installed, nearest
from gristmill.models.client.chat_format import Parsed, Question, parsed
from gristmill.models.client.gate import Gate, Live
from gristmill.models.client.llm_client import (
    AsyncLLMClient,
    ConversationFormatter,
    GenerationConfig,
    LLMClient,
    Message,
    Reply,
    RequestFailed,
    as_generation_config,
)
from gristmill.models.client.response_cache import FILE, ResponseCache, Stored
from gristmill.models.client.retry import IN_A_ROW, Failure, Load, Pace, RetryPolicy, Window
from gristmill.models.client.transport import AiohttpTransport
from gristmill.models.client.usage import Budget, Usage, cost_of, price_for, read_prices

OPENAI = "https://api.openai.com/v1"
KEY_VARIABLE, URL_VARIABLE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
CACHE_MODES = ("use", "refresh", "only")
# What the openai package takes as well and has a meaning here.
_CONNECTION = ("api_key", "base_url", "organization", "project", "default_headers")

CacheMode = Literal["use", "refresh", "only"]


class AsyncOpenAIClient(AsyncLLMClient):
    """A client that has many requests under way at once.

    `max_concurrent_requests` holds for the stage that uses it, in the whole run. A request is sent again up to
    `max_retries` times, after a random wait of up to `base_delay` seconds that doubles each time; `timeout` seconds
    are for one attempt, `deadline_s` for a question with all its attempts. Of the openai package's parameters
    `api_key`, `base_url`, `organization`, `project` and `default_headers` are taken. If no key is given, it is taken
    from `OPENAI_API_KEY` in the process that asks.

    `response_cache` is a directory in which answers are kept: a question asked before costs nothing. `cache` says how:
    "use" it, "refresh" what is in it, or take answers "only" from it, without a server.

    `prices` are for a million tokens, by model: `{"m": (0.5, 1.5)}` for those sent and those answered. At
    `max_total_cost` the run stops; answers are kept, and a higher limit continues it.
    """

    def __init__(
        self,
        max_concurrent_requests: int = 5,
        max_retries: int = 3,
        base_delay: float = 1.0,
        timeout: float = 120,
        *,
        response_cache: str | Path | None = None,
        cache: CacheMode = "use",
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_total_cost: float | None = None,
        prices: Mapping[str, object] | None = None,
        deadline_s: float | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(max_concurrent_requests, max_retries, base_delay)
        who = type(self).__name__
        check_installed("aiohttp", extra="llm")
        for name in kwargs:
            if name not in _CONNECTION:
                raise ConfigError(
                    f"{who}: expected one of the connection options {_CONNECTION}; got {name!r}"
                    f"{nearest(name, _CONNECTION)}"
                )
        if cache not in CACHE_MODES:
            near = nearest(str(cache), CACHE_MODES)
            raise ConfigError(f"{who}: expected cache to be one of {CACHE_MODES}; got {cache!r}{near}")
        if response_cache is None and (cache != "use" or max_total_cost is not None):
            given = f"cache={cache!r}" if cache != "use" else "max_total_cost"
            raise ConfigError(f"{who}: expected response_cache with {given}: that is where answers and costs are kept")
        limits = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
        limits |= {"max_total_cost": max_total_cost, "deadline_s": deadline_s, "timeout": timeout}
        for name, value in limits.items():
            if value is not None and not value > 0:
                raise ConfigError(f"{who}: expected {name} to be greater than 0; got {value!r}")
        self.timeout = timeout
        self.response_cache = None if response_cache is None else Path(response_cache).absolute()
        self.cache = cache
        self.requests_per_minute = requests_per_minute
        self.tokens_per_minute = tokens_per_minute
        self.max_total_cost = max_total_cost
        self.prices = read_prices(prices, who=who)
        self.deadline_s = deadline_s
        self.base_url = _url(kwargs.get("base_url") or os.environ.get(URL_VARIABLE) or OPENAI, who)
        self._api_key = None if kwargs.get("api_key") is None else str(kwargs["api_key"])
        self._headers_secret = _headers(kwargs)  # this name keeps it from being written down: headers may hold keys
        self._remember()

    # What a stage asks before and around a run

    @property
    def keeps_answers(self) -> bool:  # type: ignore[override]
        return self.response_cache is not None

    def check(self, model: str, processes: int = 1) -> None:
        """Raise ConfigError for what is known to be wrong before any of `processes` processes asks.

        A damaged cache is found here too, and no cache is made.
        """
        super().check(model, processes)
        self._key()
        if self.response_cache is not None and (self.response_cache / FILE).exists():
            ResponseCache(self.response_cache).close()
        elif self.cache == "only":
            raise ConfigError(
                f"{type(self).__name__}: expected answers in {self.response_cache}, because of cache='only'; there is "
                f"no {FILE}"
            )
        if self.max_total_cost is not None:
            price_for(model, self.prices, who=type(self).__name__)

    def content(self) -> dict[str, object]:
        """What decides the answers: the server's path. Its host, the key and the limits do not."""
        return {"client": "openai", "path": urlsplit(self.base_url).path}

    def spend_for(self, scope: str) -> None:
        """Say whose spending `max_total_cost` limits."""
        self._live_scope = scope

    def setup(self) -> None:
        """Get ready, in the process that asks."""
        self._key()
        if self.response_cache is not None and self.__dict__.get("_live_cache") is None:
            self._live_cache = ResponseCache(self.response_cache)

    @property
    def usage(self) -> Usage:
        """What has been used in this process."""
        usage: Usage | None = self.__dict__.get("_live_usage")
        if usage is None:
            usage = self.__dict__.setdefault("_live_usage", Usage())
        return usage

    async def close(self) -> None:
        """Close connections without waiting for what is under way, and write the answers that came."""
        live: Live | None = self.__dict__.pop("_live", None)
        kept: ResponseCache | None = self.__dict__.pop("_live_cache", None)
        try:
            if live is not None and not live.loop.is_closed():
                await live.close()
        finally:
            if kept is not None:
                await asyncio.get_running_loop().run_in_executor(None, kept.close)

    # Asking

    async def ask(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        sample: int = 0,
    ) -> Reply:
        """Return what came of a question, with what it took."""
        config = as_generation_config(generation_config)
        question = Question(self.base_url, list(messages), model, conversation_formatter, config, sample)
        kept = self._cache_here()
        if kept is not None:
            if self.cache == "refresh":
                kept.raise_if_failing()
            elif (stored := kept.get(question.key)) is not None:
                return self._from_cache(stored)
            if self.cache == "only":
                raise RequestFailed(
                    f"cache='only': expected an answer of {model} in {kept.path}; there is none to this question"
                )
        live = self._live_here()
        if live.loop is asyncio.get_running_loop():
            return await self._ask_once(live, question)
        asked = asyncio.run_coroutine_threadsafe(self._ask_once(live, question), live.loop)
        return await asyncio.wrap_future(asked)

    async def _query_model_impl(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        reply = await self.ask(
            messages=messages,
            model=model,
            conversation_formatter=conversation_formatter,
            generation_config=generation_config,
        )
        return reply.texts

    async def _ask_once(self, live: Live, question: Question) -> Reply:
        """Ask, or wait for the answer if the same question is under way.

        The request is a task of its own: even if its caller is cancelled, what is paid for is kept.
        """
        running = live.under_way.get(question.key)
        if running is None:
            return await asyncio.shield(live.begin(question.key, self._answered(live, question)))
        reply = await asyncio.shield(running)
        return replace(reply, requests=0, retries={})

    async def _answered(self, live: Live, question: Question) -> Reply:
        try:
            async with asyncio.timeout(self.deadline_s) as deadline:
                reply = await self._until_answered(live, question)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise _failed(question, Failure("deadline", detail=f"no answer within {self.deadline_s:g} s"), 1) from None
        usage = self.usage
        usage.answers += 1
        usage.prompt_tokens += reply.prompt_tokens
        usage.completion_tokens += reply.completion_tokens
        usage.cost += reply.cost
        return reply

    async def _until_answered(self, live: Live, question: Question) -> Reply:
        policy, gate, attempt, requests, kinds = live.gate.window.policy, live.gate, 0, 0, Counter[str]()
        load = question.load(self.prices.get(question.model))
        while True:
            ticket = await gate.enter(load)
            told = False
            requests += 1
            self.usage.requests += 1
            try:
                got = await live.transport.post(question.url, live.headers, question.body, self.timeout)
                outcome = got if isinstance(got, Failure) else parsed(got, streamed=question.is_streamed)
                told = True
            finally:
                if not told:
                    gate.abandoned(ticket)
            if isinstance(outcome, Parsed):
                reply = self._reply(question, outcome, requests, kinds)
                gate.succeeded(ticket, Load(reply.prompt_tokens + reply.completion_tokens, reply.cost))
                return reply
            gate.failed(ticket, outcome)
            if gate.window.is_shut:
                raise self._shut_error(gate.window)
            kinds[outcome.kind] += 1
            self.usage.retries[outcome.kind] += 1
            if outcome.nothing_sent:
                wait_s: float | None = policy.backoff_s(gate.window.refused, random.random())
            else:
                wait_s = policy.wait_s(outcome, attempt, random.random())
                attempt += 1
            if wait_s is None:
                raise _failed(question, outcome, requests)
            await asyncio.sleep(wait_s)

    def _reply(self, question: Question, got: Parsed, requests: int, kinds: Mapping[str, int]) -> Reply:
        cost = cost_of(self.prices.get(question.model), got.prompt_tokens, got.completion_tokens)
        kept = self._cache_here()
        if kept is not None:
            stored = Stored(got.answers, got.model, got.prompt_tokens, got.completion_tokens, time.time())
            kept.put(question.key, stored, scope=self.__dict__.get("_live_scope", ""), cost=cost)
        return Reply(
            got.answers,
            got.model,
            got.prompt_tokens,
            got.completion_tokens,
            requests=requests,
            retries=dict(kinds),
            cost=cost,
        )

    def _from_cache(self, stored: Stored) -> Reply:
        self.usage.cache_hits += 1
        return Reply(stored.answers, stored.model, stored.prompt_tokens, stored.completion_tokens, from_cache=True)

    # What belongs to a process or an event loop

    def _cache_here(self) -> ResponseCache | None:
        if self.response_cache is None:
            return None
        if self.__dict__.get("_live_cache") is None:  # setup was not called
            self._live_cache = ResponseCache(self.response_cache)
        kept: ResponseCache | None = self._live_cache
        return kept

    def _live_here(self) -> Live:
        """What is shared by all calls. It is on the first call's loop; another takes over when that has stopped."""
        with _MAKING:
            live: Live | None = self.__dict__.get("_live")
            here = asyncio.get_running_loop()
            if live is None or (live.loop is not here and not live.loop.is_running()):
                gate = Gate(self.window(), self._shut_error)
                live = self._live = Live(here, gate, AiohttpTransport(), self.headers())
            return live

    def window(self) -> Window:
        """A new window with this process's share of the limits."""
        share = self._share
        rates = (self.requests_per_minute, self.tokens_per_minute)
        requests, tokens = (None if most is None else Pace(most / share) for most in rates)
        budget = None
        if self.max_total_cost is not None:
            kept = self._cache_here()
            spent = 0.0 if kept is None else kept.spent(self.__dict__.get("_live_scope", ""))
            budget = Budget(spent + max(0.0, self.max_total_cost - spent) / share, spent)
        policy = RetryPolicy(self.max_retries, self.base_delay)
        return Window(self.window_size, policy, requests, tokens, budget)

    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        key = self._key()
        own = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "gristmill"}
        return own | ({"Authorization": f"Bearer {key}"} if key else {}) | self._headers_secret

    def _key(self) -> str:
        key = str(self._api_key or os.environ.get(KEY_VARIABLE) or "")
        secrets.remember({"api_key": key})
        if not key and self.base_url == OPENAI:
            raise ConfigError(
                f"{type(self).__name__}: expected a key for {OPENAI} as api_key or in {KEY_VARIABLE}, here and on "
                "the machines that ask; got none"
            )
        return key

    def _remember(self) -> None:
        secrets.remember({"api_key": self._api_key, **self._headers_secret})

    def _shut_error(self, window: Window) -> ServerRefused:
        last = window.last_refusal
        what = "nothing" if last is None else str(last.status) if last.status else "no connection"
        said = f": {last.detail}" if last is not None and last.detail else ""
        kept = "" if self.response_cache is None else f" Nothing answered was lost: it is in {self.response_cache}."
        who = f"{type(self).__name__}: {what} from {self.base_url}"
        return ServerRefused(f"{who} for the last {IN_A_ROW} requests; stopped{said}.{kept}")

    # A pickle goes to other processes, and on clusters into a store: keys must not be readable in it.

    def __getstate__(self) -> dict[str, object]:
        state = super().__getstate__()
        given = [state.pop("_api_key"), state.pop("_headers_secret")]
        return state | {"_masked": secrets.masked(msgspec.json.encode(given))}

    def __setstate__(self, state: dict[str, object]) -> None:
        state = dict(state)
        masked = cast("bytes", state.pop("_masked"))
        self._api_key, self._headers_secret = msgspec.json.decode(secrets.unmasked(masked))
        self.__dict__.update(state)
        self._remember()


_MAKING = threading.Lock()  # of what is made once: two event loops, or threads, may ask for the first time at once


class OpenAIClient(LLMClient):
    """The same for code without `async`. Many threads may use it; they share one window.

    Takes what `AsyncOpenAIClient` takes. Its event loop runs in a thread of its own, from the first question on.
    """

    def __init__(self, **kwargs: object) -> None:
        self.asynchronous = AsyncOpenAIClient(**kwargs)  # type: ignore[arg-type]  # checked there
        self.max_concurrent_requests = self.asynchronous.max_concurrent_requests

    def setup(self) -> None:
        self.asynchronous.setup()

    def query_model(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        """Return the texts a model answers with."""
        with _MAKING:
            loop = self.__dict__.get("_live_loop")
            if loop is None:
                loop = self._live_loop = asyncio.new_event_loop()
                self._live_thread = threading.Thread(target=loop.run_forever, name="gristmill-openai", daemon=True)
                self._live_thread.start()
        asked = self.asynchronous.query_model(
            messages=messages,
            model=model,
            conversation_formatter=conversation_formatter,
            generation_config=generation_config,
        )
        return asyncio.run_coroutine_threadsafe(asked, loop).result()

    def close(self) -> None:
        """Close connections and write the answers that came."""
        loop = self.__dict__.pop("_live_loop", None)
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self.asynchronous.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._live_thread.join()
            loop.close()

    def content(self) -> dict[str, object]:
        """What decides the answers, for the fingerprint of a plan."""
        return self.asynchronous.content()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_live")}


def _url(given: object, who: str) -> str:
    parts = urlsplit(str(given))
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(f"{who}: expected base_url like 'https://host/v1'; got {given!r}")
    return str(given).rstrip("/")


def _headers(given: Mapping[str, object]) -> dict[str, str]:
    named = {"organization": "OpenAI-Organization", "project": "OpenAI-Project"}
    headers = {header: str(given[name]) for name, header in named.items() if given.get(name)}
    own = given.get("default_headers")
    return headers | ({str(name): str(value) for name, value in own.items()} if isinstance(own, Mapping) else {})


def _failed(question: Question, failure: Failure, requests: int) -> RequestFailed:
    what = failure.kind if failure.status is None else f"status {failure.status}"
    times = f"{requests} request{'s' * (requests != 1)}"
    error = RequestFailed(f"{question.url}: expected an answer; got {what} after {times}: {failure.detail}")
    error.status, error.attempts = failure.status, requests
    return error
