"""Access to the dashboard: which requests are refused, and what a browser is told about every answer.

A run directory is private, and a port of this machine is not: any user of it, and any page open in a browser on it, can
ask there. So everything but the page itself needs a token, on this machine too. The page takes it from the
fragment of its address, which browsers do not send, and puts it into a header, which a form or a link on another
page cannot do. `Host` and `Origin` are checked besides: a name that somebody else's DNS server points at this machine
is refused before the token is looked at.
"""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.errors import ConfigError

TOKEN_HEADER = "X-Gristmill-Token"  # the name of a header, not a token  # noqa: S105
MIN_TOKEN_CHARS = 16

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ANSWER_HEADERS = (
    ("Content-Security-Policy", CONTENT_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


class Refusal(NamedTuple):
    """Why a request gets no answer."""

    status: int
    words: str


def new_token() -> str:
    """Return a token nobody can guess, short enough to be copied by hand."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """Decides whether a request is answered. `names` are those the page may be called by, without the port."""

    token: str | None
    names: frozenset[str]
    any_number: bool = False  # bound to every address: then any numeric address will do as `Host`, but not any name

    @classmethod
    def for_address(cls, host: str, token: str | None, *, also: Iterable[str] = ()) -> "Guard":
        """Return the guard of a server bound to `host`. Without a token it may only listen to this machine."""
        if token is None and not is_loopback(host):
            raise ConfigError(
                f"dashboard: expected a token for {host!r}, which other machines can reach; got none "
                "(leave out --no-token, or listen on 127.0.0.1)"
            )
        if token is not None and len(token) < MIN_TOKEN_CHARS:
            raise ConfigError(
                f"dashboard: expected a token of at least {MIN_TOKEN_CHARS} characters; got {len(token)} "
                "(leave out GRISTMILL_TOKEN and one is made)"
            )
        names = {host.lower(), *(name.lower() for name in also)}
        everywhere = host in ("", "0.0.0.0", "::")  # noqa: S104  # compared with, not bound to
        if everywhere:
            names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        if everywhere or is_loopback(host):
            names |= {"localhost", "127.0.0.1", "::1"}
        return cls(token, frozenset(names), any_number=everywhere)

    def refusal(self, method: str, headers: Mapping[str, str], *, is_page: bool) -> Refusal | None:
        """Return why the request is refused, or None. The page and its modules hold no data and need no token."""
        if method not in ("GET", "HEAD"):
            return Refusal(405, "expected GET: nothing here can be changed")
        host = headers.get("Host", "")
        if not self._knows(host):
            return Refusal(421, f"expected Host to be a name of this server; got {host[:100]!r}")
        origin = headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != host:
            return Refusal(403, "expected a page of this server to ask; got another Origin")
        if not is_page and not self.is_known(headers.get(TOKEN_HEADER, "")):
            return Refusal(401, "expected the token that was printed when the dashboard was started")
        return None

    def is_known(self, token: str) -> bool:
        """Whether the token is ours; the time this takes does not depend on how much of it is right."""
        return self.token is None or hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def _knows(self, host: str) -> bool:
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        if name in self.names:
            return True
        return self.any_number and _is_number(name)


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
