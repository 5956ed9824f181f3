"""How a task that failed is tried again.

| what happened            | blame            | next attempt                                                     |
|--------------------------|------------------|------------------------------------------------------------------|
| declared transient error | none             | the same, after a pause that doubles up to a minute              |
| the machine's error      | the machine      | the same, after a pause that doubles, a few times; then the run  |
|                          |                  | stops                                                            |
| exception                | the running task | ISOLATE: once more, then halved until single documents are left  |
|                          |                  | (PATIENT, once any document has passed the stage)                |
| first death of a worker  | the running task | the same, elsewhere: most deaths are not the document's fault    |
| second death             | the running task | STEP: one document at a time, each announced first               |
| death in STEP            | the document     | STEP from that document on; without it, once enough is proven    |
| no progress in STEP      | the task         | CONDEMN: quarantined unread, whatever dies on the way            |

How much a death proves depends on how the worker ended. A process that faults, ends itself or is still busy at its
deadline does so because of what it was doing: two such deaths at one document are enough. One that is killed tells
little: whoever runs `kill -9` does not know which document it hits, and a system short of memory takes it from the
largest process, which may be an innocent one. So a document at which workers are killed is tried alone again and again,
each time after a longer pause, and is blamed only if it has never survived. A document that has been alone in a worker
that lived is not tried alone again, so random kills hit a different place every time.
"""

import msgspec
from msgspec.structs import replace

from gristmill.engine.commands import Care
from gristmill.engine.events import Condemned, Crumb
from gristmill.engine.faults import Fault

MAX_TRANSIENT = 10  # then it is an exception like any other
MAX_MACHINE = (
    5  # after pauses of 0.5 to 8 s, 15 in all: long enough for a log to be rotated, too short to be taken for a hang
)
MAX_PAUSE_S = 60.0
# What a death proves against the document a worker was alone with, and how much has to be proven before that document,
# or the task if the deaths point at no document, is left out.
FAULTED = 4  # a fault of the process, an exit, a deadline: twice for a document, three times for a task
FOR_MEMORY = 2  # the system took its memory: four times, and six
KILLED = 1  # by someone, or it is unknown by whom: seven times, and twelve
PROOF_OF_DOCUMENT = 7
PROOF_OF_TASK = 12
KILL_PAUSE_S = 0.05  # after the first kill; twice as long after each further: 3 s from the first to the seventh

_FAULTS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS", "SIGXCPU")  # nobody sends these


class Trial(msgspec.Struct, frozen=True):
    """What a task has been through."""

    care: Care = Care.NORMAL
    attempts: int = 0
    deaths: int = 0
    unplaced: int = 0  # what has been proven by deaths in STEP that point at no single document
    transients: int = 0  # errors that may pass, declared so or the machine's
    proven: tuple[tuple[Crumb, int], ...] = ()  # by deaths in STEP, against single documents
    condemned: tuple[Condemned, ...] = ()
    step_from: Crumb | None = None  # the documents before this one have been alone in a worker that lived
    cause: str = ""
    pause_s: float = 0.0

    @property
    def is_out_of_patience(self) -> bool:
        """Whether an error that was expected to pass has lasted too long."""
        return self.transients >= MAX_TRANSIENT


FRESH = Trial()

# Words with which pools and the scheduler name the cause of a worker's end, and the kind it counts as.
_KINDS = (
    ("memory", "memory ran out"),
    ("timeout", "no result within the deadline"),
    ("signal", "killed by SIG"),
    ("exit", "exit code"),
)


def loss_kind(cause: str) -> str:
    """Return what to count the end of a worker under: memory, timeout, signal, exit or unknown.

    >>> loss_kind("killed by SIGKILL, as the system does when memory runs out")
    'signal'
    """
    return next((kind for kind, words in _KINDS if words in cause), "unknown")


def _proof(cause: str) -> int:
    """Return what the end of a worker proves against what it was doing.

    >>> _proof("killed by SIGSEGV in stage parse"), _proof("killed by SIGKILL, as the system does when memory runs out")
    (4, 1)
    """
    kind = loss_kind(cause)
    if kind == "memory":
        return FOR_MEMORY
    return FAULTED if kind in ("exit", "timeout") or any(f"by {fault}" in cause for fault in _FAULTS) else KILLED


def was_killed(cause: str) -> bool:
    """Whether a worker was ended from outside, or by something unknown: through no visible fault of its own."""
    return _proof(cause) == KILLED


def counts_against_stage(trial: Trial, cause: str, crumb: Crumb | None) -> bool:
    """Whether the death of a worker, after which a task has this trial, says something about the stage.

    A fault does. Kills are first held against one document: until it is left out and workers are killed at the next one
    as well, it is unknown whether others would pass.
    """
    another = any(fatal != crumb for fatal, _ in trial.condemned)
    return another or trial.care is Care.CONDEMN or _proof(cause) >= FAULTED


def without_blame(trial: Trial) -> Trial:
    """The next trial of a task that was taken from its worker, which may have begun it: its files get another name."""
    return replace(trial, attempts=trial.attempts + 1, pause_s=0.0)


def after_exception(trial: Trial, error: str, fault: Fault, *, some_passed: bool = False) -> Trial | None:
    """The next trial of a task whose stage raised; None if there is none, because the machine has failed for good.

    `some_passed`: documents have passed the stage before, so those that fail now are to blame, however many they are.
    """
    most = {Fault.TRANSIENT: MAX_TRANSIENT, Fault.MACHINE: MAX_MACHINE}.get(fault, 0)
    if trial.transients < most:
        pause = min(MAX_PAUSE_S, 0.5 * 2**trial.transients)
        return replace(trial, attempts=trial.attempts + 1, transients=trial.transients + 1, pause_s=pause)
    if fault in (Fault.MACHINE, Fault.MACHINE_FINAL):
        return None
    care = Care.PATIENT if some_passed else Care.ISOLATE
    # With more care a worker quarantines instead of raising. If it raises all the same, the task is beyond help, unless
    # it was given up only because no document had passed then.
    if trial.care is not Care.NORMAL and not (fault is Fault.PROGRAM and trial.care is Care.ISOLATE and some_passed):
        care = Care.CONDEMN
    return replace(trial, care=care, attempts=trial.attempts + 1, cause=error, pause_s=0.0)


def after_death(trial: Trial, cause: str, crumb: Crumb | None) -> Trial:
    """The next trial of a task whose worker died while running it."""
    trial = replace(trial, attempts=trial.attempts + 1, deaths=trial.deaths + 1, pause_s=0.0)
    if trial.care is Care.CONDEMN:  # its documents are not looked at any more, so this death was none of their doing
        return trial
    trial = replace(trial, cause=cause)
    if trial.care is not Care.STEP:
        return replace(trial, care=Care.STEP) if trial.deaths > 1 else trial
    proof = _proof(cause)
    if crumb is None or crumb.end_row - crumb.first_row != 1:
        # Every document has survived by itself, or it is unknown which it was: the next attempt looks at each again.
        unplaced = trial.unplaced + proof
        care = Care.CONDEMN if unplaced >= PROOF_OF_TASK else Care.STEP
        return replace(trial, unplaced=unplaced, care=care, step_from=None, pause_s=_pause(proof, unplaced))
    if any(crumb == other for other, _ in trial.condemned):
        # It cannot be left out: a file, or a batch whose rows belong together.
        return replace(trial, care=Care.CONDEMN)
    proven = dict(trial.proven)
    proven[crumb] = proven.get(crumb, 0) + proof
    # If workers are killed at single documents as well, those killed over the whole task prove nothing against it.
    unplaced = trial.unplaced if proof >= FAULTED else 0
    trial = replace(trial, proven=tuple(proven.items()), unplaced=unplaced, step_from=crumb)
    if proven[crumb] < PROOF_OF_DOCUMENT:
        return replace(trial, pause_s=_pause(proof, proven[crumb]))
    # One document less here may mean fewer rows, and fewer calls, from here on: what is known of those is out of date.
    condemned = tuple(each for each in trial.condemned if each[0].turn <= crumb.turn)
    kept = tuple(each for each in trial.proven if each[0].turn <= crumb.turn)
    return replace(trial, proven=kept, condemned=(*condemned, (crumb, cause)))


def _pause(proof: int, proven: int) -> float:
    """Seconds to wait after a kill: whatever kills, or needs the memory, may be done by then."""
    return 0.0 if proof >= FAULTED else min(MAX_PAUSE_S, KILL_PAUSE_S * 2.0 ** (proven - 1))
