"""M6: a rerun on a full response cache against the first run, a request, on a server that answers at once.

    python -m benchmarks.models.llm_cache [--requests 5000] [--rounds 5]

Each round has a cache of its own: filled in the first run, read in the second. The mark: at least 10 times faster.
"""

import argparse
import asyncio
import tempfile
import time

from benchmarks.models.ask_many import PROMPT
from benchmarks.models.serving import serving, spread, take_statistics
from benchmarks.record import header, record

from gristmill.models.client import AsyncOpenAIClient

MARK = 10.0


async def ask_all(url: str, cache: str, requests: int) -> tuple[float, float]:
    """Ask, and return milliseconds a request: by the clock, and of this process's processor time."""
    client = AsyncOpenAIClient(64, base_url=url, api_key="any", response_cache=cache)
    client.setup()
    questions = [[{"role": "user", "content": PROMPT.format(number)}] for number in range(requests)]
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client.query_model(messages=messages, model="m") for messages in questions))
    took = time.perf_counter() - began, time.process_time() - cpu
    await client.close()
    return 1000 * took[0] / requests, 1000 * took[1] / requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    began = header()
    first: list[tuple[float, float]] = []
    again: list[tuple[float, float]] = []
    with serving() as url:
        for _ in range(given.rounds):
            with tempfile.TemporaryDirectory() as cache:
                first.append(asyncio.run(ask_all(url, cache, given.requests)))
                assert take_statistics(url)["requests"] == given.requests
                again.append(asyncio.run(ask_all(url, cache, given.requests)))
                assert take_statistics(url)["requests"] == 0
    result: dict[str, object] = {
        "first_ms_a_request": spread([wall for wall, _ in first]),
        "again_ms_a_request": spread([wall for wall, _ in again]),
    }
    for number, unit in enumerate(("clock", "processor")):
        ratios = [one[number] / two[number] for one, two in zip(first, again, strict=True)]
        result[f"M6_first_to_again, {unit}"] = spread(ratios) | {"mark": MARK}
    record("llm_cache", began, result)


if __name__ == "__main__":
    main()
