"""What a model says to the prompts of gristmill, for a `MisbehavingServer`: in the right form, and short."""

import re

from gristmill.stages.synthetic.nemotron_cc.answer_texts import QA_PREFIX
from gristmill.testing.llm_server import prompt_of

MARKS = '{"Fluency": 4, "Accuracy": 5, "Idiomaticity": 4, "Terminology": 0, "Handling_of_Format": 5}'
LOW_MARKS = MARKS.replace("4", "1").replace("5", "1")
PAGE = "\n".join(
    f"In the year {1700 + n} the miller of {{name}} ground {n} sacks of wheat for the town by the river."
    for n in range(12)
)


def answer_task(request):
    """Answer whichever of the prompts this is."""
    prompt = prompt_of(request)
    years = ", ".join(re.findall(r"In the year (\d+)", prompt))
    facts = f"In the years {years} the mill by the river ground wheat for the people of the town. " * 3
    pairs = [f"Question: What was done in {year}?\nAnswer: Wheat was ground." for year in years.split(", ")]
    learnt = [f"- In {year} the mill ground wheat for the town." for year in years.split(", ")]
    said = {
        "equals signs": f'Here is a paraphrased version: "{facts.strip()}"',
        "up to eight questions": "\n".join([QA_PREFIX, *pairs]),
        "Paraphrased Text:": f"**Paraphrased Text:** {facts}",
        "Passage 1": f"Passage 1:\n{facts}",
        "list what can be learnt": "\n".join(["Here it is:", *learnt]),
        "five marks": LOW_MARKS if "POOR" in prompt else MARKS,
        "〘": f"〘{prompt.rpartition('〘')[2].rpartition('〙')[0].upper()}〙",
    }
    return next((answer for words, answer in said.items() if words in prompt), prompt)
