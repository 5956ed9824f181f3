"""A stage on a language model: what it asks, what becomes of a row that fails, and what it says before the run."""

import asyncio
import json

import pyarrow as pa
import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MachineFailed, ServerRefused
from gristmill.models.client import AsyncLLMClient, GenerationConfig, LLMClient
from gristmill.models.client.llm_client import RequestFailed
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic.llm_stage import LLMStage, RowFailed
from gristmill.stages.synthetic.prompt import Prompt
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.tasks import DocumentBatch


class Echo(AsyncLLMClient):
    """Answers with what it was asked; refuses what contains "fail"."""

    def setup(self):
        self._live_under_way = self._live_most = 0

    async def _query_model_impl(self, *, messages, model, conversation_formatter=None, generation_config=None):
        self._live_under_way += 1
        self._live_most = max(self._live_most, self._live_under_way)
        await asyncio.sleep(0)
        self._live_under_way -= 1
        content = messages[-1]["content"]
        if "fail" in content:
            raise ValueError("the server does not like it")
        return [content]


class EchoInThread(LLMClient):
    max_concurrent_requests = 2

    def setup(self):
        pass

    def query_model(self, *, messages, model, conversation_formatter=None, generation_config=None):
        return [messages[-1]["content"].upper()]


class RefusesEverybody(Echo):
    async def _query_model_impl(self, **asked):
        raise ServerRefused("nobody gets in")


def answered(stage, texts, kind=None):
    async def run():
        await stage.setup()
        try:
            return await stage.process(DocumentBatch("d", pa.table({"text": pa.array(texts, kind or pa.string())})))
        finally:
            await stage.teardown()

    return asyncio.run(run())


def stage(prompt="About: {document}", client=None, **options):
    return LLMStage(client or Echo(base_delay=0.0), "m", prompt, **options)


def test_braces_of_prompts_and_documents_pass_unchanged():
    document = '{"a": {document}, {{b}} {0} {} }{'
    made = answered(stage('Give {"answer": {}} and {{x}} for: {document}!'), [document])

    assert made.column("answer").to_pylist() == ['Give {"answer": {}} and {{x}} for: ' + document + "!"]


def test_a_document_without_text_is_not_asked_about():
    made = answered(stage(), [None, "", " \n\t", "x"])

    assert made.column("answer").to_pylist() == [None, None, None, "About: x"]
    assert made.column("answer_truncated").to_pylist() == [None, None, None, False]


def test_an_empty_batch_has_the_columns_and_their_types():
    made = answered(stage(), [])

    assert [made.field("answer").type, made.field("answer_truncated").type] == [pa.string(), pa.bool_()]


def test_requests_under_way_stay_within_the_window():
    client = Echo(max_concurrent_requests=3)
    answered(stage(client=client), [f"document {n}" for n in range(50)])

    assert client._live_most == 3


def test_a_client_that_waits_is_asked_in_threads():
    assert answered(stage(client=EchoInThread()), ["a", "b", "c"]).column("answer").to_pylist() == [
        "ABOUT: A",
        "ABOUT: B",
        "ABOUT: C",
    ]


def test_a_row_that_fails_is_one_row_in_quarantine_and_its_neighbours_are_written(tmp_path):
    texts = [f"document {n}" for n in range(256)]
    texts[100] = "please fail"
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pipeline = Pipeline(
        "one_bad",
        stages=[JsonlReader(str(tmp_path / "in.jsonl")), stage(), JsonlWriter(str(tmp_path / "out"))],
    )
    result = pipeline.run(LocalExecutor(num_workers=1))

    (out,) = (tmp_path / "out").glob("*.jsonl")
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["text"] for row in written] == [text for text in texts if text != "please fail"]
    assert all(row["answer"] == f"About: {row['text']}" for row in written)
    assert result.quarantined == 1
    (error,) = result.errors
    assert "the server does not like it" in error.error


def test_a_server_that_refuses_everybody_ends_the_run_and_blames_no_document(tmp_path):
    batch = DocumentBatch("d", pa.table({"text": ["a", "b"]}))
    with pytest.raises(MachineFailed, match="nobody gets in"):
        Pipeline("refused", stages=[stage(client=RefusesEverybody())]).run(
            LocalExecutor(num_workers=0), initial_tasks=[batch]
        )


def test_what_a_row_cannot_be_parsed_as_is_its_own_affair():
    class Picky(LLMStage):
        async def answer_row(self, row, ask):
            answer = await ask(self.messages(row, row["text"]))
            if "odd" in answer.text:
                raise RowFailed("expected a number; got 'odd'")
            return {"answer": answer.text}

    picky = Picky(Echo(), "m", "{document}")
    made = answered(picky, ["even", "odd", "even"])

    assert made.column("answer").to_pylist() == ["even", "even"]
    (record,) = picky.context.quarantined
    assert (record.row, record.kind, record.num_documents) == (1, "RowFailed", 1)


@pytest.mark.parametrize(
    ("how", "answers", "truncated"),
    [
        ("skip", [None, "About: short"], [None, False]),
        ("truncate", ["About: one two three ", "About: short"], [True, False]),
        ("split", ["About: one two three \nAbout: four", "About: short"], [False, False]),
    ],
)
def test_a_prompt_that_is_too_long_is_never_sent(how, answers, truncated):
    made = answered(stage(max_input_tokens=5, on_overlong=how), ["one two three four", "short"])

    assert made.column("answer").to_pylist() == answers
    assert made.column("answer_truncated").to_pylist() == truncated


def test_the_parts_of_a_split_document_are_the_document():
    text = "".join(f"line {n} of a text\n" for n in range(50)) + "x" * 300
    asking = stage(max_input_tokens=20, on_overlong="split")
    pieces, is_cut = asking.shown_of(text)

    assert ("".join(pieces), is_cut) == (text, False)
    assert all(asking.count_tokens(piece) <= 20 - asking.tokens_of_prompt() for piece in pieces)


def test_other_variables_are_columns_or_constants():
    wanted = Prompt("{document} in {language} for {whom}", variables=("document", "language", "whom"))
    two = LLMStage(Echo(), "m", wanted, constants={"whom": "me"})

    assert two.inputs()[1] == ["text", "language"]
    assert two.messages({"text": "t", "language": "fr"}, "t")[0]["content"] == "t in fr for me"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: stage("no gap, {documnt}"), r"expected \{document\} in the prompt.*did you mean 'documnt'"),
        (lambda: stage(on_overlong="cut"), "expected on_overlong to be one of"),
        (lambda: stage(client="gpt"), "expected client to be an AsyncLLMClient or LLMClient; got 'gpt'"),
        (lambda: stage(max_input_tokens=1), "leave room for a document"),
        (lambda: stage(generation_config={"temprature": 1}), "did you mean 'temperature'"),
        (lambda: Prompt("{document}", output="xml"), "expected output to be one of"),
        (lambda: Prompt.named("no-such"), "got no such file"),
        (lambda: Echo(max_concurrent_requests=0), "max_concurrent_requests to be at least 1"),
    ],
)
def test_what_is_wrong_is_said_before_the_run(make, words):
    with pytest.raises(ConfigError, match=words):
        make()


def test_more_workers_than_requests_are_refused():
    with pytest.raises(ConfigError, match="at least 1 for each of 8 workers; got 5"):
        Pipeline("p", stages=[stage().with_(num_workers=8)]).plan(LocalExecutor(), initial_tasks=[])


def test_a_prompt_is_read_from_a_file_with_its_version(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("version: '3'\nsystem: Be brief.\nuser: |\n  Look: {document}\noutput: json\n")
    prompt = Prompt.from_file(path)

    assert (prompt.version, prompt.output, prompt.name) == ("3", "json", "mine")
    assert prompt.fill({"document": "d"}) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look: d\n"},
    ]
    path.write_text("user: '{document}'\nuzer: x\n")
    with pytest.raises(ConfigError, match="did you mean 'user'"):
        Prompt.from_file(path)


def fingerprint(made):
    return Pipeline("p", stages=[made]).plan(LocalExecutor(), initial_tasks=[]).fingerprint


def test_the_fingerprint_holds_what_decides_answers_and_not_how_fast_they_come():
    base = fingerprint(stage())

    assert fingerprint(stage(client=Echo(max_concurrent_requests=64, max_retries=9))) == base
    assert fingerprint(stage("Regarding: {document}")) != base
    assert fingerprint(stage(Prompt("About: {document}", version="2"))) != base
    assert fingerprint(stage(generation_config=GenerationConfig(temperature=1.0))) != base


def test_documents_a_condition_leaves_out_are_not_asked_about():
    asking = stage(where="n > 1")
    batch = DocumentBatch("d", pa.table({"text": ["a", "b", "c"], "n": [1, 2, None]}))

    async def run():
        await asking.setup()
        return await asking.process(batch)

    assert asyncio.run(run()).column("answer").to_pylist() == [None, "About: b", None]
    assert asking.context.own_counts.counted["llm_requests"] == 1
    assert asking.inputs()[1] == ["text", "n"]


def test_a_prompt_is_named_or_a_file(tmp_path):
    (tmp_path / "own.yaml").write_text("user: 'Own: {document}'\n")

    assert LLMStage(Echo(), "m", "distill").prompt.prefix == "Paraphrased Text:"
    assert LLMStage(Echo(), "m", str(tmp_path / "own.yaml")).prompt.user == "Own: {document}"
    assert LLMStage(Echo(), "m", "distill", system_prompt="Be brief.").prompt.system == "Be brief."
    with pytest.raises(ConfigError, match="did you mean 'distill'"):
        LLMStage(Echo(), "m", "distil")


def test_tokens_are_counted_as_the_named_tokenizer_does():
    class Letters:
        def encode(self, text):
            return list(text)

    assert stage(tokenizer=Letters()).count_tokens("four") == 4
    assert stage(tokenizer=Letters()).get_config()["tokenizer"].endswith("Letters")
    with pytest.raises(ConfigError, match="expected tokenizer to be a name"):
        stage(tokenizer=3).check_ready()
    with pytest.raises(ConfigError, match="expected a directory, 'package:NAME' or a hub id"):
        stage(tokenizer="./no").check_ready()


def test_a_tokenizer_that_is_not_here_is_said_before_the_run_if_nothing_may_be_downloaded(monkeypatch):
    monkeypatch.setenv("GRISTMILL_OFFLINE", "1")
    asking = stage(tokenizer="no/such")

    assert asking.wants_node_setup()
    with pytest.raises(ConfigError, match="found none, and offline is set"):
        asking.check_ready()
    assert not stage().wants_node_setup()


def test_tokens_are_counted_by_a_tokenizer_in_a_directory(tmp_path, monkeypatch):
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"[UNK]": 0, "a": 1, "b": 2}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    (tmp_path / "letters").mkdir()
    made.save(str(tmp_path / "letters" / "tokenizer.json"))
    monkeypatch.chdir(tmp_path)
    asking = stage(tokenizer="letters", max_input_tokens=12)
    asking.make_paths_absolute()
    monkeypatch.chdir("/")
    asking.check_ready()

    assert (asking.count_tokens("abba"), asking.tokens_of_prompt()) == (4, len("About: "))
    assert asking.shown_of("abbab") == (["abbab"], False)
    assert asking.shown_of("abbabb") == ([], True)


@pytest.mark.parametrize(("status", "ends"), [(401, True), (404, True), (403, False), (400, False)])
def test_a_server_that_refuses_all_of_a_small_task_is_to_blame_and_no_document(status, ends):
    class RefusesWithStatus(Echo):
        async def _query_model_impl(self, **asked):
            error = RequestFailed(f"status {status}")
            error.status = status
            raise error

    asking = LLMStage(RefusesWithStatus(), "m", "{document}")
    if ends:
        with pytest.raises(ServerRefused, match=f"status {status}. No request has been answered"):
            answered(asking, ["one", None, "two"])
    else:
        assert answered(asking, ["one", None, "two"]).num_items == 1
        assert len(asking.context.quarantined) == 2
