"""What the dashboard's server refuses, and whom it holds out against."""

import contextlib
import hashlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest

from gristmill.cli.run_files import RunFiles
from gristmill.dashboard.guard import TOKEN_HEADER, Guard
from gristmill.dashboard.kept_documents import KeptDocuments
from gristmill.dashboard.measures import Measures
from gristmill.dashboard.run_data import Books, Documents, Life, RunData, RunTime, Setting
from gristmill.dashboard.runs_site import RunsSite
from gristmill.dashboard.server import Answer, Limits, WebServer, Wrong
from gristmill.dashboard.shown_run import Readers, ShownRun
from gristmill.dashboard.watched_run import WatchedRun
from gristmill.errors import ConfigError

TOKEN = "correct-horse-battery-staple"
STATIC = resources.files("gristmill.dashboard") / "static"
SECRET = "the-content-of-a-file-that-is-no-part-of-the-page"


@dataclass
class Directory:
    path: Path

    def __str__(self):
        return str(self.path)

    def read(self, name):
        file = self.path / name
        return file.read_bytes() if file.is_file() else None

    def life(self):
        return Life("process 1", is_alive=True)


class Site(RunsSite):
    """With one answer that is too large for the buffers between two sockets."""

    def answer(self, path, query):
        if path == "/api/large":
            return Answer(bytes(50_000_000))
        return super().answer(path, query)


@contextlib.contextmanager
def serving(site, *, token: str | None = TOKEN, limits: Limits | None = None) -> Iterator[WebServer]:
    with WebServer(site, Guard.for_address("127.0.0.1", token), "127.0.0.1", 0, limits) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            site.end()
            server.shutdown()
            thread.join()


@pytest.fixture
def site(tmp_path):
    (tmp_path / "secret.txt").write_text(SECRET)

    def unread():
        raise AssertionError("nobody asked for this")

    return Site([ShownRun(WatchedRun(Directory(tmp_path)), Readers(unread, unread, unread, unread, unread))])


@pytest.fixture
def server(site):
    with serving(site) as made:
        yield made


def asked(server, path, *, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers)
        for name, value in ({TOKEN_HEADER: TOKEN} | headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def sent(server, content: bytes) -> bytes:
    """The answer to bytes that no client would send."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(content)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


PATHS = ("/api/runs", "/api/run", "/api/history", "/api/stream", "/healthz", "/metrics", "/api/nothing", "/etc/passwd")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper()])
def test_without_the_token_there_is_nothing_but_the_page(server, path, token):
    assert asked(server, path, **{TOKEN_HEADER: token})[0] == 401


def test_the_page_and_its_modules_are_given_to_everybody(server, site):
    for path, page in site.pages.items():
        status, content, _ = asked(server, path, **{TOKEN_HEADER: ""})
        assert (status, content) == (200, page.content)


def test_with_the_token_a_question_is_answered(server):
    assert asked(server, "/api/runs")[0] == 200
    assert asked(server, "/healthz")[1] == b"ok\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_an_address_others_can_reach_needs_a_token(host):
    with pytest.raises(ConfigError, match="expected a token"):
        Guard.for_address(host, None)


def test_a_token_that_can_be_guessed_is_refused():
    with pytest.raises(ConfigError, match="16 characters; got 3"):
        Guard.for_address("127.0.0.1", "abc")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "", "192.0.2.1", "[::2]"]
)
def test_a_name_that_is_not_the_servers_is_refused(server, host):
    assert asked(server, "/", Host=host.format(port=server.port))[0] == 421
    assert asked(server, "/api/runs", Host=host.format(port=server.port))[0] == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]:{port}"])
def test_names_of_this_machine_are_taken(server, host):
    assert asked(server, "/api/runs", Host=host.format(port=server.port))[0] == 200


def test_bound_to_all_addresses_any_number_will_do_and_any_name_will_not():
    guard = Guard.for_address("0.0.0.0", TOKEN, also=["data.example"])
    for host, status in (
        ("192.0.2.7:80", None),
        ("[2001:db8::1]", None),
        ("data.example", None),
        ("evil.example", 421),
    ):
        refusal = guard.refusal("GET", {"Host": host, TOKEN_HEADER: TOKEN}, is_page=False)
        assert (refusal and refusal.status) == status, host


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", ""])
def test_pages_from_elsewhere_are_refused(server, origin):
    assert asked(server, "/api/runs", Origin=origin)[0] == 403


def test_the_own_page_may_ask(server):
    assert asked(server, "/api/runs", Origin=f"http://127.0.0.1:{server.port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_nothing_can_be_changed(server, method):
    for path in ("/", *PATHS):
        assert asked(server, path, method=method)[0] in (405, 501), path


TRAVERSALS = (
    *("/../secret.txt", "/static/../secret.txt", "/static/../../guard.py", "/static/vendor/../../server.py"),
    *("/static/%2e%2e/%2e%2e/guard.py", "/static/..%2f..%2fguard.py", "/%2e%2e%2f%2e%2e%2fetc%2fpasswd"),
    *(
        "/static/....//guard.py",
        "/static/..\\guard.py",
        "//etc/passwd",
        "/etc/passwd",
        "{run}/secret.txt",
        "file://{run}/secret.txt",
    ),
    *("/static//index.html", "/static/", "/static/vendor/", "/static/vendor/CHECKSUMS.txt", "/static/%00index.html"),
    *(
        "/api/run?run=../..",
        "/api/document?ref=../../secret.txt",
        "/api/document?ref=0",
        "/api/nothing",
        "/api/../secret.txt",
        "/api/run?run=-1",
        "/api/run?run=1",
        "/api/run?run=%F0%9D%9F%99",
        "/api/run?run={run}",
    ),
)


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_out_of_the_page(server, site, tmp_path, path):
    """Names come from a fixed list; a path in a request is looked up and never opened."""
    request = f"GET {path.format(run=tmp_path)} HTTP/1.1\r\nHost: localhost\r\n{TOKEN_HEADER}: {TOKEN}\r\n\r\n"
    answer = sent(server, request.encode())
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 400")), answer[:100]
    assert SECRET.encode() not in answer


def test_every_answer_forbids_what_the_page_does_not_need(server):
    for path in ("/", "/static/main.js", "/api/runs", "/api/nothing"):
        headers = asked(server, path)[2]
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
        assert not [name for name in headers if name.lower().startswith("access-control") or name == "Set-Cookie"]


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\nX: " + b"a" * 9000, b"GET /" + b"a" * 9000, b"X: y\r\n" * 2000])
def test_headers_that_are_too_large_are_refused(server, head):
    assert sent(server, head + b"\r\n\r\n").startswith(b"HTTP/1.1 431")
    assert asked(server, "/healthz")[0] == 200


@pytest.mark.parametrize(
    "content",
    [b"\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n"],
)
def test_nonsense_is_survived(server, content):
    sent(server, content)
    assert asked(server, "/healthz")[0] == 200


def test_whoever_is_slow_with_the_headers_is_let_go(site):
    with (
        serving(site, limits=Limits(connections=1, header_s=0.2)) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=20) as slow,
    ):
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert slow.recv(100) == b""


def test_whoever_does_not_take_the_answer_is_let_go(site):
    """With one connection at most, the next is answered only when the slow one has been given up."""
    with (
        serving(site, limits=Limits(connections=1, send_s=0.3)) as server,
        socket.create_connection(("127.0.0.1", server.port)) as slow,
    ):
        slow.sendall(f"GET /api/large HTTP/1.1\r\nHost: localhost\r\n{TOKEN_HEADER}: {TOKEN}\r\n\r\n".encode())
        assert _answered_at_last(server)


def _answered_at_last(server) -> bool:
    return any(_status(server) == 200 for _ in range(1_000_000))


def _status(server) -> int:
    try:
        return asked(server, "/healthz")[0]
    except (http.client.HTTPException, OSError):
        return 0


@pytest.mark.slow
def test_200_idle_streams_leave_room_for_questions_and_go_when_their_clients_go(site):
    request = f"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n{TOKEN_HEADER}: {TOKEN}\r\n\r\n".encode()
    with serving(site) as server, contextlib.ExitStack() as open_ones:
        statuses = []
        for _ in range(200):
            stream = open_ones.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            stream.sendall(request)
            statuses.append(stream.recv(12))
        assert statuses.count(b"HTTP/1.1 200") == server.limits.streams
        assert statuses.count(b"HTTP/1.1 503") == 200 - server.limits.streams
        assert asked(server, "/healthz")[0] == 200
        open_ones.close()
        while server.num_streams:  # each is noticed at the next news, within about a second
            pass


def test_more_connections_than_there_may_be_are_told_so_at_once(site):
    with serving(site, limits=Limits(connections=3)) as server, contextlib.ExitStack() as idle:
        for _ in range(3):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        while _status(server) != 503:  # until all three are in the hands of their threads
            pass
        idle.close()
        assert _answered_at_last(server)


def test_a_question_that_fails_is_answered_and_the_server_goes_on(site, monkeypatch):
    def fails(path, query):
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(site, "answer", fails)
    with serving(site) as server:
        assert asked(server, "/api/runs")[:2] == (
            500,
            b"the dashboard failed on this question: ZeroDivisionError: by chance",
        )
        monkeypatch.undo()
        assert asked(server, "/api/runs")[0] == 200


def test_a_port_that_is_taken_is_named(server, site):
    with pytest.raises(ConfigError, match=f"listen on 127.0.0.1:{server.port}"):
        WebServer(site, server.guard, "127.0.0.1", server.port)


def test_wrong_questions_say_what_was_expected(site):
    with pytest.raises(Wrong, match="expected the number of a run"):
        site.answer("/api/run", {"run": "7"})


# The page


# Links

DROPPED = {"id": "d1", "text": SECRET, "reject_stage": "words", "reject_reason": "short", "reject_id": "d1"}
FAILED = {"stage": "words", "kind": "ValueError", "error": "ValueError: no", "document": SECRET, "document_id": "d2"}
ASKED = ("/api/examples?stage=words&reason=short", "/api/quarantined?stage=words&kind=ValueError&message=no")


def shown_documents(run, rejects):
    """What a server over this run directory says about dropped and quarantined documents: a list for each."""
    data = RunData(
        run_dir=str(run),
        name="run",
        state="finished",
        is_live=False,
        process="",
        documents=Documents(books=Books(), funnel=()),
        time=RunTime(),
        setting=Setting(rejects_path=str(rejects)),
    )
    readers = Readers(lambda: (data, Measures([], {}, {}), {}), dict, dict, dict, RunFiles(str(run)).quarantine_files)
    with serving(Site([ShownRun(WatchedRun(Directory(run)), readers)])) as server:
        answers = [json.loads(asked(server, question)[1]) for question in ASKED]
        listed = answers[0]["examples"], answers[1]["records"]
        texts = [
            json.loads(asked(server, f"/api/document?ref={document['ref']}")[1])["text"]
            for documents in listed
            for document in documents
        ]
    return listed, texts


@pytest.fixture
def kept(tmp_path):
    """A run directory and its rejects, with a document in each."""
    places = tmp_path / "run" / "quarantine" / "a.jsonl", tmp_path / "rejects" / "a.jsonl"
    for place, record in zip(places, (FAILED, DROPPED), strict=True):
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(record) + "\n")
    return places


def test_documents_that_a_run_has_kept_are_shown(kept, tmp_path):
    listed, texts = shown_documents(tmp_path / "run", tmp_path / "rejects")
    assert [len(documents) for documents in listed] == [1, 1]
    assert texts == [SECRET, SECRET]


@pytest.mark.parametrize("linked", ["files", "directories"])
def test_no_link_leads_out_of_what_a_run_has_kept(kept, tmp_path, linked):
    for number, place in enumerate(kept):
        there = place if linked == "files" else place.parent
        there.rename(tmp_path / f"elsewhere-{number}")
        there.symlink_to(tmp_path / f"elsewhere-{number}")
    assert shown_documents(tmp_path / "run", tmp_path / "rejects") == (([], []), [])


def test_a_link_that_takes_the_place_of_a_file_that_was_listed_is_not_followed(kept):
    documents = KeptDocuments()
    [found] = documents.rejects(kept[1].parent, "words", "short")
    kept[1].rename(kept[1].with_suffix(".moved"))
    kept[1].symlink_to(kept[1].with_suffix(".moved"))
    assert documents.document(found.ref) is None


FORBIDDEN = (
    *(
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "createContextualFragment",
        "DOMParser",
        "srcdoc",
    ),
    *("setHTML", "parseHTML", "eval(", "new Function", "javascript:", 'setAttribute("style', "style="),
)


def own_files():
    return [file for file in STATIC.iterdir() if file.is_file()]


def test_texts_of_a_run_never_become_markup():
    """Nothing that reads a string as HTML or as code is in the page; uPlot, which others wrote, gets numbers only."""
    assert len(own_files()) > 5
    for file in own_files():
        found = [word for word in FORBIDDEN if word in file.read_text(encoding="utf-8")]
        assert not found, f"{file.name}: {found}"


def test_the_page_asks_nobody_else():
    for file in own_files():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert "://" not in text, file.name
        assert 'src="//' not in text, file.name


def test_what_others_wrote_is_as_they_published_it():
    lines = (STATIC / "vendor" / "CHECKSUMS.txt").read_text().splitlines()[1:]
    assert len(lines) == 3
    for line in lines:
        checksum, name = line.split()
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == checksum, name
