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
| the same document twice  | that document    | STEP without it                                                  |
| no progress in STEP      | the task         | CONDEMN: quarantined unread, whatever dies on the way            |

A random kill can hit a healthy document; being hit twice while announced, after two deaths of its task, is not chance.
"""

from dataclasses import dataclass, field, replace

from gristmill.engine.commands import Care
from gristmill.engine.events import Crumb
from gristmill.engine.faults import Fault

MAX_TRANSIENT = 10  # then it is an exception like any other
MAX_MACHINE = (
    5  # after pauses of 0.5 to 8 s, 15 in all: long enough for a log to be rotated, not to be taken for a hang
)
MAX_PAUSE_S = 60.0
FATAL_HITS = 2
MAX_IDLE_DEATHS = 3  # deaths in STEP that point at no single document


@dataclass(frozen=True)
class Trial:
    """What a task has been through."""

    care: Care = Care.NORMAL
    attempts: int = 0
    deaths: int = 0
    idle_deaths: int = 0
    transients: int = 0  # errors that may pass, declared so or the machine's
    hits: tuple[tuple[Crumb, int], ...] = ()
    condemned: tuple[Crumb, ...] = ()
    cause: str = ""
    pause_s: float = field(default=0.0, compare=False)

    @property
    def is_out_of_patience(self) -> bool:
        """Whether an error that should have passed has not."""
        return self.transients >= MAX_TRANSIENT


FRESH = Trial()

# Words that pools and the scheduler give as causes of a worker's end, and what a count of them is filed under.
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


def without_blame(trial: Trial) -> Trial:
    """The next trial of a task that was taken from its worker, which may have begun it: another name for its files."""
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
    trial = replace(trial, attempts=trial.attempts + 1, deaths=trial.deaths + 1, cause=cause, pause_s=0.0)
    if trial.care is Care.CONDEMN:  # its documents are not looked at any more, so this death was none of their doing
        return trial
    if trial.care is not Care.STEP:
        return replace(trial, care=Care.STEP) if trial.deaths > 1 else trial
    if crumb is None or crumb.end_row - crumb.first_row != 1:
        idle = trial.idle_deaths + 1
        return replace(trial, idle_deaths=idle, care=Care.CONDEMN if idle >= MAX_IDLE_DEATHS else Care.STEP)
    if crumb in trial.condemned:  # it cannot be left out: a file, or a batch whose rows belong together
        return replace(trial, care=Care.CONDEMN)
    hits = dict(trial.hits)
    hits[crumb] = hits.get(crumb, 0) + 1
    if hits[crumb] < FATAL_HITS:
        return replace(trial, hits=tuple(hits.items()))
    return replace(trial, hits=tuple(hits.items()), condemned=(*trial.condemned, crumb))
