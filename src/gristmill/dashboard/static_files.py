"""The files of the page, read once. A request names one of a fixed list; nothing in it becomes a path."""

import gzip
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}


class StaticFile(NamedTuple):
    """A file as it is sent."""

    content_type: str
    content: bytes
    zipped: bytes


def read_static(package: str, page: str = "index.html") -> Mapping[str, StaticFile]:
    """Return the files in `static/` of a package by the path they are asked for; the page is at `/`."""
    home = resources.files(package) / "static"
    found = {f"/static/{file.name}": _read(file) for file in home.iterdir() if _is_served(file.name)}
    vendor = home / "vendor"
    if vendor.is_dir():
        found |= {f"/static/vendor/{file.name}": _read(file) for file in vendor.iterdir() if _is_served(file.name)}
    return {"/": found[f"/static/{page}"], **found}


def _is_served(name: str) -> bool:
    return name.rpartition(".")[2] in CONTENT_TYPES


def _read(file: "resources.abc.Traversable") -> StaticFile:
    content = file.read_bytes()
    return StaticFile(CONTENT_TYPES[file.name.rpartition(".")[2]], content, gzip.compress(content, 9, mtime=0))
