"""M5: how full a stage keeps 256 slots of a server, against one endless window of requests.

    python -m benchmarks.models.llm_slots [--tasks 25] [--documents 256] [--median-s 1.0] [--rounds 5]

Answers take a lognormal time (sigma 0.8). A stage sees tasks, and its lanes must make up for the slowest document of
each; the endless window is the same client with all questions at once. The server tells how long requests were under
way, from the first to the last: what starts or ends beside it is in nobody's figure. The mark: at least 0.9.
"""

import argparse
import asyncio
import os

import pyarrow as pa
from benchmarks.models.serving import serving, spread, take_statistics
from benchmarks.record import header, record

from gristmill.backends.local import LocalExecutor
from gristmill.models.client import AsyncOpenAIClient
from gristmill.pipeline import Pipeline
from gristmill.stages.synthetic.llm_stage import LLMStage
from gristmill.tasks import DocumentBatch

SLOTS = 256
MARK = 0.9


def client_of(url: str) -> AsyncOpenAIClient:
    return AsyncOpenAIClient(SLOTS, base_url=url, api_key="any", timeout=600)


def through_the_stage(url: str, texts: list[str], documents: int) -> None:
    batches = [
        DocumentBatch("slots", pa.table({"text": texts[start : start + documents]}))
        for start in range(0, len(texts), documents)
    ]
    stage = LLMStage(client_of(url), "m", "{document}")
    result = Pipeline("slots", stages=[stage]).run(LocalExecutor(num_workers=1), initial_tasks=batches)
    assert sum(task.num_items for task in result) == len(texts)


def through_one_window(url: str, texts: list[str]) -> None:
    async def ask_all() -> None:
        client = client_of(url)
        await asyncio.gather(
            *(client.query_model(messages=[{"role": "user", "content": text}], model="m") for text in texts)
        )
        await client.close()

    asyncio.run(ask_all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=25)
    parser.add_argument("--documents", type=int, default=256)
    parser.add_argument("--median-s", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    os.environ.setdefault("GRISTMILL_PROFILES", "off")
    began = header()
    filled: dict[str, list[float]] = {"stage": [], "endless window": []}
    with serving("--median-s", str(given.median_s)) as url:
        for number in range(given.rounds):
            # Other texts each round: how long an answer takes is decided by its question.
            texts = [f"round {number}, question {row}" for row in range(given.tasks * given.documents)]
            for side, values in filled.items():
                if side == "stage":
                    through_the_stage(url, texts, given.documents)
                else:
                    through_one_window(url, texts)
                seen = take_statistics(url)
                assert seen["answered"] == len(texts)
                values.append(seen["in_flight_s"] / (SLOTS * seen["wall_s"]))
    ratios = [ours / endless for ours, endless in zip(filled["stage"], filled["endless window"], strict=True)]
    result: dict[str, object] = {f"slots filled, {side}": spread(values) for side, values in filled.items()}
    record("llm_slots", began, result | {"M5_stage_to_endless_window": spread(ratios) | {"mark": MARK}})


if __name__ == "__main__":
    main()
