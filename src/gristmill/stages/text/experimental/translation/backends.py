"""What translates, if not a language model: a translation server, Amazon, Google. To a stage, they are just clients.

    nmt     POST {server_url}/translate {"texts": [...], "src_lang": ..., "tgt_lang": ...} -> {"translations": [...]}
    aws     Amazon Translate through boto3, at most 10,000 bytes a request
    google  Google Translate through google-cloud-translate

A client of a language model is asked with messages; these take the last message as the text to translate. So retries,
the window of requests, quarantine and counts are those of every stage that asks (`stages/synthetic/llm_stage.py`).
"""

import asyncio
import importlib.util
import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gristmill.errors import ConfigError, MissingDependency, ServerRefused, check_installed, nearest
from gristmill.models.client.llm_client import (
    Answer,
    AsyncLLMClient,
    ConversationFormatter,
    GenerationConfig,
    Message,
    Reply,
    RequestFailed,
)
from gristmill.models.client.retry import IN_A_ROW, Failure, RetryPolicy
from gristmill.models.client.transport import AiohttpTransport

BACKENDS = ("llm", "aws", "google", "nmt")
NMT_BATCH, NMT_TIMEOUT_S = 32, 120.0
AWS_BYTES = 10_000  # of one request
MAX_RETRIES, BASE_DELAY_S = 3, 1.0
_OWN_FAULT = ("Invalid", "Unsupported", "Denied", "Forbidden", "Unauthor", "Credentials")


class _TryAgain(OSError):
    """An error that may pass: a server that is away or busy."""


class _TextRefused(RequestFailed):
    """A server will not translate this text, and may well translate others."""


class TranslationClient(AsyncLLMClient):
    """Translates the last message of a conversation.

    `requests` are under way at a time, in the whole run. A backend that has failed ten texts in a row, retries
    included, is not asked again: no document is to blame for it.
    """

    def __init__(self, source_lang: str, target_lang: str, requests: int, *, texts_a_request: int = 1) -> None:
        super().__init__(requests * texts_a_request, MAX_RETRIES, BASE_DELAY_S)
        self.requests = requests
        self.source_lang = source_lang
        self.target_lang = target_lang

    def setup(self) -> None:
        """Connections are made with the first request."""

    async def translate(self, text: str) -> str:
        """Return the translation of one text, or raise."""
        raise NotImplementedError

    @property
    def requests_here(self) -> int:
        """Requests this process may have under way."""
        return max(1, self.requests // self._share)

    def is_transient(self, error: BaseException) -> bool:
        """Whether it may help to ask again."""
        return isinstance(error, _TryAgain)

    async def ask(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | Mapping[str, object] | None = None,
        sample: int = 0,
    ) -> Reply:
        """Return the translation of the last message."""
        del conversation_formatter, generation_config, sample
        failed: list[BaseException | None] = self.__dict__.setdefault("_live_failed", [])
        text = None
        try:
            text, retries = await self._with_retries(str(list(messages)[-1]["content"]))
        finally:
            error = sys.exc_info()[1]
            if text is not None:
                failed.clear()
            elif not isinstance(error, _TextRefused | asyncio.CancelledError):
                failed.append(error)
                if len(failed) >= IN_A_ROW:
                    raise ServerRefused(
                        f"{type(self).__name__}: {len(failed)} texts in a row were not translated; the last: {error}"
                    ) from error
        return Reply((Answer(text),), model, requests=1 + retries, retries={"translation": retries} if retries else {})

    async def _with_retries(self, text: str) -> tuple[str, int]:
        policy = RetryPolicy(self.max_retries, self.base_delay)
        attempt = 0
        while True:
            call = asyncio.ensure_future(self.translate(text))
            try:
                await asyncio.wait([call])
            finally:
                call.cancel()
            error = call.exception()
            if error is None:
                return call.result(), attempt
            wait_s = policy.wait_s(Failure("translation"), attempt, random.random())
            if wait_s is None or not self.is_transient(error):
                raise error
            attempt += 1
            await asyncio.sleep(wait_s)

    async def _query_model_impl(
        self,
        *,
        messages: Iterable[Message],
        model: str,
        conversation_formatter: ConversationFormatter | None = None,
        generation_config: GenerationConfig | dict[str, object] | None = None,
    ) -> list[str]:
        del model, conversation_formatter, generation_config
        return [await self.translate(str(list(messages)[-1]["content"]))]


_Waiting = tuple[str, "asyncio.Future[str]"]


class NMTClient(TranslationClient):
    """A translation server that takes several texts in one request.

    Texts that wait at the same time travel together. A request that is refused is repeated for each of its texts
    alone, so that one text a server cannot digest fails by itself.
    """

    def __init__(
        self,
        source_lang: str,
        target_lang: str,
        requests: int,
        *,
        server_url: str,
        batch_size: int = NMT_BATCH,
        timeout: float = NMT_TIMEOUT_S,
    ) -> None:
        super().__init__(source_lang, target_lang, requests, texts_a_request=batch_size)
        self.url = f"{server_url.rstrip('/')}/translate"
        self.batch_size = batch_size
        self.timeout = timeout

    async def translate(self, text: str) -> str:
        """Return the translation of one text, sent together with others that wait."""
        loop = asyncio.get_running_loop()
        live = self._live_here(loop)
        answer: asyncio.Future[str] = loop.create_future()
        live.waiting.append((text, answer))
        if len(live.waiting) == 1:
            loop.call_soon(self._send_waiting)  # after everything that is about to ask in this round of the loop
        return await answer

    def _send_waiting(self) -> None:
        live = self._live_here(asyncio.get_running_loop())
        while live.waiting and len(live.sending) < self.requests_here:
            some, live.waiting = live.waiting[: self.batch_size], live.waiting[self.batch_size :]
            task = asyncio.ensure_future(self._send(live, some))
            live.sending.add(task)
            task.add_done_callback(self._sent)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        live: _Live | None = self.__dict__.get("_live")
        if live is not None:
            live.sending.discard(task)
            self._send_waiting()

    async def _send(self, live: "_Live", some: list[_Waiting]) -> None:
        """Send some texts, and give each its translation or the error."""
        try:
            translations: list[str] | Exception = await self._post(live.transport, [text for text, _ in some])
        except (OSError, RequestFailed) as error:
            translations = error
        if isinstance(translations, _TextRefused) and len(some) > 1:
            for each in some:
                await self._send(live, [each])
            return
        for number, (_, answer) in enumerate(some):
            if answer.done():  # its caller has given up
                continue
            if isinstance(translations, Exception):
                answer.set_exception(translations)
            else:
                answer.set_result(translations[number])

    async def _post(self, transport: AiohttpTransport, texts: list[str]) -> list[str]:
        body = json.dumps({"texts": texts, "src_lang": self.source_lang, "tgt_lang": self.target_lang}).encode()
        got = await transport.post(self.url, {"Content-Type": "application/json"}, body, self.timeout)
        if isinstance(got, Failure):
            raise _TryAgain(f"{self.url}: {got.kind}: {got.detail}")
        if got.status != 200:
            failure = Failure(str(got.status), got.status)
            kind = _TryAgain if failure.is_retried else RequestFailed if failure.is_refusal else _TextRefused
            raise kind(f"{self.url}: expected status 200; got {got.status}: {got.tail}")
        try:
            translations = json.loads(got.body)["translations"]
        except (ValueError, KeyError, TypeError):
            raise _TryAgain(f"{self.url}: expected JSON with translations; got {got.tail!r}") from None
        if not isinstance(translations, list) or len(translations) != len(texts):
            number = len(translations) if isinstance(translations, list) else 0
            raise _TextRefused(f"{self.url}: expected {len(texts)} translations; got {number}")
        return [each if isinstance(each, str) else "" for each in translations]

    def _live_here(self, loop: asyncio.AbstractEventLoop) -> "_Live":
        """What belongs to this event loop."""
        live: _Live | None = self.__dict__.get("_live")
        if live is None or live.loop is not loop:
            live = self.__dict__["_live"] = _Live(loop, AiohttpTransport())
        return live

    async def close(self) -> None:
        """Close connections; what is under way is given up."""
        live: _Live | None = self.__dict__.pop("_live", None)
        if live is not None and live.loop is asyncio.get_running_loop():
            for task in live.sending:
                task.cancel()
            await live.transport.close()


@dataclass(eq=False)
class _Live:
    loop: asyncio.AbstractEventLoop
    transport: AiohttpTransport
    waiting: list[_Waiting] = field(default_factory=list)
    sending: set["asyncio.Task[None]"] = field(default_factory=set)


class ThreadClient(TranslationClient):
    """A client whose library blocks: each request has a thread while it is under way."""

    def service(self) -> Callable[[str], str]:
        """Return what translates one text with the library, which is imported here."""
        raise NotImplementedError

    async def translate(self, text: str) -> str:
        """Return the translation of one text."""
        loop = asyncio.get_running_loop()
        held = self.__dict__.get("_live_service")
        if held is None or held[0] is not loop:
            held = self.__dict__["_live_service"] = (loop, asyncio.Semaphore(self.requests_here), self.service())
        async with held[1]:
            return str(await asyncio.to_thread(held[2], text))

    def is_transient(self, error: BaseException) -> bool:
        """Whether it may help to ask again: the libraries' error names say what is the request's own fault."""
        return not any(name in type(error).__name__ for name in _OWN_FAULT)


class AWSClient(ThreadClient):
    """Amazon Translate. A text over 10,000 bytes is translated in parts, cut where there is a space."""

    def __init__(self, source_lang: str, target_lang: str, requests: int, *, region: str = "us-east-1") -> None:
        super().__init__(source_lang, target_lang, requests)
        self.region = region

    def service(self) -> Callable[[str], str]:
        """Return a function that asks Amazon."""
        amazon = importlib.import_module("boto3").client("translate", region_name=self.region)

        def translate(text: str) -> str:
            return "".join(
                amazon.translate_text(
                    Text=part, SourceLanguageCode=self.source_lang, TargetLanguageCode=self.target_lang
                )["TranslatedText"]
                if part.strip()
                else part
                for part in parts_of(text, AWS_BYTES)
            )

        return translate


class GoogleClient(ThreadClient):
    """Google Translate: the basic interface, or the advanced one if `project_id` is given."""

    def __init__(
        self,
        source_lang: str,
        target_lang: str,
        requests: int,
        *,
        project_id: str | None = None,
        location: str = "global",
    ) -> None:
        super().__init__(source_lang, target_lang, requests)
        self.project_id = project_id
        self.location = location

    def service(self) -> Callable[[str], str]:
        """Return a function that asks Google."""
        languages = self.source_lang, self.target_lang
        if self.project_id is None:
            basic = importlib.import_module("google.cloud.translate_v2").Client()
            return lambda text: str(
                basic.translate(text, source_language=languages[0], target_language=languages[1], format_="text")[
                    "translatedText"
                ]
            )
        advanced = importlib.import_module("google.cloud.translate_v3").TranslationServiceClient()
        request = {
            "parent": f"projects/{self.project_id}/locations/{self.location}",
            "mime_type": "text/plain",
            "source_language_code": languages[0],
            "target_language_code": languages[1],
        }
        return lambda text: str(
            advanced.translate_text(request={**request, "contents": [text]}).translations[0].translated_text
        )


def parts_of(text: str, most_bytes: int) -> list[str]:
    """Cut a text into parts of at most `most_bytes`, after a space where there is one.

    >>> parts_of("one two three", 8)
    ['one two ', 'three']
    """
    parts, data = [], text.encode("utf-8", "replace")
    while len(data) > most_bytes:
        end = data.rfind(b" ", 0, most_bytes) + 1 or most_bytes
        while end > 1 and data[end] & 0xC0 == 0x80:  # not inside of a character
            end -= 1
        parts.append(data[:end].decode())
        data = data[end:]
    return [*parts, data.decode()] if data or not parts else parts


_KINDS: dict[str, tuple[type[TranslationClient], str, str, tuple[str, ...]]] = {
    # backend: class, module it needs, how to install it, options
    "nmt": (NMTClient, "aiohttp", "", ("server_url", "batch_size", "timeout", "max_concurrent_requests")),
    "aws": (AWSClient, "boto3", "pip install boto3", ("region", "max_concurrent_requests")),
    "google": (
        GoogleClient,
        "google.cloud.translate",
        "pip install google-cloud-translate",
        ("project_id", "location", "max_concurrent_requests"),
    ),
}


def translation_client(
    backend: str,
    config: Mapping[str, object],
    source_lang: str,
    target_lang: str,
    max_concurrent_requests: int,
    *,
    who: str,
) -> TranslationClient:
    """Return the client of a backend; what is wrong with its options, or not installed, is reported now."""
    kind, module, command, options = _KINDS[backend]
    for name in config:
        if name not in options:
            raise ConfigError(
                f"{who}: expected options of the backend {backend!r} among {options}; got {name!r}"
                f"{nearest(name, options)}"
            )
    if backend == "nmt" and not str(config.get("server_url") or "").startswith(("http://", "https://")):
        raise ConfigError(
            f"{who}: expected backend_config to name the server, as in {{'server_url': 'http://localhost:8000'}}; "
            f"got {config.get('server_url')!r}"
        )
    if command and not _is_installed(module):
        raise MissingDependency(
            f"{who}: expected {module} for backend_type={backend!r}; it is not installed. {command}"
        )
    if not command:
        check_installed(module, extra="llm")
    given: dict[str, Any] = dict(config)
    most = int(given.pop("max_concurrent_requests", max_concurrent_requests))
    return kind(source_lang, target_lang, most, **given)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # a parent of it is missing; or it was put into sys.modules by hand
        return module in sys.modules
