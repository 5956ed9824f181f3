"""A program that makes and translates texts, to be killed: `python -m tests.fault.synthesize INPUT WORK URL`."""

import sys

from gristmill.backends.local import LocalExecutor
from gristmill.models.client import AsyncOpenAIClient
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic import VariantsToDocuments
from gristmill.stages.synthetic.nemotron_cc import DiverseQAStage, KnowledgeListStage
from gristmill.stages.text.experimental.translation import TranslationStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter


def run(source, work, url, *, workers=2):
    def client():
        patient = {"max_concurrent_requests": 16, "base_delay": 0.001, "max_retries": 9}
        return AsyncOpenAIClient(**patient, base_url=url, api_key="any", response_cache=f"{work}/answers")

    asked = {"client": client(), "model_name": "m"}
    stages = [
        JsonlReader(file_paths=str(source)),
        DiverseQAStage(**asked, segmented=True),
        KnowledgeListStage(**asked, segmented=True),
        VariantsToDocuments(["diverse_qa", "knowledge_list"]),
        TranslationStage(source_lang="en", target_lang="de", **asked, enable_faith_eval=True, segmentation_mode="fine"),
        JsonlWriter(path=f"{work}/out"),
    ]
    return Pipeline("synthesize", stages=stages).run(LocalExecutor(num_workers=workers), checkpoint_path=f"{work}/run")


if __name__ == "__main__":
    run(*sys.argv[1:])
