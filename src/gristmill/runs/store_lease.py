"""`Lease`: one run at a time in a directory on a store, where there are no locks.

    <directory>/lease/00000001.json   a claim, created only if there is none of that number; the last one counts
    <directory>/lease/<session>.json  rewritten every few seconds by the claim's process; gone when it ends

Of two that claim at once the store lets one through. A claim whose second object is gone, or was not written again for
`EXPIRY_S`, is dead, and the next number is free. Ages are differences of times the store itself has noted: the clocks
of machines do not matter. A process of this start of this machine is looked up first, so that a killed run can be
continued at once. A driver that was held up for longer than `EXPIRY_S` finds a later claim and stops; what it may
commit in between is decided by the ledger (store_directory.py).
"""

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass

from gristmill.errors import ConfigError, MachineError
from gristmill.runs.publication import patiently
from gristmill.runs.sinks import machine_start
from gristmill.storage.remote_file_system import CREATES, RemoteFileSystem

RENEW_S = 5.0
EXPIRY_S = 30.0
POLL_S = 0.5
DIRECTORY = "lease"


class NoConditionalWrites(ConfigError):
    """A store on which nothing can keep two runs apart."""


@dataclass(frozen=True)
class Claim:
    """Who has a directory, or had it."""

    session: str
    host: str
    pid: int
    machine: str  # the start of the machine and its process id namespace
    began: float  # of the process, to tell it from a later one of the same number

    def __str__(self) -> str:
        return f"process {self.pid} of {self.host}"

    @property
    def start(self) -> str:
        """The start of the machine."""
        return self.machine.rpartition(" ")[0]

    def is_gone(self) -> bool | None:
        """Whether the process has ended; None if it is not of this machine, so it cannot be known here."""
        import psutil

        if self.machine != _machine():
            return None
        try:
            process = psutil.Process(self.pid)
            return process.create_time() != self.began or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True


def own_claim(session: str) -> Claim:
    """The claim of this process."""
    import psutil

    pid = os.getpid()
    return Claim(session, socket.gethostname(), pid, _machine(), psutil.Process(pid).create_time())


def _machine() -> str:
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # no path: it names nothing
    return f"{machine_start()} {space}"


class Lease:
    """The right to write below a directory of a store. `take` it first, `release` it last."""

    def __init__(self, fs: RemoteFileSystem, directory: str, session: str) -> None:
        self.directory = directory.rstrip("/")
        self._fs = fs
        self._home = f"{self.directory}/{DIRECTORY}"
        self._own = f"{self._home}/{session}.json"
        self._claim = own_claim(session)
        self._number = 0
        self._beats = 0
        self._renewed = 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Claim the directory, or say who has it. Wait if only that can show whether the holder still lives."""
        check_creates(self._fs, self._home, self._claim.session)
        self._beat()  # before the claim: one without it is dead
        try:
            while not self._claimed():
                pass
        except BaseException:
            with contextlib.suppress(MachineError):
                self._fs.remove(self._own)
            raise
        self._thread = threading.Thread(target=self._renew, daemon=True, name="gristmill-lease")
        self._thread.start()

    def _claimed(self) -> bool:
        """Try the next number; False if another was quicker and must be looked at first."""
        last = self._last_claim()
        if last is not None and self._is_alive(last[1]):
            raise ConfigError(
                f"{self.directory}: expected no other run here; {last[1]} is running in it. "
                "Wait until it has ended, or choose another directory"
            )
        self._number = 1 if last is None else last[0] + 1
        if not self._fs.create(self._name(self._number), json.dumps(asdict(self._claim)).encode()):
            return False
        if last is not None:
            self._fs.remove_all([self._name(last[0]), f"{self._home}/{last[1].session}.json"])
        return True

    def _name(self, number: int) -> str:
        return f"{self._home}/{number:08d}.json"

    def _last_claim(self) -> tuple[int, Claim] | None:
        return _last_claim(self._fs, self._home)

    def _is_alive(self, claim: Claim) -> bool:
        beats = f"{self._home}/{claim.session}.json"
        before = self._fs.read(beats)
        if before is None:
            return False
        if claim.is_gone():
            return False
        # A process that lives proves nothing: its run may have ended while the store was away, leaving the claim.
        return self._is_renewed(beats, before)

    def _is_renewed(self, beats: str, before: bytes) -> bool:
        """Wait until the other run is heard of, or has been silent for as long as it may be."""
        silent_s = 0.0
        with contextlib.suppress(FileNotFoundError):
            own, theirs = self._fs.modified(self._own), self._fs.modified(beats)
            silent_s = max(0.0, own - theirs) if own is not None and theirs is not None else 0.0
        deadline = time.monotonic() + EXPIRY_S - silent_s
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            if (now := self._fs.read(beats)) != before:
                return now is not None
        return False

    def _beat(self) -> None:
        self._beats += 1
        self._fs.write(self._own, json.dumps({"beats": self._beats, **asdict(self._claim)}).encode())
        self._renewed = time.monotonic()

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_S):
            with contextlib.suppress(MachineError):  # tried again in a moment; `check` raises if it has been too long
                self._beat()

    def check(self) -> None:
        """Raise if another run may have taken over: this process was held up for too long, or the store was away."""
        if time.monotonic() - self._renewed < EXPIRY_S - RENEW_S:
            return
        last = patiently(self._last_claim)
        if last is None or last[1].session != self._claim.session:
            raise lost(self.directory, "another run" if last is None else str(last[1]))
        patiently(self._beat)

    def release(self) -> None:
        """Release the directory."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            with contextlib.suppress(MachineError):  # then it expires
                self._fs.remove(self._own)


def _last_claim(fs: RemoteFileSystem, home: str) -> tuple[int, Claim] | None:
    names = [name.removesuffix(".json") for name in fs.list_names(home)]
    numbers = sorted(int(name) for name in names if name.isdecimal() and len(name) == 8)
    if not numbers:
        return None
    content = fs.read(f"{home}/{numbers[-1]:08d}.json")
    if content is None:
        return _last_claim(fs, home)  # the next holder has removed it since
    with contextlib.suppress(ValueError, TypeError):
        return numbers[-1], Claim(**json.loads(content))
    return numbers[-1], Claim("?", "?", 0, "?", 0.0)  # not one of ours; it has no second object


def last_holder(fs: RemoteFileSystem, directory: str) -> tuple[Claim, bool] | None:
    """Which process runs in a directory or ran there last, and whether it still holds it.

    A process that lives proves nothing: its run may have ended while the store was away, leaving its claim behind. The
    holder of a claim renews it. If that seems late by the clock of this machine, which is not the store's, and the
    process is one of this machine's, its next beat is waited for before it is said to have gone.
    """
    home = f"{directory.rstrip('/')}/{DIRECTORY}"
    last = _last_claim(fs, home)
    if last is None:
        return None
    beats = f"{home}/{last[1].session}.json"
    try:
        written = fs.modified(beats)
    except FileNotFoundError:
        return last[1], False
    gone = last[1].is_gone()
    if not gone and written is not None and time.time() - written > EXPIRY_S:
        gone = gone is None or not _is_heard(fs, beats)
    return last[1], not gone


def _is_heard(fs: RemoteFileSystem, beats: str) -> bool:
    """Whether a claim is renewed while we look, for twice as long as that may take."""
    before, deadline = fs.read(beats), time.monotonic() + 2 * RENEW_S
    while before is not None and time.monotonic() < deadline:
        time.sleep(POLL_S)
        if (now := fs.read(beats)) != before:
            return now is not None
    return False


def lost(directory: str, by: str) -> MachineError:
    """What to tell a driver that another one has taken over from."""
    return MachineError(
        f"{directory}: this run has not been heard from for {EXPIRY_S:.0f} s, so {by} has taken over. Nothing is lost: "
        "what this one had committed, the other one goes on from"
    )


def check_creates(fs: RemoteFileSystem, directory: str, session: str) -> None:
    """Refuse a store that does not honour "create only if there is none": two runs would not notice each other."""
    scheme = directory.partition("://")[0].lower()
    probe = f"{directory}/probe-{session}"
    if scheme in CREATES:
        try:
            if patiently(lambda: fs.create(probe, b"1") and not fs.create(probe, b"2")):
                return
        finally:
            fs.remove(probe)
    known = ", ".join(f"{name}://" for name in CREATES if name != "memory")
    raise NoConditionalWrites(
        f"{directory.removesuffix(f'/{DIRECTORY}')}: expected a store that creates an object only if there is none "
        f"(conditional writes; {known}, if their server holds it); this one does not, so two runs there could destroy "
        "each other's work. Choose a run directory on a disk, or on another store"
    )
