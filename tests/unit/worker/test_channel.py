"""Messages and descriptors arrive whole, in order, and two sides that both send never wait for each other."""

import os
import socket
import threading

import pytest

from gristmill.worker.channel import MAX_FDS, BufferedChannel, Channel, ChannelClosed, Decoder, encode

LARGE = b"x" * (4 << 20)  # far beyond a socket's buffer


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield BufferedChannel(ours), Channel(theirs)


def pipe_with(text):
    """The reading end of a pipe that holds some bytes."""
    read, write = os.pipe()
    os.write(write, text)
    os.close(write)
    return read


def contents_of(fds):
    found = []
    for fd in fds:
        found.append(os.read(fd, 100))
        os.close(fd)
    return found


def test_a_message_arrives_as_it_was_sent(pair):
    driver, worker = pair
    driver.send(("call", [1, {"a": b"\x00"}]))
    driver.flush()

    assert worker.receive() == [(("call", [1, {"a": b"\x00"}]), [])]


def test_descriptors_arrive_with_their_own_message(pair):
    driver, worker = pair
    fds = [pipe_with(text) for text in (b"one", b"two", b"three")]
    driver.send("first", fds[:1])
    driver.send("none")
    driver.send("last", fds[1:])
    driver.flush()
    received = []
    while len(received) < 3:
        received += worker.receive()

    assert [(message, contents_of(given)) for message, given in received] == [
        ("first", [b"one"]),
        ("none", []),
        ("last", [b"two", b"three"]),
    ]
    for fd in fds:
        os.close(fd)


def test_as_many_descriptors_as_a_message_takes(pair):
    driver, worker = pair
    fd = pipe_with(b"")
    worker.send("many", [fd] * MAX_FDS)
    received, closed = driver.receive()
    os.close(fd)

    assert not closed
    assert [(message, len(fds)) for message, fds in received] == [("many", MAX_FDS)]
    contents_of(received[0][1])


def test_large_messages_both_ways_at_once_do_not_deadlock(pair):
    driver, worker = pair
    answers = []

    def work():
        for _ in range(3):
            worker.send(LARGE)  # blocks until the driver reads
        while len(answers) < 3:
            answers.extend(message for message, _ in worker.receive())

    thread = threading.Thread(target=work)
    thread.start()
    received = []
    for _ in range(3):
        driver.send(LARGE)
    while len(received) < 3 or driver.wants_write:
        driver.flush()
        received += [message for message, _ in driver.receive()[0]]
    thread.join()

    assert received == answers == [LARGE] * 3


def test_the_end_of_the_other_side_is_noticed(pair):
    driver, worker = pair
    worker.send("last words")
    worker.sock.close()

    assert driver.receive() == ([("last words", [])], True)


def test_sending_to_nobody_is_noticed(pair):
    driver, worker = pair
    worker.sock.close()
    driver.send("hello")

    with pytest.raises(ChannelClosed):
        driver.flush()


def test_messages_cut_anywhere_are_put_together():
    stream = encode("first", 0) + encode(list(range(100)), 0)
    for cut in range(len(stream)):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            decoder = Decoder()
            found = []
            for piece in (stream[:cut], stream[cut:]):
                if piece:
                    theirs.sendall(piece)
                    decoder.receive(ours)
                    found += decoder.messages()

        assert found == [("first", []), (list(range(100)), [])]
