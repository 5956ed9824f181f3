"""Messages over a Unix socket: pickled tuples, with file descriptors riding along.

A frame is an 8-byte length and a pickle. Descriptors arrive in the order they were sent, so a message needs to say only
how many are its own. `Channel` blocks and is used inside workers; `BufferedChannel` never blocks and is used by the
driver, which must go on reading while a slow worker's socket is full: two processes waiting to send would never wake.
"""

import array
import contextlib
import os
import pickle
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

Message = Any  # tuples and lists of plain values; each end of a socket knows what the other says

HEADER = struct.Struct("=QI")  # payload length, number of descriptors
READ_SIZE = 1 << 18
MAX_FDS = 250  # the kernel takes 253 in one message


class ChannelClosed(Exception):  # not an error: the other side is gone
    """The peer has closed its end or died."""


def send_with_fds(sock: socket.socket, data: memoryview, fds: Sequence[int]) -> int:
    """Send bytes and up to MAX_FDS descriptors; return how many bytes went."""
    if not fds:
        return sock.send(data)
    return sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def encode(message: Message, num_fds: int) -> bytes:
    """Return one frame."""
    body = pickle.dumps(message, protocol=5)
    return HEADER.pack(len(body), num_fds) + body


class Decoder:
    """Bytes and descriptors in, messages out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._fds: deque[int] = deque()

    def receive(self, sock: socket.socket, flags: int = 0) -> None:
        """Read once from the socket. Raises ChannelClosed at its end, BlockingIOError if there is nothing."""
        try:
            data, ancillary, _, _ = sock.recvmsg(READ_SIZE, socket.CMSG_SPACE(MAX_FDS * 4), flags)
        except ConnectionResetError:
            raise ChannelClosed from None
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                self._fds.extend(fds)
        if not data:
            raise ChannelClosed
        self._buffer += data

    def messages(self) -> Iterator[tuple[Message, list[int]]]:
        """Yield the complete messages received so far, each with its descriptors."""
        start = 0
        buffer = self._buffer
        while len(buffer) - start >= HEADER.size:
            length, num_fds = HEADER.unpack_from(buffer, start)
            end = start + HEADER.size + length
            if len(buffer) < end:
                break
            message = pickle.loads(memoryview(buffer)[start + HEADER.size : end])
            start = end
            yield message, [self._fds.popleft() for _ in range(num_fds)]
        if start:
            self._buffer = buffer[start:]

    def close(self) -> None:
        """Close descriptors that have not been taken."""
        while self._fds:
            os.close(self._fds.popleft())


class Channel:
    """The worker's end: sends and receives block."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._decoder = Decoder()

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Send one message with at most MAX_FDS descriptors; they stay open here."""
        frame = memoryview(encode(message, len(fds)))
        try:
            frame = frame[send_with_fds(self.sock, frame, fds) :]
            while frame:
                frame = frame[self.sock.send(frame) :]
        except (BrokenPipeError, ConnectionResetError):
            raise ChannelClosed from None

    def receive(self) -> list[tuple[Message, list[int]]]:
        """Wait for at least one message; return all that are there."""
        while True:
            messages = list(self._decoder.messages())
            if messages:
                return messages
            self._decoder.receive(self.sock)

    def poll(self) -> list[tuple[Message, list[int]]]:
        """Return what is there without waiting."""
        with contextlib.suppress(BlockingIOError):
            self._decoder.receive(self.sock, socket.MSG_DONTWAIT)
        return list(self._decoder.messages())


class BufferedChannel:
    """The driver's end: what cannot be sent now waits here."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(0)
        self.sock = sock
        self._decoder = Decoder()
        self._outgoing: deque[tuple[memoryview, list[int], bool]] = deque()

    def send(self, message: Message, fds: Sequence[int] = (), *, gives_away: bool = False) -> None:
        """Queue a message. Keep its descriptors open until it is out; if it `gives_away`, they are closed then."""
        self._outgoing.append((memoryview(encode(message, len(fds))), list(fds), gives_away))

    @property
    def wants_write(self) -> bool:
        return bool(self._outgoing)

    def flush(self) -> None:
        """Send as much as the socket takes. Raises ChannelClosed if the other side is gone."""
        while self._outgoing:
            frame, fds, gives_away = self._outgoing[0]
            try:
                sent = send_with_fds(self.sock, frame, fds)
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                raise ChannelClosed from None
            if gives_away:
                _close_all(fds)
            if sent == len(frame):
                self._outgoing.popleft()
            else:
                self._outgoing[0] = (frame[sent:], [], False)

    def receive(self) -> tuple[list[tuple[Message, list[int]]], bool]:
        """Return (all messages that are there, whether the other side is gone)."""
        closed = False
        try:
            while True:
                self._decoder.receive(self.sock)
        except BlockingIOError:
            pass
        except ChannelClosed:
            closed = True
        return list(self._decoder.messages()), closed

    def close(self) -> None:
        for _, fds, gives_away in self._outgoing:
            if gives_away:
                _close_all(fds)
        self._outgoing.clear()
        self._decoder.close()
        self.sock.close()


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
