"""The client against a server that fails as real ones do."""

import asyncio
import json
import pickle
import socket
import threading

import pyarrow as pa
import pytest

from gristmill import secrets
from gristmill.backends.local import LocalExecutor
from gristmill.errors import ConfigError, MachineError, MissingDependency, ServerRefused, SpendingLimit
from gristmill.models.client import (
    AsyncOpenAIClient,
    ConversationFormatter,
    GenerationConfig,
    OpenAIClient,
    RequestFailed,
)
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic.llm_stage import LLMStage
from gristmill.tasks import DocumentBatch
from gristmill.testing.llm_server import KINDS, MisbehavingServer, prompt_of

KEY = "sk-0123456789-not-a-real-key"


def client_of(server, **options):
    given = {"base_delay": 0.001, "timeout": 30, "api_key": KEY, "base_url": server.url} | options
    return AsyncOpenAIClient(**given)


async def ask(client, *texts, **options):
    asked = (client.ask(messages=[{"role": "user", "content": text}], model="m", **options) for text in texts)
    try:
        return await asyncio.gather(*asked)
    finally:
        await client.close()


def answers(client, *texts, **options):
    return [reply.texts[0] for reply in asyncio.run(ask(client, *texts, **options))]


def test_a_question_is_answered_with_what_it_took():
    with MisbehavingServer() as server:
        (reply,) = asyncio.run(ask(client_of(server, prices={"m": (1.0, 10.0)}), "two words"))

    assert (reply.texts, reply.model, reply.requests, reply.from_cache) == (["TWO WORDS"], "m", 1, False)
    assert (reply.prompt_tokens, reply.completion_tokens) == (2, 2)
    assert reply.cost == pytest.approx(22e-6)


def test_two_thousand_requests_of_which_two_fifths_fail_twice_are_answered_once_each(tmp_path):
    texts = [f"question {number}" for number in range(2000)]
    # More retries than failures: on a busy machine an answer may come after the time-out, and is asked for again.
    options = {"max_concurrent_requests": 128, "max_retries": 9, "timeout": 0.25, "response_cache": tmp_path}
    # All eight kinds, fewer of those that take long: every 429 halves the window, and who hangs holds a place in it.
    kinds = KINDS + 6 * ("500", "503", "cut", "html", "no_choice")
    with MisbehavingServer(failing_share=0.4, kinds=kinds, retry_after_s=0.002) as server:
        client = client_of(server, **options)
        assert answers(client, *texts) == [text.upper() for text in texts]
        failed = {seen.kind for seen in server.log} - {"answered", "gone"}
        assert failed == set(KINDS)
        assert client.usage.retries.keys() == {"429", "500", "503", "timeout", "cut", "not_json", "no_choice"}
        assert len(server.answered) == 2000

        server.forget()
        again = client_of(server, **options)
        assert answers(again, *texts) == [text.upper() for text in texts]
        assert server.requests == 0
        assert again.usage.cache_hits == 2000


def test_the_same_question_at_once_is_sent_once():
    with MisbehavingServer() as server:
        replies = asyncio.run(ask(client_of(server), *["same"] * 20, "other"))
        assert server.requests == 2
    assert sum(reply.requests for reply in replies) == 2


def test_samples_of_one_question_are_different_questions(tmp_path):
    async def twice(client):
        await ask(client, "q", sample=0)
        await ask(client, "q", sample=1)

    with MisbehavingServer() as server:
        asyncio.run(twice(client_of(server, response_cache=tmp_path)))
        assert server.requests == 2


def test_n_answers_come_from_one_request_and_one_hit(tmp_path):
    with MisbehavingServer() as server:
        for _ in range(2):
            client = client_of(server, response_cache=tmp_path)
            (reply,) = asyncio.run(ask(client, "q", generation_config={"n": 3}))
            assert reply.texts == ["Q"] * 3
        assert server.requests == 1


def test_an_answer_that_is_cut_off_is_marked():
    config = GenerationConfig(max_tokens=2)
    with MisbehavingServer() as server:
        (reply,) = asyncio.run(ask(client_of(server), "one two three", generation_config=config))
    assert (reply.texts, reply.answers[0].is_truncated) == (["ONE TWO"], True)


@pytest.mark.parametrize("words", ["", "x", "a longer answer than one piece, with ünïcode and {braces}"])
def test_a_stream_is_read_to_the_end_and_joined(words):
    config = GenerationConfig(stream=True)
    with MisbehavingServer() as server:
        (reply,) = asyncio.run(ask(client_of(server), words, generation_config=config))
    assert reply.texts == [words.upper()]
    assert reply.completion_tokens == len(words.split(" "))


def test_a_formatter_makes_one_text_of_the_messages():
    class Joined(ConversationFormatter):
        def format_conversation(self, conv):
            return "|".join(str(each["content"]) for each in conv)

    with MisbehavingServer() as server:
        assert answers(client_of(server), "a", conversation_formatter=Joined()) == ["A"]


def test_a_request_that_always_fails_fails_with_status_end_of_body_and_attempts():
    def refuse(request):
        return 503 if "bad" in prompt_of(request) else None

    with MisbehavingServer(refuse=refuse) as server, pytest.raises(RequestFailed) as caught:
        asyncio.run(ask(client_of(server, max_retries=2), "bad"))
    assert (caught.value.status, caught.value.attempts) == (503, 3)
    assert "got status 503 after 3 requests" in str(caught.value)
    assert '{"error": {"message": "refused"}}' in str(caught.value)


def test_a_question_that_is_itself_wrong_is_sent_once():
    with MisbehavingServer(refuse=lambda _: 422) as server, pytest.raises(RequestFailed):
        asyncio.run(ask(client_of(server), "bad"))
    assert server.requests == 1


def test_a_wrong_key_is_found_out_with_ten_requests_and_named_with_the_url():
    with MisbehavingServer(api_key="right") as server:
        client = client_of(server, max_concurrent_requests=256)
        raised = asyncio.run(errors_of(client, 500))
        assert server.requests == 10
    (error,) = {str(error) for error in raised if isinstance(error, ServerRefused)}
    assert len(raised) == 500
    assert f"AsyncOpenAIClient: 401 from {server.url} for the last 10 requests; stopped" in error
    assert KEY not in error


async def errors_of(client, count):
    asked = (client.ask(messages=[{"role": "user", "content": str(n)}], model="m") for n in range(count))
    made = await asyncio.gather(*asked, return_exceptions=True)
    await client.close()
    return [error for error in made if isinstance(error, Exception)]


def test_an_address_where_nobody_listens_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        client = AsyncOpenAIClient(64, base_url=url, api_key=KEY, base_delay=0.001)
        with pytest.raises(ServerRefused, match=f"no connection from {url} for the last 10 requests"):
            asyncio.run(ask(client, *(f"q{number}" for number in range(100))))


def test_nothing_leaves_before_retry_after_by_the_servers_clock():
    with MisbehavingServer(failing_share=0.1, failures=1, kinds=("429", "429_ms"), retry_after_s=0.3) as server:
        texts = [f"question {number}" for number in range(60)]
        assert answers(client_of(server, max_concurrent_requests=1, max_retries=9), *texts) == [
            text.upper() for text in texts
        ]
        told = [seen for seen in server.log if seen.kind.startswith("429")]
        assert {seen.kind for seen in told} == {"429", "429_ms"}
        for each in told:
            assert [seen for seen in server.log if each.ended < seen.at < each.ended + 0.3] == []


def test_a_429_stops_all_of_the_window():
    with MisbehavingServer(failing_share=1.0, failures=1, kinds=("429",), retry_after_s=0.5) as server:
        answers(client_of(server, max_concurrent_requests=8, max_retries=9), *(f"q{n}" for n in range(8)))
        first = min(seen.ended for seen in server.log if seen.kind == "429")
        # The others had left before the first answer came back: within one trip, not after it.
        late = [seen for seen in server.log if first + 0.25 < seen.at < first + 0.5]
    assert late == []


def test_requests_a_minute_are_kept_to():
    with MisbehavingServer() as server:
        client = client_of(server, max_concurrent_requests=50, requests_per_minute=610)  # one in 0.1 s
        answers(client, *(f"q{number}" for number in range(26)))
        at = sorted(seen.at for seen in server.log)
    # The first eleven leave at once, a second's worth; from then on they come evenly, for 1.5 s.
    assert at[-1] - at[0] >= 0.8


def test_a_deadline_is_for_all_attempts_together():
    with MisbehavingServer(failing_share=1.0, failures=99, kinds=("hang",)) as server:
        client = client_of(server, timeout=0.05, max_retries=1000, deadline_s=0.3)
        with pytest.raises(RequestFailed, match=r"got deadline.*no answer within 0.3 s"):
            asyncio.run(ask(client, "q"))


def test_max_total_cost_stops_before_it_is_exceeded_and_a_higher_one_continues(tmp_path):
    texts = [f"question {number}" for number in range(40)]
    options = {"response_cache": tmp_path, "prices": {"m": (0.0, 1e6)}, "max_concurrent_requests": 4}
    config = GenerationConfig(max_tokens=2)  # an answer costs 2
    with MisbehavingServer() as server:
        client = client_of(server, max_total_cost=30, **options)
        with pytest.raises(SpendingLimit, match="expected the next request to fit into 30; 30 is spent"):
            asyncio.run(ask(client, *texts, generation_config=config))
        assert sum(server.answered.values()) == 15

        with pytest.raises(SpendingLimit):  # the same limit spends nothing more
            asyncio.run(ask(client_of(server, max_total_cost=30, **options), *texts, generation_config=config))
        assert server.requests == 15

        more = client_of(server, max_total_cost=80, **options)
        assert answers(more, *texts, generation_config=config) == [text.upper() for text in texts]
        assert server.requests == 40


def test_only_the_cache_asks_nobody(tmp_path):
    with MisbehavingServer() as server:
        answers(client_of(server, response_cache=tmp_path), "kept")
    offline = client_of(server, response_cache=tmp_path, cache="only")  # the server is gone
    assert answers(offline, "kept") == ["KEPT"]
    with pytest.raises(RequestFailed, match=r"expected an answer of m in .*; there is none"):
        asyncio.run(ask(client_of(server, response_cache=tmp_path, cache="only"), "new"))


def test_only_a_cache_that_is_not_there_is_found_while_planning(tmp_path):
    client = AsyncOpenAIClient(api_key=KEY, response_cache=tmp_path / "none", cache="only")
    with pytest.raises(ConfigError, match=r"expected answers in .*none, because of cache='only'; there is no resp"):
        client.check("m")


def test_refreshing_asks_again_and_keeps_the_new_answer(tmp_path):
    said = iter(["old", "new"])
    with MisbehavingServer(answer=lambda _: next(said)) as server:
        for mode, expected in (("use", "old"), ("use", "old"), ("refresh", "new"), ("use", "new")):
            assert answers(client_of(server, response_cache=tmp_path, cache=mode), "q") == [expected]


def test_errors_are_never_kept(tmp_path):
    statuses = iter([422, None])
    with MisbehavingServer(refuse=lambda _: next(statuses)) as server:
        with pytest.raises(RequestFailed):
            asyncio.run(ask(client_of(server, response_cache=tmp_path), "q"))
        assert answers(client_of(server, response_cache=tmp_path), "q") == ["Q"]


def test_whoever_asks_may_go_away_and_the_answer_is_kept(tmp_path):
    async def impatient(client):
        question = asyncio.ensure_future(
            client.ask(messages=[{"role": "user", "content": "q"}], model="m", generation_config=GenerationConfig())
        )
        await asyncio.sleep(0)
        while not client._live.gate.window.in_flight:
            await asyncio.sleep(0)
        question.cancel()
        await asyncio.gather(*client._live.under_way.values())
        await client.close()

    with MisbehavingServer() as server:
        asyncio.run(impatient(client_of(server, response_cache=tmp_path)))
        assert answers(client_of(server, response_cache=tmp_path), "q") == ["Q"]
        assert server.requests == 1


def test_a_client_that_waits_shares_its_window_between_threads():
    with MisbehavingServer(delay=lambda _: 0.01) as server:
        client = OpenAIClient(base_url=server.url, api_key=KEY, max_concurrent_requests=3)
        client.setup()
        made = {}

        def one(number):
            made[number] = client.query_model(messages=[{"role": "user", "content": f"q{number}"}], model="m")

        threads = [threading.Thread(target=one, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        assert made == {number: [f"Q{number}"] for number in range(12)}
        assert server.max_in_flight == 3


def test_a_stage_asks_through_the_awaited_form_of_a_client_that_waits():
    batch = DocumentBatch("d", pa.table({"text": ["a", None, "b"]}))
    with MisbehavingServer() as server:
        client = OpenAIClient(base_url=server.url, api_key=KEY, max_concurrent_requests=64)
        (made,) = Pipeline("waits", stages=[LLMStage(client, "m", "Say {document}")]).run(
            LocalExecutor(num_workers=1), initial_tasks=[batch]
        )
    assert made.column("answer").to_pylist() == ["SAY A", None, "SAY B"]


def test_a_client_works_on_one_event_loop_after_another():
    with MisbehavingServer() as server:
        client = client_of(server)
        assert [answers(client, f"q{number}")[0] for number in range(3)] == ["Q0", "Q1", "Q2"]


def test_the_key_is_in_no_pickle_no_content_and_no_message(monkeypatch):
    client = AsyncOpenAIClient(
        base_url="http://127.0.0.1:1/v1", api_key=KEY, default_headers={"X-Auth": "Bearer another-secret"}
    )
    dumped = pickle.dumps(client)

    assert KEY.encode() not in dumped
    assert b"another-secret" not in dumped
    again = pickle.loads(dumped)
    assert again.headers()["Authorization"] == f"Bearer {KEY}"
    assert again.headers()["X-Auth"] == "Bearer another-secret"
    assert KEY not in json.dumps(client.content())
    assert secrets.without_secrets(f"refused: {KEY}") == "refused: ***"
    assert KEY not in repr(client)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    from_environment = AsyncOpenAIClient(base_url="http://127.0.0.1:1/v1")
    assert from_environment.headers()["Authorization"] == "Bearer sk-from-the-environment"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "Authorization" not in pickle.loads(pickle.dumps(from_environment)).headers()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_url": "localhost:8000"}, "expected base_url like 'https://host/v1'; got 'localhost:8000'"),
        ({"api_kee": "x"}, "did you mean 'api_key'"),
        ({"cache": "onyl"}, "expected cache to be one of .*did you mean 'only'"),
        ({"cache": "only"}, "expected response_cache with cache='only'"),
        ({"max_total_cost": 5}, "expected response_cache with max_total_cost"),
        ({"requests_per_minute": 0}, "expected requests_per_minute to be greater than 0; got 0"),
        ({"prices": {"m": 3}}, r"expected prices\['m'\] to be two numbers"),
        ({"max_concurrent_requests": 0}, "at least 1"),
    ],
)
def test_wrong_options_are_refused_in_words(options, words):
    with pytest.raises(ConfigError, match=words):
        AsyncOpenAIClient(**options)


def test_a_limit_on_the_cost_needs_the_price_of_the_model(tmp_path):
    client = AsyncOpenAIClient(api_key=KEY, response_cache=tmp_path, max_total_cost=1, prices={"gpt-small": (1, 1)})
    with pytest.raises(ConfigError, match=r"expected prices to name 'gpt-smal'.*did you mean 'gpt-small'"):
        client.check("gpt-smal")


def test_a_damaged_cache_is_found_while_planning_and_none_is_made(tmp_path):
    AsyncOpenAIClient(api_key=KEY, response_cache=tmp_path / "none").check("m")
    assert not (tmp_path / "none").exists()
    (tmp_path / "responses.sqlite").write_bytes(b"damaged" * 1000)
    with pytest.raises(MachineError, match="the file is damaged"):
        AsyncOpenAIClient(api_key=KEY, response_cache=tmp_path).check("m")


def test_openai_itself_needs_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(
        ConfigError, match=r"expected a key for https://api\.openai\.com/v1 as api_key or in OPENAI_API"
    ):
        AsyncOpenAIClient().check("m")


def test_the_proxy_of_the_environment_is_asked_unless_the_host_is_excepted(monkeypatch):
    with MisbehavingServer() as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        away = client_of(server, base_url="http://model.invalid/v1")
        assert answers(away, "through the proxy") == ["THROUGH THE PROXY"]
        monkeypatch.setenv("no_proxy", "model.invalid")
        direct = client_of(server, base_url="http://model.invalid/v1", base_delay=0.0)
        with pytest.raises(ServerRefused, match=r"no connection from http://model\.invalid/v1"):
            asyncio.run(ask(direct, "q"))


def test_a_missing_extra_is_named_with_the_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'gristmill\[llm\]'"):
        AsyncOpenAIClient()
