"""Whatever fsspec reaches, as a `FileSystem`: `s3://`, `gs://`, `az://`, `https://`, `memory://`.

An object store has no directories and no rename. An object appears whole when its upload ends, so publishing is a copy
inside the store followed by a delete, and doing both again changes nothing. A run is safe there because of `create`,
which fails if the object exists: of two processes that create the same one, the store lets one through.
"""

import contextlib
import datetime
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import BinaryIO, cast

from gristmill.errors import ConfigError, MissingDependency
from gristmill.secrets import remember, without_secrets
from gristmill.storage.file_system import UNKNOWN_SIZE, FileStatus, StorageOptions, is_hidden
from gristmill.storage.store_errors import code_of, store_errors

S3 = ("s3", "s3a")
# Stores whose client creates an object only if it is not there, in one step. Elsewhere fsspec looks first and then
# writes: another process may write in between.
CREATES = (*S3, "gs", "gcs", "az", "abfs", "abfss", "memory")
# Names under which fsspec takes instructions instead of a place: templates that are rendered, caches that are unpacked
# (some versions unpickle them), other machines that are told what to load. A path is data, maybe from a stranger.
REFUSED = (
    "reference", "filecache", "blockcache", "simplecache", "cached", "generic", "dask", "async_wrapper", "asyncwrapper",
)  # fmt: skip
_EXTRAS = {"s3": "s3", "s3a": "s3"}
# botocore tries three times, and s3fs five times that where it is told to slow down. botocore's own default for a
# machine that does not answer is ten seconds of trying, which is long for a user who has misspelt an address.
_S3_CONFIG = {"retries": {"mode": "standard", "max_attempts": 3}}
_DELETED_AT_ONCE = 1000


class RemoteFileSystem:
    """One store, with the options to reach it. Errors are `MachineError`s, except about what exists or does not."""

    def __init__(self, url: str, options: StorageOptions) -> None:
        remember(options)
        self._scheme = url.partition("://")[0].lower()
        if _instructs(url) or _options_instruct(options):
            raise ConfigError(
                f"{without_secrets(url)}: expected the URL of a store; got one that tells fsspec what to do"
            )
        import tarfile
        import zipfile

        import fsspec

        self._url_given = url
        given: dict[str, object] = {"use_listings_cache": False, **options}  # others write there too
        if self._scheme in S3:
            given.setdefault("config_kwargs", _S3_CONFIG)
        try:
            with store_errors(url):
                self._fs = fsspec.core.url_to_fs(url, **given)[0]
        except ImportError as error:
            extra = _EXTRAS.get(self._scheme)
            how = f"pip install 'gristmill[{extra}]'" if extra else str(error)
            raise MissingDependency(
                f"{without_secrets(url)}: expected a package for {self._scheme}://; install it: {how}"
            ) from None
        except (
            FileNotFoundError,
            IsADirectoryError,
            NotADirectoryError,
        ) as error:  # the archive in zip://a.jsonl::file:///there.zip
            raise ConfigError(f"{without_secrets(url)}: expected a file that is there; {error}") from None
        except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:  # that file is not an archive, or is cut off
            archive = url.partition("::")[2]
            kind = self._scheme
            raise ConfigError(
                f"{without_secrets(archive)}: expected a whole {kind} archive, as {kind}:// before it says; {error}"
            ) from None
        except (ValueError, TypeError, AttributeError) as error:  # an unknown scheme, or an option is missing
            raise ConfigError(
                f"{without_secrets(url)}: expected a path or a URL that fsspec knows, with all it needs; {error}"
            ) from None

    @property
    def _has_objects(self) -> bool:
        return self._scheme in CREATES

    def full(self, path: str) -> str:
        """The URL as listings spell it."""
        return self._url(str(self._fs._strip_protocol(path)))

    def _url(self, path: str) -> str:
        return cast("str", self._fs.unstrip_protocol(path)) if "://" not in path else path

    def _status(self, info: Mapping[str, object]) -> FileStatus:
        version = next((info[k] for k in ("ETag", "etag", "mtime", "LastModified", "created") if info.get(k)), "")
        # A time may come as a date from one call and as a number from another.
        version = str(version.timestamp() if isinstance(version, datetime.datetime) else version)
        size = info.get("size")
        return FileStatus(self._url(str(info["name"])), size if isinstance(size, int) else UNKNOWN_SIZE, version)

    def status(self, path: str, *, fresh: bool = False) -> FileStatus | None:
        """A file, or None. With `fresh` the store is asked, whatever an earlier listing said."""
        try:
            with store_errors(path):
                if fresh:
                    self._fs.invalidate_cache(path)
                info = self._fs.info(path)
        except FileNotFoundError:
            return None
        return None if info["type"] == "directory" else self._status(info)

    def modified(self, path: str) -> float | None:
        """When an object was written, in seconds by the clock of the store; None if it does not say."""
        with store_errors(path):
            info = self._fs.info(path)
        found = next((info[k] for k in ("LastModified", "mtime", "last_modified", "created") if info.get(k)), None)
        return found.timestamp() if isinstance(found, datetime.datetime) else None

    def is_directory(self, path: str) -> bool:
        with store_errors(path):
            if self._fs.isdir(path):
                return True
            if self._scheme in S3:  # it says the same of a bucket that does not exist
                with contextlib.suppress(FileNotFoundError), store_errors(path):
                    self._fs.ls(path, detail=False)
            return False

    def walk(self, directory: str) -> Iterator[FileStatus]:
        root = self._fs._strip_protocol(directory).rstrip("/")
        for name, info in self._find(directory).items():
            if not any(is_hidden(part) for part in name[len(root) :].strip("/").split("/")):
                yield self._status(info)

    def walk_all(self, directory: str) -> dict[str, FileStatus]:
        """Everything below, hidden or not, by its URL."""
        found = (self._status(info) for info in self._find(directory).values())
        return {status.path: status for status in found}

    def _find(self, directory: str) -> dict[str, Mapping[str, object]]:
        found: dict[str, Mapping[str, object]] = {}
        with store_errors(directory), contextlib.suppress(FileNotFoundError):
            found = self._fs.find(directory, detail=True)
        root = str(self._fs._strip_protocol(directory)).rstrip("/")
        # Some stores list empty objects that stand for directories, including the one that was asked for.
        return {name: info for name, info in found.items() if not _is_directory(name, info, root)}

    def list_names(self, directory: str) -> list[str]:
        try:
            with store_errors(directory):
                return sorted(str(name).rstrip("/").rpartition("/")[2] for name in self._fs.ls(directory, detail=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def open_read(self, path: str) -> BinaryIO:
        with store_errors(path):
            return cast("BinaryIO", _Download(self._fs.open(path, "rb"), path))

    def open_write(self, path: str) -> BinaryIO:
        with store_errors(path):
            if not self._has_objects:
                self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            return cast("BinaryIO", _Upload(self._fs.open(path, "wb"), path))

    def read(self, path: str) -> bytes | None:
        """The whole content of an object, or None if it is not there."""
        try:
            with store_errors(path):
                return cast("bytes", self._fs.cat_file(path))
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """Write a whole object, over another if there is one."""
        with store_errors(path):
            self._fs.pipe_file(path, content)

    def create(self, path: str, content: bytes) -> bool:
        """Write a whole object if there is none of that name. Return whether this very call wrote it."""
        try:
            with store_errors(path):
                self._fs.pipe_file(path, content, mode="create")
        except FileExistsError:
            return self.read(path) == content  # the answer to an earlier try of the same call may have been lost
        except OSError as error:
            if code_of(error) not in ("PreconditionFailed", "412"):
                raise
            return self.read(path) == content
        return True

    def rename(self, source: str, target: str) -> None:
        """Give an object another name. Readers of the target find the old object or the new one, whole."""
        with store_errors(target):
            if self._has_objects:
                self._fs.cp_file(source, target)
                self._fs.rm_file(source)
                return
            self._fs.makedirs(target.rpartition("/")[0], exist_ok=True)
            if self._fs.exists(target):
                self._fs.rm_file(target)
            self._fs.mv(source, target)

    def remove(self, path: str) -> None:
        with store_errors(path), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(path)

    def remove_all(self, paths: Iterable[str]) -> None:
        """Remove many objects, a thousand with each request where the store can."""
        if self._scheme not in S3:
            for path in paths:
                self.remove(path)
            return
        from fsspec.asyn import sync

        # Not `rm`, which takes names for patterns: an object may have brackets in its name.
        todo = list(paths)
        for start in range(0, len(todo), _DELETED_AT_ONCE):
            with store_errors(self._url_given):
                sync(self._fs.loop, self._fs._bulk_delete, todo[start : start + _DELETED_AT_ONCE])

    def abort_uploads(self, directory: str) -> None:
        """Give up unfinished uploads below a directory: nobody sees their parts, and somebody pays for them."""
        if self._scheme not in S3:
            return
        bucket, _, prefix = str(self._fs._strip_protocol(directory)).partition("/")
        with store_errors(directory):
            for upload in self._fs.list_multipart_uploads(bucket):
                if upload["Key"].startswith(f"{prefix.rstrip('/')}/"):
                    with contextlib.suppress(FileNotFoundError):
                        self._fs.abort_mpu(bucket, upload["Key"], upload["UploadId"])

    def make_directory(self, path: str) -> None:
        """Object stores have no directories. Asked for one, s3fs would create a bucket under a misspelt name."""
        if not self._has_objects:
            with store_errors(path):
                self._fs.makedirs(path, exist_ok=True)


def _instructs(url: str) -> bool:
    """Whether any of the schemes of a URL, which may be a chain such as zip://a::s3://b, is one of `REFUSED`."""
    return any(link.partition("://")[0].lower() in REFUSED for link in url.split("::"))


def _options_instruct(options: Mapping[str, object]) -> bool:
    """Whether options bring in what a URL may not: by a scheme, or by a URL of their own."""
    for name, value in options.items():
        names_one = isinstance(value, str) and (name.endswith("protocol") or "://" in value or "::" in value)
        if (
            str(name).lower() in REFUSED
            or (names_one and _instructs(str(value)))
            or (isinstance(value, Mapping) and _options_instruct(value))
        ):
            return True
    return False


def _is_directory(name: str, info: Mapping[str, object], root: str) -> bool:
    key = str(info.get("Key") or name)
    return info.get("type") == "directory" or (not info.get("size") and (key.endswith("/") or name.rstrip("/") == root))


class _Remote:
    """A file of fsspec's whose errors become `MachineError`s."""

    def __init__(self, file: BinaryIO, url: str) -> None:
        self._file = file
        self._url = url

    @property
    def closed(self) -> bool:
        return self._file.closed

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        with store_errors(self._url):
            self._file.close()


class _Download(_Remote):
    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with store_errors(self._url):
            return self._file.read(size)

    def __iter__(self) -> Iterator[bytes]:
        with store_errors(self._url):
            yield from self._file

    def seek(self, offset: int, whence: int = 0) -> int:
        with store_errors(self._url):
            return self._file.seek(offset, whence)

    def __enter__(self) -> "_Download":
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()


class _Upload(_Remote):
    """An object that appears when its `with` is left without an error, and not at all otherwise."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | memoryview) -> int:
        with store_errors(self._url):
            return self._file.write(data)

    def flush(self) -> None:
        """Bytes written here go to the store when there are enough of them."""

    def __enter__(self) -> "_Upload":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif hasattr(self._file, "discard"):
            # If it were closed like any file, what was written so far would become an object.
            with contextlib.suppress(OSError), store_errors(self._url):
                self._file.discard()
            with contextlib.suppress(AttributeError):  # fsspec's memory store has plain Python files, nothing to lose
                self._file.closed = True  # type: ignore[misc]  # or its finaliser would write what was discarded
