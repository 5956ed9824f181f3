"""Whoever is at an address is told from a Ray head in seconds, whatever it says and if it says nothing."""

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from gristmill.backends import ray_head
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.backends.ray_data import RayDataExecutor
from gristmill.backends.ray_head import Kind, problem_at
from gristmill.backends.xenna import XennaExecutor
from gristmill.errors import RunFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.text.io.reader import JsonlReader

SETTINGS = ray_head._frame(Kind.SETTINGS, 0, 0, b"")
NO_SUCH_CALL = ray_head._frame(
    Kind.HEADERS, ray_head.END_HEADERS | ray_head.END_STREAM, 1, b"\x88@\x0bgrpc-status\x0212"
)
WANTS_A_TOKEN = NO_SUCH_CALL.replace(b"12", b"16")
STRANGER = "a program that does not speak Ray's protocol"
LATE = "a server that speaks gRPC, as Ray does, and has not answered within 0.3 s: a Ray head with too much to do, or"
NO_HEAD = "a server that speaks gRPC, as Ray does, and is not a Ray head"


@contextlib.contextmanager
def server_that_says(answer, *, hangs_up):
    """A port where somebody hears a caller out, says one thing, and hangs up or waits for the caller to."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            caller, _ = server.accept()
            with caller:
                caller.recv(1000)
                caller.sendall(answer)
                if not hangs_up:
                    caller.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", STRANGER),
        (b"\0", STRANGER),
        (b"SSH-2.0-OpenSSH_9.6\r\n", STRANGER),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", STRANGER),
        (NO_SUCH_CALL, STRANGER),  # before any settings, it is no HTTP/2
        (SETTINGS + NO_SUCH_CALL, NO_HEAD),
        (SETTINGS + ray_head._frame(Kind.RST_STREAM, 0, 1, bytes(4)), NO_HEAD),
        (SETTINGS + ray_head._frame(Kind.GOAWAY, 0, 0, bytes(8)), NO_HEAD),
    ],
)
@pytest.mark.parametrize("hangs_up", [True, False])
def test_who_is_no_head_is_told_from_one(monkeypatch, answer, problem, hangs_up):
    monkeypatch.setattr(ray_head, "REACH_S", 0.3)  # how long somebody is waited for who says no more
    with server_that_says(answer, hangs_up=hangs_up) as port:
        assert problem_at("127.0.0.1", port).startswith(problem)


@pytest.mark.parametrize(("hangs_up", "problem"), [(True, NO_HEAD), (False, LATE)])
def test_a_head_that_is_slow_is_told_from_who_is_none(monkeypatch, hangs_up, problem):
    monkeypatch.setattr(ray_head, "REACH_S", 0.3)
    with server_that_says(SETTINGS, hangs_up=hangs_up) as port:
        assert problem_at("127.0.0.1", port).startswith(problem)


def test_the_ports_of_ray_are_said_with_it():
    with server_that_says(SETTINGS + NO_SUCH_CALL, hangs_up=False) as port:
        said = problem_at("127.0.0.1", port)

    assert said == (
        f"{NO_HEAD} (a head's own port is 6379 unless it was given another; 10001 is Ray Client's, 8265 the "
        "dashboard's)"
    )


def test_who_wants_a_token_first_is_left_to_ray():
    with server_that_says(SETTINGS + WANTS_A_TOKEN, hangs_up=False) as port:
        assert problem_at("127.0.0.1", port) == ""


def test_an_answer_in_pieces_is_put_together():
    answer = SETTINGS + ray_head._frame(Kind.DATA, 0, 1, bytes(5))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            caller, _ = server.accept()
            with caller:
                caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for byte in answer:
                    caller.sendall(bytes([byte]))
                caller.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        assert problem_at("127.0.0.1", server.getsockname()[1]) == ""
        thread.join()


@pytest.fixture
def grpc_server():
    """The port of a gRPC server that knows no call."""
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield port
        server.stop(None).wait()


@pytest.mark.parametrize("executor", [RayActorPoolExecutor, RayDataExecutor, XennaExecutor])
def test_a_run_ends_at_once_where_a_grpc_server_is_no_head(monkeypatch, tmp_path, grpc_server, executor):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    address = f"127.0.0.1:{grpc_server}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    begun = time.monotonic()
    expected = rf"^{executor.__name__}: expected a Ray head at RAY_ADDRESS={address}; got: {NO_HEAD} \(.* is 6379 "
    with pytest.raises(RunFailed, match=expected):
        Pipeline("p", stages=[JsonlReader(str(tmp_path))]).run(executor())

    assert time.monotonic() - begun < ray_head.REACH_S


def test_with_tls_only_the_port_is_looked_at(monkeypatch):
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with server_that_says(b"", hangs_up=True) as port:
        assert problem_at("127.0.0.1", port) == ""
