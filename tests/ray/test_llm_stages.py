"""A stage that asks a language model, on Ray: the same bytes as on one machine, however its server misbehaves."""

import json

import pytest
from tests.fault.traces import contents

from gristmill.backends.local import LocalExecutor
from gristmill.backends.ray_actor_pool import RayActorPoolExecutor
from gristmill.models.client import AsyncOpenAIClient
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic.llm_stage import LLMStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.testing.llm_server import MisbehavingServer, prompt_of

pytestmark = [pytest.mark.cluster, pytest.mark.heavy, pytest.mark.slow, pytest.mark.xdist_group("ray")]

FILES, DOCUMENTS = 3, 16
BAD = "word1x7"


def refuse(request):
    return 503 if f"{BAD} " in prompt_of(request) else None


def ask(server, source, work, executor):
    server.forget()
    client = AsyncOpenAIClient(
        base_url=server.url, api_key="any", max_concurrent_requests=16, base_delay=0.001, max_retries=3
    )
    stages = [
        JsonlReader(file_paths=str(source)),
        LLMStage(client, "m", "Say {document} again"),
        JsonlWriter(path=f"{work}/out"),
    ]
    result = Pipeline("ask", stages=stages).run(executor, checkpoint_path=f"{work}/run", quiet=True)
    return result, server.answered


def test_a_stage_that_asks_a_model_gives_the_same_bytes_on_ray(tmp_path, ray_cluster):
    source = tmp_path / "raw"
    source.mkdir()
    for number in range(FILES):
        lines = [json.dumps({"id": f"{number}-{row}", "text": f"word{number}x{row}"}) for row in range(DOCUMENTS)]
        (source / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n")
    with MisbehavingServer(failing_share=0.2, kinds=("500", "cut", "html"), refuse=refuse) as server:
        there, asked_there = ask(server, source, tmp_path / "there", RayActorPoolExecutor())
        kinds = {seen.kind for seen in server.log}
        here, asked_here = ask(server, source, tmp_path / "here", LocalExecutor(num_workers=1))

    assert {"500", "cut", "html"} <= kinds  # a failure is over once, so the other run had none of these
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert (there.read, there.written, there.quarantined) == (FILES * DOCUMENTS, FILES * DOCUMENTS - 1, 1)
    assert there.counts["llm"].counted["llm_answers"] == here.counts["llm"].counted["llm_answers"]
    assert asked_there == asked_here
    assert max(asked_there.values()) == 1  # no answer was paid for twice
