"""What goes wrong with an object store, as one kind of error with the store's own words.

Every client library has exceptions of its own, many of them not OSErrors. Here they become `MachineError`: no document
is to blame. Its `errno` says whether waiting may help (EBUSY, ECONNREFUSED, EIO) or not (EACCES, ENOENT), which is what
the engine sorts by. Keys and tokens are never repeated.
"""

import contextlib
import errno
from collections.abc import Iterator

from gristmill.errors import GristmillError, MachineError
from gristmill.secrets import without_secrets
from gristmill.storage.atomic_write import GO_ON

_REFUSED = "the store refuses access"
_CODES = {
    "NoSuchBucket": (errno.ENOENT, "the bucket does not exist", "Create it or correct its name"),
    "InvalidAccessKeyId": (errno.EACCES, "the store does not know the access key", "Correct the credentials"),
    "SignatureDoesNotMatch": (errno.EACCES, "the secret does not belong to the access key", "Correct the credentials"),
    "ExpiredToken": (errno.EACCES, "the access token has expired", "Renew the credentials"),
    "TokenRefreshRequired": (errno.EACCES, "the access token has expired", "Renew the credentials"),
    "InvalidToken": (errno.EACCES, "the store does not know the access token", "Correct the credentials"),
    "RequestTimeTooSkewed": (errno.EACCES, "the clocks of store and machine differ", "Set the machine's clock"),
    "AccessDenied": (errno.EACCES, _REFUSED, "Allow this access, or use other credentials"),
    "SlowDown": (errno.EBUSY, "the store asks for fewer requests", "Use fewer workers or wait"),
    "TooManyRequests": (errno.EBUSY, "the store asks for fewer requests", "Use fewer workers or wait"),
    "InvalidBucketName": (errno.ENOENT, "that is not a bucket name", "Correct it"),
    "QuotaExceeded": (errno.EDQUOT, "the quota of the bucket is used up", "Have it raised or make room"),
}
_CODES |= {"403": _CODES["AccessDenied"], "Forbidden": _CODES["AccessDenied"], "401": _CODES["AccessDenied"]}
_CODES |= {"503": _CODES["SlowDown"], "429": _CODES["SlowDown"], "ServiceUnavailable": _CODES["SlowDown"]}
_CODES |= {"RequestLimitExceeded": _CODES["SlowDown"], "Throttling": _CODES["SlowDown"]}
_CODES |= {"ServerBusy": _CODES["SlowDown"], "ExpiredTokenException": _CODES["ExpiredToken"]}
_UNREACHABLE = (errno.ECONNREFUSED, "the store cannot be reached", "Check that it is up")
_NAMES = {  # of exceptions that carry no code
    "NoCredentialsError": (errno.EACCES, "no credentials were found", "Set them in the environment or storage_options"),
    "PartialCredentialsError": (errno.EACCES, "the credentials are not complete", "Complete them"),
    "EndpointConnectionError": _UNREACHABLE,
    "ClientConnectorError": _UNREACHABLE,
}
_PERMISSION = (errno.EACCES, _REFUSED, "Allow this access, or use other credentials")
_OTHER = (errno.EIO, "the store failed", "Fix this")
# The packages whose exceptions are a store's: everything else that goes wrong here is a mistake in our code.
_LIBRARIES = {
    "aiobotocore",
    "aiohttp",
    "azure",
    "adlfs",
    "botocore",
    "fsspec",
    "gcsfs",
    "google",
    "requests",
    "urllib3",
}
_THERE_OR_NOT = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
_MOST_CHARS = 300


@contextlib.contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn what a client library raises into a `MachineError`, unless it says that something exists or does not."""
    try:
        yield
    except GristmillError:
        raise
    except Exception as error:
        if not _is_of_a_store(error):
            raise
        raise as_machine_error(url, error) from error


def _is_of_a_store(error: Exception) -> bool:
    if isinstance(error, _THERE_OR_NOT):
        return code_of(error) == "NoSuchBucket"
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, OSError | TimeoutError) or module in _LIBRARIES


def as_machine_error(url: str, error: BaseException) -> MachineError:
    """Say which object, what is wrong, the store's own words and how to go on."""
    code = code_of(error)
    number, reason, advice = _CODES.get(code) or _NAMES.get(_name_of(error)) or _by_kind(error)
    words = _said(error)
    words = f"{code}: {words}" if code and code not in words else words
    told = MachineError(f"{without_secrets(url)}: {reason} ({words}). {advice}, then {GO_ON}.")
    told.errno = number  # without strerror, or Python would print its own sentence instead of ours
    return told


def _by_kind(error: BaseException) -> tuple[int, str, str]:
    if isinstance(error, PermissionError):
        return _PERMISSION
    if isinstance(error, TimeoutError):
        return errno.ETIMEDOUT, "the store does not answer", "Check that it is up"
    if isinstance(error, OSError) and error.errno == errno.EBUSY:
        return _CODES["SlowDown"]
    return _OTHER


def may_pass(error: OSError) -> bool:
    """Whether waiting may help: a store that is busy or away, not one that refuses."""
    return error.errno in (errno.EBUSY, errno.EIO, errno.ECONNREFUSED, errno.ETIMEDOUT)


def code_of(error: BaseException) -> str:
    """The store's own name for what went wrong, or "": botocore keeps it in a response, others in an attribute."""
    for each in _chain(error):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        for name in ("error_code", "status", "code"):  # aiohttp has both of the latter, and warns of `code`
            if isinstance(value := getattr(each, name, None), str | int):
                return str(value)
    return ""


def _name_of(error: BaseException) -> str:
    return next((type(each).__name__ for each in _chain(error) if type(each).__name__ in _NAMES), "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__


def _said(error: BaseException) -> str:
    """The store's words, on one line."""
    return without_secrets(" ".join(str(error).split()) or type(error).__name__)[:_MOST_CHARS]
