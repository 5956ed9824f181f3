"""Ask a server many questions and print what that took: `python ask_many.py gristmill|openai URL REQUESTS IN_FLIGHT`.

The same program for our client and for the openai package, each in its own environment, so it imports either alone.
Connections are made and everything is compiled before the clock starts. Retries are off on both sides.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

PROMPT = "Tell me about number {}. " + "Some context of the usual length for a prompt. " * 31  # 1.5 kB
WARM_UP = 200
Ask = Callable[[int], Awaitable[str]]


def with_gristmill(url: str, in_flight: int) -> Ask:
    from gristmill.models.client import AsyncOpenAIClient

    client = AsyncOpenAIClient(in_flight, max_retries=0, base_url=url, api_key="any")
    client.setup()

    async def ask(number: int) -> str:
        messages = [{"role": "user", "content": PROMPT.format(number)}]
        return (await client.query_model(messages=messages, model="m"))[0]

    return ask


def with_openai(url: str, in_flight: int) -> Ask:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="any", max_retries=0)
    window = asyncio.Semaphore(in_flight)

    async def ask(number: int) -> str:
        messages = [{"role": "user", "content": PROMPT.format(number)}]
        async with window:
            made = await client.chat.completions.create(
                model="m", messages=messages, max_tokens=2048, n=1, seed=0, temperature=0.0, top_p=0.95
            )
        return made.choices[0].message.content

    return ask


async def main(which: str, url: str, requests: int, in_flight: int) -> None:
    ask = {"gristmill": with_gristmill, "openai": with_openai}[which](url, in_flight)
    await asyncio.gather(*(ask(-number) for number in range(1, WARM_UP + 1)))
    began, cpu = time.perf_counter(), time.process_time()
    answers = await asyncio.gather(*(ask(number) for number in range(requests)))
    took = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    assert answers == [PROMPT.format(number).upper() for number in range(requests)]
    print(json.dumps(took))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
