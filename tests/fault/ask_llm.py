"""A program that asks a language model: `python -m tests.fault.ask_llm INPUT WORK --url URL [...]`, to be killed."""

import argparse

from gristmill.backends.local import LocalExecutor
from gristmill.models.client import AsyncOpenAIClient
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic.llm_stage import LLMStage
from gristmill.stages.text.io import JsonlReader, JsonlWriter


def run(source, work, *, url, cache=None, workers=2, stage_workers=1, api_key="any", **options):
    given = {"max_concurrent_requests": 32, "base_delay": 0.001, "max_retries": 9, "timeout": 30.0} | options
    client = AsyncOpenAIClient(base_url=url, api_key=api_key, response_cache=cache, **given)
    stages = [
        JsonlReader(file_paths=str(source)),
        LLMStage(client, "m", "Say {document} again").with_(num_workers=stage_workers),
        JsonlWriter(path=f"{work}/out"),
    ]
    return Pipeline("ask_llm", stages=stages).run(LocalExecutor(num_workers=workers), checkpoint_path=f"{work}/run")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("work")
    parser.add_argument("--url", required=True)
    parser.add_argument("--cache")
    given = parser.parse_args()
    run(given.source, given.work, url=given.url, cache=given.cache)


if __name__ == "__main__":
    main()
