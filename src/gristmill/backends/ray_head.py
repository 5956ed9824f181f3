"""`problem_at`: whether a Ray head answers at an address, found out in seconds. Ray itself would try for minutes.

A head is asked whether it is alive, by the call Ray's own processes use: gRPC, which is HTTP/2. Other gRPC
servers answer too, so a greeting is not enough. A dozen lines of HTTP/2 stand here because a Ray without its extras
comes without a gRPC for Python, and one call with an empty message needs no more. Nothing of Ray is imported here.

    we send    the preface, SETTINGS, HEADERS (which call), DATA (an empty message)
    a head     SETTINGS, HEADERS, DATA (its answer), HEADERS (the status)
    another    SETTINGS, HEADERS (the status: no such call)
"""

import os
import socket
import time
from collections.abc import Iterator
from enum import IntEnum

REACH_S = 10.0  # a head answers in milliseconds, in a second from another continent, later if very busy
PORTS = "a head's own port is 6379 unless it was given another; 10001 is Ray Client's, 8265 the dashboard's"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CALL = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/ray.rpc.NodeInfoGcsService/CheckAlive",
    ":authority": "ray",
    "content-type": "application/grpc",
    "te": "trailers",
}
EMPTY_MESSAGE = bytes(5)  # not compressed, no bytes
FRAME_HEADER = 9  # bytes: 3 of length, then type, flags, 4 of stream
LARGEST = 1 << 14  # body of a frame, for a peer that has not allowed more
STREAM = 1
END_STREAM, END_HEADERS = 1, 4  # flags
# A server that wants a token first is Ray, and Ray explains that well. gRPC writes this name and number as they are.
UNAUTHENTICATED = b"grpc-status\x0216"


class Kind(IntEnum):
    """Types of frames."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    GOAWAY = 7


def problem_at(host: str, port: int) -> str:
    """Why no Ray head can be spoken to at an address; nothing if one answers."""
    deadline = time.monotonic() + REACH_S
    try:
        with socket.create_connection((host, port), timeout=REACH_S) as caller:
            if os.environ.get("RAY_USE_TLS", "0") == "1":
                return ""
            caller.sendall(_question())
            return _problem_with_answer(_frames(caller, deadline))
    except OSError as error:
        return error.strerror or str(error)


def _question() -> bytes:
    # A zero before each field: it is in no table. Names and values are under 127 bytes, so one byte tells the length.
    words = (word.encode() for field in CALL.items() for word in ("", *field))
    headers = b"".join(bytes([len(word)]) + word for word in words)
    call = _frame(Kind.HEADERS, END_HEADERS, STREAM, headers) + _frame(Kind.DATA, END_STREAM, STREAM, EMPTY_MESSAGE)
    return PREFACE + _frame(Kind.SETTINGS, 0, 0, b"") + call


def _frame(kind: Kind, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def _frames(caller: socket.socket, deadline: float) -> Iterator[tuple[int, int, bytes]]:
    """What a peer sends, as type, flags and body, until it ends or makes no sense; TimeoutError if it takes long."""
    got = b""
    while True:
        size = FRAME_HEADER + int.from_bytes(got[:3], "big")
        if size > FRAME_HEADER + LARGEST:  # text, most likely
            return
        if len(got) >= size:
            yield got[3], got[4], got[FRAME_HEADER:size]
            got = got[size:]
            continue
        caller.settimeout(max(0.001, deadline - time.monotonic()))
        more = caller.recv(1 << 16)
        if not more:
            return
        got += more


def _problem_with_answer(frames: Iterator[tuple[int, int, bytes]]) -> str:
    greeted = False
    try:
        for kind, flags, body in frames:
            if not greeted and kind != Kind.SETTINGS:
                break
            greeted = True
            if kind == Kind.DATA or (kind == Kind.HEADERS and UNAUTHENTICATED in body):
                return ""
            if kind in (Kind.RST_STREAM, Kind.GOAWAY) or (kind == Kind.HEADERS and flags & END_STREAM):
                break
    except TimeoutError:
        if greeted:
            late = f"has not answered within {REACH_S:g} s: a Ray head with too much to do, or none"
            return f"a server that speaks gRPC, as Ray does, and {late} ({PORTS})"
    if not greeted:
        return f"a program that does not speak Ray's protocol ({PORTS})"
    return f"a server that speaks gRPC, as Ray does, and is not a Ray head ({PORTS})"
