"""Keys by which the indexes of Common Crawl are sorted: the host turned round, then the path.

`https://www.Example.org/News/?q=1` has the key `org,example)/news?q=1`. How queries are sorted and which parameters are
left out is not repeated here: `host_key` and `path_key` are what a key begins with, and lookups then compare URLs.
"""

import contextlib
import re
from urllib.parse import urlsplit

_WWW = re.compile(r"^www\d*\.")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def host_key(url: str) -> str:
    """What the keys of all pages of a URL's host begin with.

    >>> host_key("https://www.example.org/a")
    'org,example)'
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    host = _WWW.sub("", (parts.hostname or "").lower().rstrip("."))
    with contextlib.suppress(UnicodeError):  # one that cannot be encoded is not in the index either
        host = host.encode("idna").decode() if not host.isascii() else host
    turned = ",".join(reversed(host.split("."))) if not re.fullmatch(r"[\d.]+", host) else host
    try:
        port = parts.port
    except ValueError:
        port = None
    shown = "" if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{port}"
    return f"{turned}{shown})"


def path_key(url: str) -> str:
    """What the key of a URL begins with, whatever becomes of its query.

    >>> path_key("https://www.example.org/A/b/?x=1")
    'org,example)/a/b'
    """
    path = urlsplit(url if "://" in url else f"http://{url}").path.lower().rstrip("/")
    return f"{host_key(url)}{path or '/'}"
