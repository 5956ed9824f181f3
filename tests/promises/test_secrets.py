"""A secret is used and not written down: no byte of a run's directory, its output or its messages holds one."""

import base64
import functools
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.jsonl_files import write_documents

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, NoInputError, ResumeRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.base import ProcessingStage
from gristmill.stages.text.filters import ScoreFilter
from gristmill.stages.text.filters.heuristic import WordCountFilter
from gristmill.stages.text.io import JsonlReader, JsonlWriter

pytestmark = pytest.mark.slow

SECRETS = ("t0psecret-1", "t0psecret-2", "t0psecret-3", "t0psecret-4", "t0psecret-5", "s1gnature")


def bytes_of(directory: Path) -> dict[str, bytes]:
    """Names and contents of all files."""
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def assert_no_secret(directory: Path, *texts: str) -> None:
    files = bytes_of(directory)
    assert files
    for secret in SECRETS:
        encoded = {secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")[:-1]}
        for name, content in files.items():
            assert secret not in name
            assert not any(form in content for form in encoded), f"{secret} is in {name}"
        for text in texts:
            assert secret not in text


class Telling(ProcessingStage):
    """Holds a key, and tells it and a URL to everybody in its errors."""

    def __init__(self, api_key: str) -> None:
        self.api_key = api_key
        self.endpoint = f"https://me:{SECRETS[2]}@host/v1"

    def process(self, task):
        for number in task.column("n").to_pylist():
            if number == 3:
                raise ValueError(f"cannot reach {self.endpoint} with option {SECRETS[0]}")
            if number == 5:
                raise OSError(f"{self.endpoint}?X-Amz-Signature={SECRETS[5]} is gone")
        return task


def pipeline(source, out, *, token=SECRETS[0], key=SECRETS[3]):
    options = {"secret": token, "key": SECRETS[1], "auto_mkdir": True}
    return Pipeline(
        "secretive",
        stages=[
            JsonlReader(f"local://{source}", read_kwargs={"storage_options": options}),
            ScoreFilter(WordCountFilter(min_words=2)),
            Telling(key),
            JsonlWriter(str(out), write_kwargs={"storage_options": options}),
        ],
    )


@pytest.fixture
def source(tmp_path):
    documents = [{"n": n, "text": "a b c" if n % 4 else "a"} for n in range(9)]
    write_documents(tmp_path / "in" / "a.jsonl", documents)
    (tmp_path / "in" / "b.jsonl").write_text('{"n": 100, "text": "x y"}\n{broken\n')
    return tmp_path / "in"


def test_a_run_writes_down_no_secret_it_was_given(source, tmp_path):
    result = pipeline(source, tmp_path / "out").run(
        LocalExecutor(num_workers=1),
        checkpoint_path=tmp_path / "run",
        rejects_path=tmp_path / "rejects",
        max_quarantined=1.0,
    )

    assert (result.written, result.quarantined, result.dropped_total) == (5, 3, 3)
    assert (tmp_path / "run" / "header.json").exists()
    assert (tmp_path / "run" / "events.log").exists()
    for part in ("run", "out", "rejects"):
        assert_no_secret(tmp_path / part, *result.messages, repr(result))
    assert b"cannot reach https://***@host/v1" in b"".join(bytes_of(tmp_path / "run").values())


def test_a_run_on_a_store_writes_down_no_secret_either(source, tmp_path):
    import fsspec

    store = fsspec.filesystem("memory")
    for path in source.iterdir():
        store.pipe(f"/secret-in/{path.name}", path.read_bytes())
    made = pipeline(source, tmp_path / "out")
    options = {"secret": SECRETS[0], "key": SECRETS[1]}
    made.stages[0] = JsonlReader("memory://secret-in", read_kwargs={"storage_options": options})
    made.stages[-1] = JsonlWriter("memory://secret-out", write_kwargs={"storage_options": options})
    result = made.run(LocalExecutor(num_workers=0), max_quarantined=1.0, quiet=True)
    files = store.find("/secret-out")

    assert (result.written, result.quarantined) == (5, 3)
    assert any("header.json" in file for file in files)
    for secret in SECRETS:
        assert not [file for file in files if secret.encode() in store.cat(file) or secret in file]
    store.rm("/secret-in", recursive=True)
    store.rm("/secret-out", recursive=True)


def test_a_new_token_continues_the_run_and_a_new_threshold_does_not(source, tmp_path):
    def run(made):
        return made.run(LocalExecutor(num_workers=0), checkpoint_path=tmp_path / "run", max_quarantined=1.0)

    run(pipeline(source, tmp_path / "out"))
    again = run(pipeline(source, tmp_path / "out", token="another-token", key="another-key"))
    changed = pipeline(source, tmp_path / "out")
    changed.stages[1] = ScoreFilter(WordCountFilter(min_words=3))

    assert again.resumed
    with pytest.raises(ResumeRefused):
        run(changed)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(source):
    handler = functools.partial(_Quiet, directory=str(source))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def signed(server, signature=SECRETS[5]):
    return f"http://{server}/b.jsonl?X-Amz-Date=1&X-Amz-Signature={signature}"


def test_a_signed_url_is_read_and_not_written_down(server, tmp_path):
    pytest.importorskip("aiohttp")
    out = tmp_path / "out"

    def run(url):
        made = Pipeline("signed", stages=[JsonlReader(url), JsonlWriter(str(out))])
        return made.run(LocalExecutor(num_workers=0), checkpoint_path=out / ".gristmill", max_quarantined=1.0)

    first = run(signed(server))
    again = run(signed(server, "another"))

    assert (first.written, first.quarantined) == (1, 1)
    assert (again.written, again.resumed) == (1, True)
    assert [path.name for path in out.glob("*.jsonl")] == ["b.jsonl"]
    assert_no_secret(out)
    [file] = (out / ".gristmill" / "quarantine").glob("*.jsonl")
    record = json.loads(file.read_text())
    assert (record["source"], record["line"]) == (f"http://{server}/b.jsonl?***", 2)


def test_an_input_that_is_not_there_is_named_without_its_password(server):
    pytest.importorskip("aiohttp")
    url = f"http://me:{SECRETS[4]}@{server}/nothing.jsonl"

    with pytest.raises(NoInputError, match=r"nothing\.jsonl") as raised:
        Pipeline("p", stages=[JsonlReader(url), JsonlWriter("out")]).plan()
    assert SECRETS[4] not in str(raised.value)


@pytest.mark.parametrize("place", ["output", "checkpoint_path", "rejects_path"])
def test_a_place_to_write_to_with_a_password_in_its_name_is_refused(source, tmp_path, place):
    url = f"ftp://me:{SECRETS[4]}@127.0.0.1/x"
    made = Pipeline(
        "p", stages=[JsonlReader(str(source)), JsonlWriter(url if place == "output" else str(tmp_path / "o"))]
    )

    with pytest.raises(ConfigError, match="expected a URL without a password") as raised:
        made.run(**({} if place == "output" else {place: url}))
    assert SECRETS[4] not in str(raised.value)


def test_the_command_line_says_no_secret_either(source, tmp_path):
    reader = f'- JsonlReader: {{file_paths: "local://{source}", %s: {{storage_options: {{secret: {SECRETS[0]}}}}}}}'
    writer = '- JsonlWriter: {path: "${output}"}'
    for name, parameter in (("r", "read_kwargs"), ("wrong", "fields")):
        (tmp_path / f"{name}.yaml").write_text(f"name: r\nstages:\n{reader % parameter}\n{writer}\n")
    program = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]
    said = []
    for words in (
        ["run", "r.yaml", "--output", "out", "--json", "--max-quarantined", "100%"],
        ["status", "out"],
        ["plan", "r.yaml", "--output", "other", "--json"],
        ["run", "wrong.yaml", "--output", "other", "--debug"],
        ["plan", "r.yaml", "--output", f"ftp://me:{SECRETS[4]}@h/x", "--debug"],
    ):
        done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        said += [done.stdout, done.stderr]

    assert '"written": 10' in said[0]
    assert_no_secret(tmp_path / "out", *said)
