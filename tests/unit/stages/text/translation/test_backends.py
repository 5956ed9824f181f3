"""Translation by a server of its own, by Amazon and by Google, as far as they can be had here."""

import asyncio
import contextlib
import json
import sys
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MissingDependency, RunFailed, ServerRefused
from gristmill.pipeline import Pipeline
from gristmill.stages.text.experimental.translation import TranslationStage, backends
from gristmill.stages.text.experimental.translation.backends import parts_of
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch


@contextlib.contextmanager
def nmt_server(respond=None):
    """A server that writes in capital letters; `respond(texts, number)` may return (status, body) in its place."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(asked)
            made = respond(asked["texts"], len(seen)) if respond else None
            status, body = made or (200, {"translations": [text.upper() for text in asked["texts"]]})
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def translated(texts, backend="nmt", **options):
    """Return the translations, and the stage."""
    given = {"source_lang": "en", "target_lang": "de", "health_check": False, "backend_type": backend}
    (stage,) = TranslationStage(**given, **options).decompose()
    batch = DocumentBatch("d", pa.table({"text": pa.array(texts, pa.string())}))

    async def run():
        await stage.setup()
        try:
            return await stage.process(batch)
        finally:
            await stage.teardown()

    return asyncio.run(run()).column("translated_text").to_pylist(), stage


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setattr(backends, "BASE_DELAY_S", 0.0)


def test_texts_travel_together_in_batches_of_32():
    texts = [f"text {number}" for number in range(100)]
    with nmt_server() as (url, seen):
        made, stage = translated([*texts, None, ""], backend_config={"server_url": url + "/"})

    assert made == [text.upper() for text in texts] + [None, None]
    assert max(len(each["texts"]) for each in seen) == 32
    assert len(seen) <= 8
    assert (seen[0]["src_lang"], seen[0]["tgt_lang"]) == ("en", "de")
    assert (stage.client.batch_size, stage.client.timeout) == (32, 120.0)


def test_a_text_the_server_cannot_digest_fails_by_itself():
    def respond(texts, _):
        return (422, {"error": "no"}) if "bad 7" in texts else None

    texts = [f"bad {number}" for number in range(20)]
    with nmt_server(respond) as (url, _):
        made, stage = translated(texts, backend_config={"server_url": url})

    assert made == [text.upper() for text in texts if text != "bad 7"]
    (record,) = stage.context.quarantined
    assert record.row == 7
    assert "expected status 200; got 422" in record.error


@pytest.mark.parametrize(
    "body",
    [(503, {}), (429, {}), (200, b"<html>"), (200, {"other": []})],
    ids=["503", "429", "html", "other"],
)
def test_a_request_that_fails_once_is_sent_again(body):
    with nmt_server(lambda _, number: body if number == 1 else None) as (url, seen):
        made, _ = translated(["one"], backend_config={"server_url": url})

    assert made == ["ONE"]
    assert len(seen) == 2


def test_too_few_translations_are_never_given_to_the_wrong_texts():
    def respond(texts, _):
        return (200, {"translations": texts[1:]}) if len(texts) > 1 else None

    with nmt_server(respond) as (url, _):
        made, _ = translated(["one", "two", "three"], backend_config={"server_url": url})

    assert made == ["ONE", "TWO", "THREE"]


def test_a_server_that_is_not_there_ends_the_run_and_no_document_is_to_blame():
    with nmt_server() as (url, _):
        pass
    with pytest.raises(ServerRefused, match=r"10 texts in a row were not translated; the last: http://127.0.0.1"):
        translated([f"text {n}" for n in range(12)], backend_config={"server_url": url})


def test_a_pipeline_is_translated_by_a_server_and_says_at_once_if_there_is_none(tmp_path):
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps({"id": n, "text": f"text {n}"}) + "\n" for n in range(200)))

    def run(output):
        stage = TranslationStage(
            source_lang="en", target_lang="de", backend_type="nmt", backend_config={"server_url": url}
        )
        stages = [JsonlReader(str(tmp_path / "raw.jsonl")), stage, JsonlWriter(str(tmp_path / output))]
        return Pipeline("translate", stages=stages).run(LocalExecutor(num_workers=1))

    with nmt_server() as (url, seen):
        assert run("made").written == 200
        assert len(seen) < 20
    made = [json.loads(line) for line in (tmp_path / "made" / "raw.jsonl").read_text().splitlines()]
    assert [row["translated_text"] for row in made] == [f"TEXT {n}" for n in range(200)]
    with pytest.raises(RunFailed, match="expected the translation backend to answer; got http"):
        run("nowhere")


def test_nmt_without_aiohttp_names_the_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[llm\]'"):
        translated([], backend_config={"server_url": "http://127.0.0.1:1"})


@pytest.mark.parametrize(
    ("backend", "command"), [("aws", "pip install boto3"), ("google", "pip install google-cloud-translate")]
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(backend, command, monkeypatch):
    monkeypatch.setattr(backends, "_is_installed", lambda module: False)
    with pytest.raises(MissingDependency, match=command):
        translated([], backend)
    with pytest.raises(ConfigError, match="expected options of the backend"):
        translated([], backend, backend_config={"key": "x"})


def test_amazon_is_asked_in_parts_of_ten_thousand_bytes(monkeypatch):
    asked = []

    class Translate:
        def translate_text(self, **request):
            asked.append(request)
            return {"TranslatedText": request["Text"].upper()}

    library = types.ModuleType("boto3")
    library.client = lambda service, region_name: Translate()
    monkeypatch.setitem(sys.modules, "boto3", library)
    text = "word " * 3000 + "end"
    made, _ = translated([text, "two"], "aws", backend_config={"region": "eu-central-1"})

    assert made == [text.upper(), "TWO"]
    assert max(len(each["Text"].encode()) for each in asked) <= 10_000
    assert {(each["SourceLanguageCode"], each["TargetLanguageCode"]) for each in asked} == {("en", "de")}


def test_google_is_asked_by_its_basic_or_its_advanced_interface(monkeypatch):
    class Basic:
        def translate(self, text, **options):
            assert options == {"source_language": "en", "target_language": "de", "format_": "text"}
            return {"translatedText": text.upper()}

    class Advanced:
        def translate_text(self, request):
            assert request["parent"] == "projects/p/locations/global"
            return types.SimpleNamespace(
                translations=[types.SimpleNamespace(translated_text=request["contents"][0].title())]
            )

    for name, attributes in {
        "google": {},
        "google.cloud": {},
        "google.cloud.translate": {},
        "google.cloud.translate_v2": {"Client": Basic},
        "google.cloud.translate_v3": {"TranslationServiceClient": Advanced},
    }.items():
        module = types.ModuleType(name)
        module.__dict__.update(attributes, __path__=[])
        monkeypatch.setitem(sys.modules, name, module)

    assert translated(["one two"], "google")[0] == ["ONE TWO"]
    assert translated(["one two"], "google", backend_config={"project_id": "p"})[0] == ["One Two"]


@given(st.text(st.sampled_from("ab é水𝄞"), max_size=60), st.integers(4, 20))
def test_parts_are_the_text_and_none_is_too_large(text, most):
    parts = parts_of(text, most)

    assert "".join(parts) == text
    assert all(len(part.encode()) <= most for part in parts)
