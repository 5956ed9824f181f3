"""A hub on this machine: repositories of files over HTTP, with the few answers that huggingface_hub asks for.

It counts what it gave away, wants a token for repositories that are gated, and gives a file damaged if it is told to.
"""

import contextlib
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_aTokenThatMustNotBeSeen"
LARGE = 1000  # bytes from which a file has the hash of large files


@dataclass
class Hub:
    """What the double holds, and what it has been asked for."""

    files: dict[str, dict[str, bytes]]  # repository -> name -> content
    gated: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)  # names of files that are not sent as they are
    given: Counter[str] = field(default_factory=Counter)  # names of files that were sent
    asked: Counter[str] = field(default_factory=Counter)  # repositories that were listed
    held: set[str] = field(default_factory=set)  # names of files that end in the middle until `go` is set
    halfway: threading.Event = field(default_factory=threading.Event)  # set when half of such a file was sent
    go: threading.Event = field(default_factory=threading.Event)
    endpoint: str = ""

    def revision(self, repository: str) -> str:
        listed = json.dumps(
            sorted((name, hashlib.sha1(data).hexdigest()) for name, data in self.files[repository].items())
        )
        return hashlib.sha1(listed.encode()).hexdigest()

    def etag(self, data: bytes) -> str:
        if len(data) >= LARGE:
            return hashlib.sha256(data).hexdigest()
        return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()

    def describe(self, repository: str) -> dict[str, object]:
        siblings = []
        for name, data in self.files[repository].items():
            git = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
            entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": git}
            if len(data) >= LARGE:
                digest = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"sha256": digest, "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        return {"id": repository, "modelId": repository, "sha": self.revision(repository), "siblings": siblings}

    def tree(self, repository: str, folder: str) -> list[dict[str, object]]:
        """The files and folders directly below a folder, as a dataset is listed by whoever reads it as files."""
        ahead = f"{folder}/" if folder else ""
        found: dict[str, dict[str, object]] = {}
        for name, data in self.files[repository].items():
            if name.startswith(ahead):
                first, slash, _ = name.removeprefix(ahead).partition("/")
                path, git = ahead + first, hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
                kind = "directory" if slash else "file"
                found[path] = {"type": kind, "path": path, "oid": git, "size": 0 if slash else len(data)}
        return list(found.values())


class Handler(BaseHTTPRequestHandler):
    """One request. Every connection is closed behind it: a client that keeps one would meet the hub of another test."""

    hub: Hub

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        is_listing = path.startswith("api/")
        owner, name, *rest = re.sub(r"^(api/)?(models/|datasets/)?", "", path).split("/")
        repository = f"{owner}/{name}"
        if repository not in self.hub.files:
            self._refuse(401, "RepoNotFound")
        elif repository in self.hub.gated and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._refuse(403, "GatedRepo")
        elif is_listing and rest[:1] == ["tree"]:
            tree = self.hub.tree(repository, "/".join(rest[2:]))
            self._send(json.dumps(tree).encode(), {"Content-Type": "application/json"})
        elif is_listing and rest[:1] == ["revision"] and rest[1] not in ("main", self.hub.revision(repository)):
            self._refuse(404, "RevisionNotFound")
        elif is_listing:
            self.hub.asked[repository] += 1
            self._send(json.dumps(self.hub.describe(repository)).encode(), {"Content-Type": "application/json"})
        else:
            self._give(repository, rest[1], "/".join(rest[2:]), body=body)

    def _give(self, repository: str, revision: str, file: str, *, body: bool) -> None:
        data = self.hub.files[repository].get(file)
        if data is None or revision not in ("main", self.hub.revision(repository)):
            self._refuse(404, "EntryNotFound")
            return
        headers = {"ETag": f'"{self.hub.etag(data)}"', "X-Repo-Commit": self.hub.revision(repository)}
        if body:
            self.hub.given[file] += 1
            data = data[::-1] if file in self.hub.damaged else data
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if body else None
        if asked is not None:
            end = min(int(asked[2]) + 1 if asked[2] else len(data), len(data))
            headers["Content-Range"] = f"bytes {asked[1]}-{end - 1}/{len(data)}"
            self._send(data[int(asked[1]) : end], headers, status=206)
            return
        self._send(data, headers, body=body, is_held=body and file in self.hub.held)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", "no")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(
        self, data: bytes, headers: dict[str, str], *, body: bool = True, is_held: bool = False, status: int = 200
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if is_held:
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.hub.halfway.set()
            self.hub.go.wait(60)
            return
        if body:
            self.wfile.write(data)


@contextlib.contextmanager
def running(files: dict[str, dict[str, bytes]]) -> Iterator[Hub]:
    """Serve repositories on a free port until the end of the block."""
    hub = Hub(files)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HandlerOfOne", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        hub.go.set()
        server.shutdown()
        thread.join()
        server.server_close()
