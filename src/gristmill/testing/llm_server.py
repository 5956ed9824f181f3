"""`MisbehavingServer`: a language model's server for tests, which fails as real ones do and counts what it is sent.

    with MisbehavingServer(failing_share=0.4) as server:
        client = AsyncOpenAIClient(base_url=server.url, api_key="any")

It speaks as much of OpenAI's protocol as clients use, streams included, on 127.0.0.1 and a free port. Which requests
fail, how and how often is decided by a hash of the request, so that a failure repeats; answers too. Times are by the
server's own clock: what a client says of itself proves little.
`python -m gristmill.testing.llm_server` runs one for other programs.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist

from gristmill.testing.loopback_server import LoopbackServer, read_head

KINDS = ("429", "429_ms", "500", "503", "hang", "cut", "html", "no_choice")
Request = dict[str, object]
_STATISTICS = "/statistics"  # what the server has seen, for another process; asking restarts the count
_MODELS = {"object": "list", "data": [{"id": "test-model", "object": "model"}]}


@dataclass(frozen=True, slots=True)
class Seen:
    """One request, as the server saw it. `kind` is how it failed, or "answered"; `ended` when that was sent."""

    at: float
    digest: str
    attempt: int  # of the same request, from 0
    kind: str
    ended: float


def echo(request: Request) -> str:
    """Answer with the last message in capital letters: easy to check, and different for every question."""
    return prompt_of(request).upper()


def prompt_of(request: Request) -> str:
    """Return the text of the last message."""
    messages = request.get("messages")
    if isinstance(messages, list) and messages:
        return str(messages[-1].get("content", ""))
    return str(request.get("prompt", ""))


def lognormal_s(median: float, sigma: float) -> Callable[[float], float]:
    """Return delays that are distributed like those of real servers. The argument is uniform in (0, 1)."""
    return lambda chance: median * math.exp(sigma * NormalDist().inv_cdf(chance))


@dataclass
class MisbehavingServer(LoopbackServer):
    """`failing_share` of all requests fail `failures` times, in one of `kinds`, and are then answered.

    `answer` makes the text from the request; `refuse` returns a status for requests that are never answered, or None.
    `delay` turns a hash of the request, uniform in (0, 1), into seconds. With `api_key` other keys get a 401.
    """

    failing_share: float = 0.0
    failures: int = 2
    kinds: tuple[str, ...] = KINDS
    answer: Callable[[Request], str] = echo
    refuse: Callable[[Request], int | None] = lambda _: None
    delay: Callable[[float], float] = lambda _: 0.0
    api_key: str | None = None
    retry_after_s: float = 0.02
    seed: int = 0
    port: int = 0
    log: list[Seen] = field(default_factory=list, init=False)
    in_flight: int = field(default=0, init=False)
    max_in_flight: int = field(default=0, init=False)
    _received: int = field(default=0, init=False)
    _attempts: Counter[str] = field(default_factory=Counter, init=False)

    # What a test asks

    @property
    def url(self) -> str:
        """To be given as `base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> int:
        """How many requests have been received, answered or not."""
        return self._received

    @property
    def answered(self) -> Counter[str]:
        """How often each request, by its hash, was answered."""
        return Counter(seen.digest for seen in list(self.log) if seen.kind == "answered")

    def forget(self) -> None:
        """Start counting afresh; failures that are over stay over."""
        self.log.clear()
        self._received = 0
        self.max_in_flight = 0

    def _statistics(self) -> dict[str, float]:
        seen = list(self.log)
        told = {
            "requests": self.requests,
            "answered": sum(each.kind == "answered" for each in seen),
            "max_in_flight": self.max_in_flight,
            "wall_s": max((each.ended for each in seen), default=0.0) - min((each.at for each in seen), default=0.0),
            "in_flight_s": sum(each.ended - each.at for each in seen),
        }
        self.forget()
        return told

    # One connection

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, headers = await read_head(reader)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if first.startswith("GET"):
            asked = self._statistics() if _STATISTICS in first else _MODELS
            return await self._send(writer, 200, json.dumps(asked))
        at = time.monotonic()
        self._received += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        digest = hashlib.blake2b(body, digest_size=8, salt=self.seed.to_bytes(8, "little")).hexdigest()
        attempt = self._attempts[digest]
        self._attempts[digest] += 1
        kind = "gone"  # unless something is sent
        try:
            kind, goes_on = await self._respond(reader, writer, json.loads(body), headers, digest, attempt)
        finally:
            self.in_flight -= 1
            self.log.append(Seen(at, digest, attempt, kind, time.monotonic()))
        return goes_on

    async def _respond(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: Request,
        headers: dict[str, str],
        digest: str,
        attempt: int,
    ) -> tuple[str, bool]:
        chances = [int(digest[i : i + 4], 16) / 0x10000 for i in (0, 4, 8)]
        if self.api_key is not None and headers.get("authorization") != f"Bearer {self.api_key}":
            return "401", await self._send(writer, 401, json.dumps({"error": {"message": "Incorrect API key"}}))
        if (status := self.refuse(request)) is not None:
            return str(status), await self._send(writer, status, json.dumps({"error": {"message": "refused"}}))
        if chances[0] < self.failing_share and attempt < self.failures:
            kind = self.kinds[(int(chances[1] * 0x10000) + attempt) % len(self.kinds)]
            return kind, await self._misbehave(reader, writer, kind)
        seconds = self.delay(chances[2] + 1 / 0x20000)
        if seconds:
            await asyncio.sleep(seconds)
        text = self.answer(request)
        if request.get("stream"):
            return "answered", await self._stream(writer, request, text)
        return "answered", await self._send(writer, 200, json.dumps(_completion(request, text, digest)))

    async def _misbehave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str) -> bool:
        if kind == "hang":
            await reader.read()  # until the client has had enough
            return False
        if kind == "cut":
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n"
            writer.write(head + b'{"choices": [{"mes')
            await writer.drain()
            return False
        bodies = {"html": "<html><body>It works!</body></html>", "no_choice": '{"choices": []}'}
        if kind in bodies:
            return await self._send(writer, 200, bodies[kind])
        status = int(kind.partition("_")[0])
        name, unit = ("retry-after-ms", 1000) if kind == "429_ms" else ("Retry-After", 1)
        headers = {name: f"{unit * self.retry_after_s:g}"} if status == 429 else {}
        return await self._send(writer, status, '{"error": {"message": "try again"}}', headers)

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, body: str, headers: dict[str, str] | None = None
    ) -> bool:
        content = body.encode()
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()
        return True

    async def _stream(self, writer: asyncio.StreamWriter, request: Request, text: str) -> bool:
        shown, reason, usage = _said(request, text)
        pieces = [shown[start : start + 7] for start in range(0, len(shown), 7)]
        events = [{"model": request.get("model"), "choices": [{"index": 0, "delta": {"content": p}}]} for p in pieces]
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        events.append({"choices": [], "usage": usage})
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        return await self._send(writer, 200, body)


def _said(request: Request, text: str) -> tuple[str, str, dict[str, int]]:
    """What a model says in as many words as it may, why it stopped, and what that used."""
    words, most, count = text.split(" "), request.get("max_tokens"), request.get("n")
    is_cut = isinstance(most, int) and len(words) > most
    shown = " ".join(words[:most]) if isinstance(most, int) else text
    sent = len(prompt_of(request).split(" "))
    answered = (count if isinstance(count, int) else 1) * len(shown.split(" "))
    usage = {"prompt_tokens": sent, "completion_tokens": answered, "total_tokens": sent + answered}
    return shown, "length" if is_cut else "stop", usage


def _completion(request: Request, text: str, digest: str) -> dict[str, object]:
    shown, reason, usage = _said(request, text)
    choice = {"message": {"role": "assistant", "content": shown}, "finish_reason": reason}
    count = request.get("n")
    choices = [{"index": index, **choice} for index in range(count if isinstance(count, int) else 1)]
    return {"id": digest, "model": request.get("model"), "choices": choices, "usage": usage}


def _main() -> None:
    parser = argparse.ArgumentParser(description="A server that misbehaves, for tests. Prints its address and serves.")
    parser.add_argument("--failing-share", type=float, default=0.0)
    parser.add_argument("--median-s", type=float, default=0.0)
    parser.add_argument("--sigma", type=float, default=0.8)
    given = parser.parse_args()
    server = MisbehavingServer(failing_share=given.failing_share)
    if given.median_s:
        server.delay = lognormal_s(given.median_s, given.sigma)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(lambda: print(server.url, flush=True)))


if __name__ == "__main__":
    _main()
