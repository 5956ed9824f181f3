"""Every exception gristmill raises, in one tree.

    GristmillError
    ├── ConfigError (ValueError)            a user's mistake, found before any worker starts
    │   ├── NoInputError (FileNotFoundError)    no file matched
    │   ├── OutputExists (FileExistsError)      there are files, and the writer's mode is "error"
    │   ├── NotOffered (NotImplementedError)    something others do, or plan to do, and gristmill does not
    │   └── ResumeRefused                       the run directory belongs to another plan or other inputs
    ├── MissingDependency (ImportError)     an optional package is needed and not installed
    ├── ReadError (OSError)                 a file cannot be read as what it claims to be
    │   ├── DamagedFile                         it is compressed, and cut off or damaged
    │   ├── InputChanged                        it is not the file that was planned: shorter, newer, gone
    │   └── DownloadFailed                      a server does not send it, or not all of it
    ├── MachineError (OSError)              a disk or a store does not do what any pipeline needs of it
    │   └── ServerRefused                       a server of models refuses everything: wrong key, wrong address
    ├── OutOfMemory (MemoryError)           a device has no room for a batch; stays within the stage, which halves it
    ├── StageError (RuntimeError)           a stage broke its contract (returned the wrong type, ...)
    │   ├── DeadlineExceeded                    a call was ended because it took longer than `deadline_s`
    │   ├── TimeLimitExceeded                   one document was given up because it took longer than it may
    │   └── SpendingLimit                       requests have cost what they may: nothing more is asked
    ├── RunFailed (RuntimeError)            the run could not finish
    │   ├── TooManyQuarantined                  it stopped at the limit, good documents are committed
    │   ├── StageBroken                         no document passes a stage; nothing of it is committed
    │   ├── MachineFailed                       disk full, store refuses: nothing is lost, run it again
    │   ├── SpendingLimitReached                requests have cost `max_total_cost`; a higher one continues
    │   ├── InputsChanged                       the rest is done; partitions of changed inputs are not
    │   └── Interrupted                         Ctrl-C: everything committed so far is kept
    └── EngineBug (AssertionError)          our own mistake: an invariant does not hold

A message reads "{who}: expected {what}; got {value}" and names the nearest right thing if there is one.
"""

import importlib
import importlib.util
from collections.abc import Iterable
from types import ModuleType

from gristmill.secrets import without_secrets


class GristmillError(Exception):
    """Base of all errors raised by gristmill. No message repeats a password out of a URL."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(given) if isinstance(given, str) else given for given in args))


class ConfigError(GristmillError, ValueError):
    """A pipeline, recipe, option or path is wrong; nothing has been started."""


class NoInputError(ConfigError, FileNotFoundError):
    """No input file matched."""


class OutputExists(ConfigError, FileExistsError):
    """The output directory has files, and the writer was told to refuse that."""


class NotOffered(ConfigError, NotImplementedError):
    """Known from other tools, and not done here on purpose; the message says why and what to do instead."""


class ResumeRefused(ConfigError):
    """A run directory holds work of a different plan or of different inputs."""


class MissingDependency(GristmillError, ImportError):
    """An optional package is needed for this; the message says how to install it."""


class ReadError(GristmillError, OSError):
    """A file is damaged, or is not what its name says."""


class DamagedFile(ReadError):
    """A file cannot be read from `position` on; what is before is good. `lost_bytes` are those of the file as stored.

    `is_complete` says that nothing of its content is missing: the damage lies after the end.
    """

    position: int = 0
    lost_bytes: int = 0
    is_complete: bool = False


class InputChanged(ReadError):
    """An input is not what it was when the run was planned: it shrank, grew, was replaced or is gone."""


class DownloadFailed(ReadError):
    """A file could not be fetched. Nothing of it counts, and what has arrived of it is kept for the next try.

    `is_final` says that all tries were made, and that the file counts as lost. `kind` is its name in quarantine,
    whichever notices: the downloader, or a reader that reads it in place.
    """

    kind = "download_failed"
    is_final: bool = False


class MachineError(GristmillError, OSError):
    """A file of the run itself cannot be written or read back. No document is to blame for it."""


class OutOfMemory(GristmillError, MemoryError):
    """A model's device has no room for a batch. Never leaves the stage: the batch is tried again with fewer rows."""


class ServerRefused(MachineError):
    """A server has refused one request after another. No document is to blame for it, and waiting does not help."""


class StageError(GristmillError, RuntimeError):
    """A stage broke its contract with the engine."""


class DeadlineExceeded(StageError):
    """A call of a stage took longer than the stage's `deadline_s`, and was cancelled."""


class TimeLimitExceeded(StageError):
    """One document took longer than the limit its stage has for one."""


class SpendingLimit(StageError):
    """What was paid for has reached the limit the user set. No document is to blame; the run stops."""


class RunFailed(GristmillError, RuntimeError):
    """A run ended before all its work was done; what is committed stays."""


class TooManyQuarantined(RunFailed):
    """The run stopped because more documents failed than `max_quarantined` allows. `result` holds the books."""

    result: object = None


class StageBroken(RunFailed):
    """A stage fails on everything: the message has its commonest errors, a traceback and a document."""


class MachineFailed(RunFailed):
    """A disk or a store failed. What is committed stays, nothing else counts, the same command continues."""


class SpendingLimitReached(RunFailed):
    """The run stopped at `max_total_cost`. What is committed stays; the same command with a higher limit continues."""


class InputsChanged(RunFailed):
    """Some inputs changed while they were read. Everything else is committed. `result` holds the books."""

    result: object = None


class Interrupted(RunFailed):
    """The user stopped the run; the same command continues it."""


class EngineBug(GristmillError, AssertionError):
    """The engine contradicts itself: a bug in gristmill, never in the user's data."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest known name, or "" if none is close.

    >>> nearest("txt", ["text", "id"])
    "; did you mean 'text'?"
    """
    import difflib  # only a mistake needs it

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_installed(module: str, *, extra: str) -> None:
    """Say which extra installs an optional dependency, if it is missing, without importing it."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, extra)


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise _missing(module, extra) from None


def _missing(module: str, extra: str) -> MissingDependency:
    return MissingDependency(
        f"{module}: expected to be installed; it is not. Install it with: pip install 'gristmill[{extra}]'"
    )
