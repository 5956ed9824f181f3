"""Sending bytes to a server and reading what it answers: the one user of aiohttp.

A request takes a tenth of the processor time that the openai package takes (docs/adr/0025-own-client.md).
Whatever can go wrong below HTTP comes out as a `Failure`, so that no code above knows the library's exceptions.
"""

import time
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from gristmill.errors import require
from gristmill.models.client.retry import Failure, retry_after_s

TAIL_CHARS = 300  # of what a server says when it refuses


class Response(NamedTuple):
    """What a server answered, whatever its status."""

    status: int
    body: bytes
    retry_after_s: float | None = None

    @property
    def tail(self) -> str:
        """The end of the body, for people."""
        return self.body[-4 * TAIL_CHARS :].decode("utf-8", "replace")[-TAIL_CHARS:].strip()


class Transport(Protocol):
    """What a client needs of a network."""

    async def post(self, url: str, headers: dict[str, str], body: bytes, timeout_s: float) -> Response | Failure:
        """Send a request and read the whole answer."""

    async def close(self) -> None:
        """Close all connections, at once."""


class AiohttpTransport:
    """Connections of one event loop, kept open between requests. How many are open is the window's affair."""

    def __init__(self) -> None:
        self._aiohttp = aiohttp = require("aiohttp", extra="llm")
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        self._proxies: dict[str, str | None] = {}

    async def post(self, url: str, headers: dict[str, str], body: bytes, timeout_s: float) -> Response | Failure:
        """Send a request and read the whole answer."""
        aiohttp = self._aiohttp
        limit = aiohttp.ClientTimeout(total=timeout_s)
        # aiohttp would look for a proxy in threads, twice for every request: a third of all its time.
        proxy = self._proxies[url] if url in self._proxies else self._proxies.setdefault(url, _proxy_for(url))
        sent = self._session.post(url, data=body, headers=headers, timeout=limit, allow_redirects=False, proxy=proxy)
        try:
            async with sent as got:
                content = await got.read()
                wait_s = retry_after_s(got.headers, time.time()) if got.status >= 400 else None
                return Response(got.status, content, wait_s)
        except TimeoutError:
            return Failure("timeout", detail=f"nothing within {timeout_s:g} s")
        except aiohttp.ClientConnectorError as error:  # no connection came about: nothing was sent
            return Failure("refused", detail=str(error), nothing_sent=True)
        except aiohttp.ClientPayloadError as error:
            return Failure("cut", detail=str(error))
        except (aiohttp.ClientError, OSError) as error:
            return Failure("connection", detail=f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """Close all connections, at once."""
        await self._session.close()


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a server: HTTPS_PROXY, HTTP_PROXY, unless NO_PROXY excepts it."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
