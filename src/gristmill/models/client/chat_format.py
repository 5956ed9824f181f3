"""What a server of the usual kind is sent and what it answers, as bytes: ten fields of JSON, or a stream of them."""

from collections.abc import Iterable, Mapping
from functools import cache
from urllib.parse import urlsplit

import msgspec

from gristmill.models.client.llm_client import Answer, ConversationFormatter, GenerationConfig, Message
from gristmill.models.client.response_cache import cache_key
from gristmill.models.client.retry import Failure, Load
from gristmill.models.client.transport import TAIL_CHARS, Response
from gristmill.models.client.usage import Price, cost_of

_UNKNOWN_ANSWER_TOKENS = 4096  # reserved where max_tokens is not set


class Parsed(msgspec.Struct, frozen=True):
    """An answer as it came."""

    answers: tuple[Answer, ...]
    model: str
    prompt_tokens: int
    completion_tokens: int


def encoded(body: Mapping[str, object]) -> bytes:
    """Return a request as JSON, its fields in the order of their names: equal requests are equal bytes.

    What is not valid Unicode is replaced, in the request only.
    """
    try:
        return msgspec.json.encode(body, order="sorted")
    except UnicodeEncodeError:  # lone surrogates
        return msgspec.json.encode(_clean(body), order="sorted")


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {key: _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value


def parsed(response: Response, *, streamed: bool) -> Parsed | Failure:
    """Return what a response says, or why it says nothing."""
    if response.status != 200:
        return Failure(str(response.status), response.status, response.retry_after_s, response.tail)
    try:
        data = _joined(response.body) if streamed else msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Failure("not_json", detail=response.tail)
    if data is None:
        return Failure("cut", detail=response.tail)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices:
        return Failure("no_choice", detail=response.tail)
    answers = []
    for choice in choices:
        answer = _answer(choice)
        if answer is None:
            return Failure("null_content", detail=response.tail)
        answers.append(answer)
    usage = data.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Parsed(
        tuple(answers),
        str(data.get("model") or ""),
        _number(usage.get("prompt_tokens")),
        _number(usage.get("completion_tokens")),
    )


def _answer(choice: object) -> Answer | None:
    if not isinstance(choice, dict):
        return None
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else choice.get("text")
    return Answer(text, str(choice.get("finish_reason") or "stop")) if isinstance(text, str) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _joined(body: bytes) -> dict[str, object] | None:
    """Join the events of a stream into one answer; None if the stream ended before the answer did."""
    texts: dict[int, list[str]] = {}
    reasons: dict[int, str] = {}
    data: dict[str, object] = {}
    is_over = False
    for event in _events(body):
        if event == b"[DONE]":
            is_over = True
            break
        part = msgspec.json.decode(event)
        if not isinstance(part, dict):
            continue
        data |= {key: part[key] for key in ("model", "usage", "error") if part.get(key) is not None}
        choices = part.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            number = _number(choice.get("index"))
            delta = choice.get("delta")
            piece = delta.get("content") if isinstance(delta, dict) else choice.get("text")
            texts.setdefault(number, []).append(piece if isinstance(piece, str) else "")
            if choice.get("finish_reason"):
                reasons[number] = str(choice["finish_reason"])
    if not is_over and (not texts or texts.keys() - reasons.keys()):
        return None
    data["choices"] = [
        {"text": "".join(pieces), "finish_reason": reasons.get(number)} for number, pieces in sorted(texts.items())
    ]
    return data


def _events(body: bytes) -> Iterable[bytes]:
    lines = body.splitlines()
    if not any(line.startswith(b"data:") for line in lines):
        raise msgspec.DecodeError(f"expected events; got {body[-TAIL_CHARS:]!r}")
    return (line[5:].strip() for line in lines if line.startswith(b"data:"))


@cache
def _address(base_url: str, what: str) -> tuple[str, str]:
    """Where requests go, and its path."""
    url = f"{base_url}/{what}"
    return url, urlsplit(url).path


class Question:
    """One question: the request that is sent for it, and the key its answer is kept under.

    With a formatter the messages go as one text to the server's `/completions`, for a model without a chat template.
    """

    def __init__(
        self,
        base_url: str,
        messages: list[Message],
        model: str,
        formatter: ConversationFormatter | None,
        config: GenerationConfig,
        sample: int,
    ) -> None:
        self.model = model
        self.is_streamed = config.stream
        self.max_tokens = config.max_tokens
        self.answers = config.n or 1
        body: dict[str, object] = {"model": model, **config.as_request()}
        if self.is_streamed:
            body.setdefault("stream_options", {"include_usage": True})
        if formatter is None:
            body["messages"] = messages
            self.url, path = _address(base_url, "chat/completions")
        else:
            body["prompt"] = formatter.format_conversation([dict(message) for message in messages])
            self.url, path = _address(base_url, "completions")
        self.body = encoded(body)
        self.key = cache_key(path, self.body, sample)

    def load(self, price: Price | None) -> Load:
        """Return the most it can use."""
        sent = 16 + len(self.body) // 3  # rather too many than too few: money is reserved by it
        answered = self.answers * (self.max_tokens or _UNKNOWN_ANSWER_TOKENS)
        return Load(sent + answered, cost_of(price, sent, answered))
