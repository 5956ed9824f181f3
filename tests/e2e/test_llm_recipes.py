"""Recipes that ask a language model, from the command line and from Python, on the test server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.llm_tasks import PAGE, answer_task

from gristmill.backends.local import LocalExecutor
from gristmill.config.run import create_pipeline_from_yaml
from gristmill.errors import RunFailed
from gristmill.models.client import AsyncOpenAIClient
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic import QAMultilingualSyntheticStage
from gristmill.stages.text.experimental.translation import TranslationStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.testing.llm_server import MisbehavingServer, prompt_of

COMMAND = str(Path(sys.executable).parent / "gristmill")
TASKS = ["diverse_qa", "distill", "extract_knowledge", "knowledge_list"]
FILES, DOCUMENTS = 3, 8

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def work(tmp_path):
    """Good documents, poor ones, one without a bucket and two without a text, in several files."""
    (tmp_path / "raw").mkdir()
    for file in range(FILES):
        rows = [
            {"id": f"{file}-{n}", "text": PAGE.replace("{name}", f"{{x}} {file}-{n}"), "bucketed_results": 20 - n * 3}
            for n in range(DOCUMENTS - 3)
        ]
        rows += [{"id": f"{file}-none", "text": None, "bucketed_results": 20}]
        rows += [{"id": f"{file}-blank", "text": " ", "bucketed_results": 1}]
        rows += [{"id": f"{file}-unscored", "text": PAGE, "bucketed_results": None}]
        (tmp_path / "raw" / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def gristmill(*arguments, cwd):
    environment = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "key-of-the-test"}
    return subprocess.run(
        [COMMAND, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def documents(directory):
    lines = [line for file in sorted(directory.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def files(directory):
    return {file.name: file.read_bytes() for file in sorted(directory.glob("*.jsonl"))}


def run_recipe(name, server, work, output, *more):
    settings = [f"--set=base_url={server.url}", "--set=model_name=test-model", *more]
    return gristmill("run", name, "--input", "raw", "--output", output, "--json", *settings, cwd=work)


def test_good_documents_get_four_new_texts_and_the_same_from_python_asks_nobody(work):
    with MisbehavingServer(answer=answer_task) as server:
        done = run_recipe("nemotron-cc-high", server, work, "made")
        assert done.returncode == 0, done.stderr
        assert server.requests == FILES * 3 * len(TASKS)
        server.forget()
        values = {"base_url": server.url, "model_name": "test-model", "response_cache": str(work / "llm-answers")}
        places = {"input": str(work / "raw"), "output": str(work / "again")}
        create_pipeline_from_yaml("nemotron-cc-high", **places, **values).run(LocalExecutor(num_workers=0))
        assert server.requests == 0

    made = documents(work / "made")
    of = {kind: [row["id"] for row in made if row["variant"] == kind] for kind in [None, *TASKS]}
    assert len(of[None]) == FILES * DOCUMENTS
    for kind in TASKS:
        assert of[kind] == [f"{file}-{n}#{kind}" for file in range(FILES) for n in range(3)]
    texts = {row["id"]: row["text"] for row in made}
    assert texts["0-0#diverse_qa"].startswith(PAGE.replace("{name}", "{x} 0-0") + "\n\nQuestion: ")
    assert texts["0-0#knowledge_list"].startswith("In 1700 the mill ground wheat")
    assert texts["0-0#distill"].startswith("In the years 1700, 1701")
    assert files(work / "made") == files(work / "again")
    books = json.loads(done.stdout.splitlines()[-1])
    assert books["read"] == FILES * DOCUMENTS
    assert books["created"] == FILES * 3 * len(TASKS)
    assert books["written"] == books["read"] + books["created"]


def test_poor_documents_are_written_anew_and_the_others_stay(work):
    with MisbehavingServer(answer=answer_task) as server:
        done = run_recipe("nemotron-cc-low", server, work, "made")
    assert done.returncode == 0, done.stderr

    made = documents(work / "made")
    assert len(made) == FILES * DOCUMENTS
    assert [row["id"] for row in made if row["variant"]] == [
        f"{file}-{n}#rephrased" for file in range(FILES) for n in (3, 4)
    ]
    raw = {row["id"]: row for row in documents(work / "raw")}
    for row in made:
        if row["variant"] is None:
            assert {key: row[key] for key in raw[row["id"]]} == raw[row["id"]]
        else:
            assert row["text"].startswith("In the years 1700")


def test_a_recipe_without_a_model_says_which_option_is_missing(work):
    done = gristmill("run", "nemotron-cc-low", "--input", "raw", "--output", "made", cwd=work)

    assert done.returncode == 2
    assert "--set model_name=VALUE" in done.stderr
    assert not (work / "made").exists()


def test_a_wrong_key_ends_the_run_and_names_the_server(work):
    with MisbehavingServer(answer=answer_task, api_key="another") as server:
        done = run_recipe("nemotron-cc-low", server, work, "made")
        assert server.requests <= 10
        assert done.returncode != 0
        assert server.url in done.stderr
        assert "401" in done.stderr
        assert "key-of-the-test" not in done.stderr + done.stdout
    assert documents(work / "made") == []


TRANSLATE = """
name: translate
stages:
  - JsonlReader: {file_paths: "${input}"}
  - TranslationStage:
      source_lang: en
      target_lang: de
      client: {AsyncOpenAIClient: {base_url: "${base_url}", max_concurrent_requests: 16, response_cache: answers}}
      model_name: ${model_name}
      text_field: ${field}
      enable_faith_eval: true
      output_mode: both
      merge_scores: true
  - JsonlWriter: {path: "${output}"}
"""


def test_translation_runs_from_the_command_line_with_marks(tmp_path):
    (tmp_path / "translate.yaml").write_text(TRANSLATE)
    (tmp_path / "raw").mkdir()
    messages = [{"role": "user", "content": "What is {x}?\n```\ncode\n```"}, {"role": "bot", "content": "It is 3."}]
    rows = [{"id": n, "messages": messages} for n in range(5)]
    rows[3] = {"id": 3, "messages": [{"role": "user", "content": "a poor text"}]}
    rows[4] = {"id": 4, "messages": []}
    (tmp_path / "raw" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with MisbehavingServer(answer=answer_task, failing_share=0.3, failures=1, kinds=("503", "no_choice")) as server:
        done = run_recipe("translate.yaml", server, tmp_path, "made", "--set=field=messages.*.content")
    assert done.returncode == 0, done.stderr

    made = documents(tmp_path / "made")
    assert [row["id"] for row in made] == [0, 1, 2, 4]
    assert made[0]["messages"] == messages
    assert made[0]["translated_text"] == [
        {"role": "user", "content": "WHAT IS {X}?\n```\ncode\n```"},
        {"role": "bot", "content": "IT IS 3."},
    ]
    assert made[0]["faith_avg"] == 4.5
    assert json.loads(made[0]["translation_metadata"])["faith_scores"]["Accuracy"] == 5.0
    assert made[3]["translated_text"] is None
    books = json.loads(done.stdout.splitlines()[-1])
    assert books["dropped"] == {"faith_eval": {"faith_avg": 1}}


def pipeline_of(work, client, output="made"):
    stages = [
        JsonlReader(str(work / "raw")),
        TranslationStage(source_lang="en", target_lang="de", client=client, model_name="m", health_check=False),
        JsonlWriter(str(work / output)),
    ]
    return Pipeline("translate", stages=stages)


def test_one_failing_document_is_quarantined_and_its_neighbours_are_written(tmp_path):
    (tmp_path / "raw").mkdir()
    rows = [{"id": n, "text": "refuse me" if n == 100 else f"text {n}"} for n in range(256)]
    (tmp_path / "raw" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with MisbehavingServer(answer=answer_task, refuse=lambda r: 400 if "refuse me" in prompt_of(r) else None) as server:
        client = AsyncOpenAIClient(max_concurrent_requests=32, base_url=server.url, api_key="any")
        result = pipeline_of(tmp_path, client).run(LocalExecutor(num_workers=2))

    assert (result.written, result.quarantined) == (255, 1)
    made = documents(tmp_path / "made")
    assert [row["id"] for row in made] == [n for n in range(256) if n != 100]
    assert all(row["translated_text"] == f"TEXT {row['id']}" for row in made)


def test_a_spending_limit_stops_the_run_and_a_higher_one_continues_it(tmp_path):
    (tmp_path / "raw").mkdir()
    for file in range(4):
        rows = [{"id": f"{file}-{n}", "text": f"text {file} {n}"} for n in range(20)]
        (tmp_path / "raw" / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def client(limit):
        return AsyncOpenAIClient(
            max_concurrent_requests=4,
            base_url=server.url,
            api_key="any",
            response_cache=tmp_path / "answers",
            prices={"m": (1.0, 1.0)},
            max_total_cost=limit,
        )

    with MisbehavingServer(answer=answer_task) as server:
        with pytest.raises(RunFailed, match="max_total_cost"):
            pipeline_of(tmp_path, client(0.005)).run(LocalExecutor(num_workers=2))
        first = server.requests
        result = pipeline_of(tmp_path, client(1.0)).run(LocalExecutor(num_workers=2))
        assert 0 < first < 80
        assert server.requests == 80  # nothing was paid for twice

    assert result.written == 80
    assert result.quarantined == 0


def test_samples_are_made_from_nothing_but_a_prompt(tmp_path):
    with MisbehavingServer() as server:
        stage = QAMultilingualSyntheticStage(
            "Ask in {language}",
            ["Thai", "German"],
            AsyncOpenAIClient(max_concurrent_requests=16, base_url=server.url, api_key="any"),
            "m",
            300,
        )
        Pipeline("samples", stages=[stage, JsonlWriter(str(tmp_path / "made"))]).run(LocalExecutor(num_workers=2))

    made = documents(tmp_path / "made")
    assert sorted(row["sample"] for row in made) == list(range(300))
    assert all(row["text"] == f"ASK IN {row['language'].upper()}" for row in made)
