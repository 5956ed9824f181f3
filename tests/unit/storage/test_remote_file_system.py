"""A store behind the interface of a file system, on fsspec's memory. Real servers are under tests/stores."""

import errno
import http.server
import io
import threading
import zipfile

import pytest

from gristmill.errors import ConfigError, MachineError, ReadError
from gristmill.storage.file_system import file_system
from gristmill.storage.open_read import file_size
from gristmill.storage.paths import list_files
from gristmill.storage.remote_file_system import RemoteFileSystem
from gristmill.storage.store_errors import as_machine_error, store_errors


@pytest.fixture
def store():
    fs = RemoteFileSystem("memory://remote", {})
    yield fs
    fs.remove_all(fs.walk_all("memory://remote"))


class ClientError(Exception):
    """What botocore raises: not an OSError, with the store's words in a dictionary."""

    def __init__(self, code, message):
        super().__init__(f"An error occurred ({code}) when calling the PutObject operation: {message}")
        self.response = {"Error": {"Code": code, "Message": message}}


ClientError.__module__ = "botocore.exceptions"


def test_the_second_to_create_an_object_is_told_and_changes_nothing(store):
    assert store.create("memory://remote/a", b"first")
    assert not store.create("memory://remote/a", b"second")
    assert store.read("memory://remote/a") == b"first"


def test_whoever_creates_the_same_again_has_created_it(store):
    """The answer to the first try may be lost on the way: the client then tries again, and finds its own object."""
    assert store.create("memory://remote/a", b"mine")
    assert store.create("memory://remote/a", b"mine")


def test_a_rename_replaces_the_target_and_leaves_no_source(store):
    store.write("memory://remote/new", b"new")
    store.write("memory://remote/there", b"old")
    store.rename("memory://remote/new", "memory://remote/there")
    assert store.read("memory://remote/there") == b"new"
    assert store.status("memory://remote/new") is None


def test_everything_below_is_listed_hidden_or_not(store):
    store.write("memory://remote/.gristmill/tmp/a", b"1")
    store.write("memory://remote/b", b"22")
    assert {
        path.rpartition("remote/")[2]: status.size for path, status in store.walk_all("memory://remote").items()
    } == {
        ".gristmill/tmp/a": 1,
        "b": 2,
    }
    assert [status.path.rpartition("/")[2] for status in store.walk("memory://remote")] == ["b"]
    assert store.walk_all("memory://remote/nothing") == {}


@pytest.mark.parametrize(
    ("error", "number", "words"),
    [
        (ClientError("NoSuchBucket", "The specified bucket does not exist"), errno.ENOENT, "the bucket does not exist"),
        (ClientError("ExpiredToken", "The provided token has expired."), errno.EACCES, "the access token has expired"),
        (ClientError("InvalidAccessKeyId", "No such key"), errno.EACCES, "the store does not know the access key"),
        (ClientError("SlowDown", "Reduce your rate"), errno.EBUSY, "the store asks for fewer requests"),
        (ClientError("InternalError", "We are sorry"), errno.EIO, "the store failed"),
        (PermissionError("Forbidden"), errno.EACCES, "the store refuses access"),
        (TimeoutError(), errno.ETIMEDOUT, "the store does not answer"),
        (OSError(errno.EBUSY, "SlowDown"), errno.EBUSY, "the store asks for fewer requests"),
    ],
)
def test_what_a_store_answers_becomes_an_error_of_the_machine(error, number, words):
    expected = f"^s3://b/k: {words} .*then run the same command again"
    with pytest.raises(MachineError, match=expected) as caught, store_errors("s3://b/k"):
        raise error
    assert caught.value.errno == number


def test_the_cause_of_a_translated_error_is_found():
    translated = FileNotFoundError("The specified bucket does not exist")
    translated.__cause__ = ClientError("NoSuchBucket", "The specified bucket does not exist")
    with pytest.raises(MachineError, match="the bucket does not exist"), store_errors("s3://b/k"):
        raise translated


@pytest.mark.parametrize("error", [FileNotFoundError("k"), FileExistsError("k"), TypeError("ours"), KeyError("ours")])
def test_what_is_there_and_our_own_mistakes_stay_as_they_are(error):
    with pytest.raises(type(error)) as caught, store_errors("s3://b/k"):
        raise error
    assert caught.value is error


def test_no_secret_is_repeated():
    url = "s3://user:topsecret@bucket/key?X-Amz-Signature=topsecret"
    error = ClientError("AccessDenied", "refused https://u:topsecret@host/key?X-Amz-Credential=topsecret&b=c")
    assert "topsecret" not in str(as_machine_error(url, error))


def test_a_scheme_nobody_knows_is_a_mistake_in_words():
    with pytest.raises(ConfigError, match=r"^nosuch://a: expected a path or a URL that fsspec knows"):
        file_system("nosuch://a")


@pytest.mark.parametrize("scheme", ["reference", "filecache", "simplecache", "REFERENCE", "dask"])
def test_instructions_in_the_form_of_a_url_are_refused(scheme):
    with pytest.raises(ConfigError, match="expected the URL of a store"):
        file_system(f"{scheme}://a", {"fo": "x.json"}).status(f"{scheme}://a")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("dir://a::simplecache::memory://y", {}),
        ("simplecache::memory://y", {}),
        ("zip://a::FILECACHE://x::memory://y", {}),
        ("dir://::reference://", {"reference": {"fo": "x.json"}}),
        ("dir://a", {"target_protocol": "reference", "target_options": {"fo": "x.json"}}),
        ("memory://a", {"protocol": "simplecache", "target_protocol": "memory"}),
        ("zip://a", {"fo": "simplecache::memory://y"}),
        ("dir://a", {"target_options": {"target_protocol": "asyncwrapper"}}),
    ],
)
def test_instructions_within_a_chain_or_in_options_are_refused_too(url, options):
    with pytest.raises(ConfigError, match="expected the URL of a store"):
        RemoteFileSystem(url, options)


def test_an_archive_on_a_store_is_read_through_a_chain(store):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.jsonl", b"{}")
    store.write("memory://remote/x.zip", content.getvalue())
    assert RemoteFileSystem(chain := "zip://a.jsonl::memory://remote/x.zip", {}).read("a.jsonl") == b"{}", chain


@pytest.mark.parametrize("url", ["dir://x", "zip://a.jsonl::file:///nowhere.zip", "zip://a.jsonl"])
def test_a_url_that_lacks_something_is_a_mistake_in_words(url):
    with pytest.raises(ConfigError, match=f"^{url}: expected a (path or a URL that fsspec knows|file that is there)"):
        RemoteFileSystem(url, {})


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_what_is_not_an_archive_is_a_mistake_in_words(store, kind):
    store.write(f"memory://remote/broken.{kind}", b"not an archive")
    words = rf"^memory://remote/broken\.{kind}: expected a whole {kind} archive, as {kind}:// before it says; "
    with pytest.raises(ConfigError, match=words):
        RemoteFileSystem(f"{kind}://a.jsonl::memory://remote/broken.{kind}", {})


class _Chunked(http.server.BaseHTTPRequestHandler):
    """A server that sends files without saying how long they are, but for those that are named so."""

    protocol_version = "HTTP/1.1"
    body = b'{"text": "a"}\n'

    def do_GET(self):
        body = self.body
        if self.path == "/":
            body = b'<a href="sized.jsonl">s</a> <a href="notes.html">n</a>'
        self.send_response(200)
        self.send_header("ETag", '"1"')
        if self.path == "/sized.jsonl":
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command != "HEAD":
            chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            self.wfile.write(body if self.path == "/sized.jsonl" else chunked)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Chunked) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.slow
def test_a_file_whose_server_does_not_tell_its_size_is_refused_and_not_read_as_empty(web):
    with pytest.raises(ConfigError, match=r"a\.jsonl\?token=\*\*\*:? expected a file whose size its server says; got"):
        list_files(f"{web}/a.jsonl?token=abc")
    with pytest.raises(ReadError, match="expected a file whose size its server says"):
        file_size(f"{web}/a.jsonl")


@pytest.mark.slow
def test_files_that_a_web_page_lists_are_asked_for_their_sizes(web):
    (found,) = list_files(web + "/", extensions=["jsonl"])
    assert (found.path, found.size, found.version) == (f"{web}/sized.jsonl", len(_Chunked.body), '"1"')
