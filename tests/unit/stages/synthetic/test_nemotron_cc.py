"""The tasks of Nemotron-CC on one batch: what is asked, what is kept, what is counted."""

import asyncio
import re

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.models.client import AsyncLLMClient
from gristmill.stages.synthetic.nemotron_cc import (
    BaseSyntheticStage,
    DistillStage,
    DiverseQAPostProcessingStage,
    DiverseQAStage,
    ExtractKnowledgeStage,
    KnowledgeListPostProcessingStage,
    KnowledgeListStage,
    WikipediaParaphrasingStage,
)
from gristmill.tasks import DocumentBatch

TASKS = [WikipediaParaphrasingStage, DiverseQAStage, DistillStage, ExtractKnowledgeStage, KnowledgeListStage]
PAGE = "\n".join(f"In year {n} the mill by the river ground {n} sacks of wheat for the town." for n in range(150))
PAIRS = "Here are the questions and answers based on the provided text:\n" + "\n".join(
    f"- Question: What happened in year {n}?\n- Answer: The mill ground {n} sacks of wheat for the whole town."
    for n in range(8)
)
SAID = {
    "rephrased": 'Here is a paraphrased version: "{}"',
    "diverse_qa": PAIRS,
    "distill": "Paraphrased Text: {}",
    "extract_knowledge": "Passage 1:\n{}",
    "knowledge_list": "The list:\n- {}",
}


class TaskModel(AsyncLLMClient):
    """Answers a task in its form, with the words of the segment; `{fail}` in one makes the request fail."""

    def __init__(self, form="{}"):
        super().__init__(max_concurrent_requests=8)
        self.form = form

    def setup(self):
        self._live_asked = []

    async def _query_model_impl(self, *, messages, model, conversation_formatter=None, generation_config=None):
        content = messages[-1]["content"]
        self._live_asked.append(content)
        if "{fail}" in content:
            raise ValueError("no")
        lines = re.findall(r"In year \d+", content) or re.findall(r"In year.*", content)
        return [self.form.replace("{}", "\n".join(lines))]


def process(stage, **columns):
    batch = DocumentBatch("d", pa.table(columns))

    async def run():
        await stage.setup()
        try:
            return await stage.process(batch)
        finally:
            await stage.teardown()

    return asyncio.run(run()) if hasattr(stage, "client") else stage.process(batch)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_document_in_segments_is_one_text_again_and_no_prompt_is_too_long(task):
    model = TaskModel(SAID[task.default_output_field])
    stage = task(client=model, model_name="m", segmented=True)
    made = process(stage, text=[PAGE, None, "  ", "short"])

    text, *others = made.column(stage.output_field).to_pylist()
    assert others == [None, None, None]
    assert len(model._live_asked) >= 2  # 150 lines do not fit a prompt of any task
    assert all(stage.count_tokens(prompt) <= stage.limits.max_input for prompt in model._live_asked)
    assert re.findall(r"In year \d+", text) == [f"In year {n}" for n in range(150)]
    assert not any(mark in text for mark in ("Passage", "Paraphrased", '"', "- "))
    assert stage.generation_config.max_tokens == stage.limits.max_output
    assert stage.context.own_counts.counted["too_short_documents"] == (1 if task.limits.min_document > 1 else 0)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_without_segments_the_answer_is_written_down_as_it_is(task):
    stage = task(client=TaskModel("raw: {}"), model_name="m", output_field="made")
    made = process(stage, text=["In year 1"])

    assert made.column("made").to_pylist()[0].startswith("raw: In year 1")


@pytest.mark.parametrize(
    ("task", "said"),
    [(WikipediaParaphrasingStage, "Sure: {}"), (DistillStage, "{}"), (DiverseQAStage, "No questions. {}")],
    ids=["paraphrase", "distill", "qa"],
)
def test_an_answer_of_another_form_is_left_out_and_counted(task, said):
    stage = task(client=TaskModel(said), model_name="m", segmented=True)
    made = process(stage, text=[PAGE])

    assert made.column(stage.output_field).to_pylist() == [None]
    counted = stage.context.own_counts.counted
    assert counted["unusable_answers"] == counted["llm_answers"] > 1
    assert counted["documents_without_result"] == 1


def test_an_answer_as_long_as_the_limit_was_cut_off_and_is_left_out():
    stage = KnowledgeListStage(client=TaskModel("- " + "word " * 700), model_name="m", segmented=True)

    assert process(stage, text=[PAGE]).column("knowledge_list").to_pylist() == [None]
    assert stage.context.own_counts.counted["too_long_answers"] > 1


def test_a_segment_that_fails_puts_its_document_into_quarantine_and_no_other():
    texts = [PAGE] * 255 + [PAGE.replace("year 80 ", "year 80 {fail} ")]
    stage = DistillStage(client=TaskModel(SAID["distill"]), model_name="m", segmented=True)
    made = process(stage, text=texts, id=[str(n) for n in range(256)])

    assert made.column("id").to_pylist() == [str(n) for n in range(255)]
    assert None not in made.column("distill").to_pylist()
    assert [(record.row, record.document_id) for record in stage.context.quarantined] == [(255, "255")]


def test_braces_pass_unchanged():
    text = "In year {document} {0} {} {{x}} {text!r} %s {language}"
    model = TaskModel()
    made = process(BaseSyntheticStage(None, "Say {this} {document}!", client=model, model_name="m"), text=[text])

    assert model._live_asked == ["Say {this} " + text + "!"]
    assert made.column("answer").to_pylist() == [text + "!"]


def test_the_stages_behind_finish_answers_the_same_way_every_time():
    plain = process(DiverseQAStage(client=TaskModel(PAIRS), model_name="m"), text=[PAGE, PAGE[:200], None])
    first = process(DiverseQAPostProcessingStage(), **plain.to_pyarrow().to_pydict())
    again = process(DiverseQAPostProcessingStage(), **plain.to_pyarrow().to_pydict())

    assert first.to_pyarrow() == again.to_pyarrow()
    long, short, none = first.column("diverse_qa").to_pylist()
    assert long.startswith(PAGE + "\n\nQuestion:")
    assert short.count("Question:") <= 3
    assert none is None


def test_answers_that_hold_nothing_become_null_and_are_counted():
    stage = KnowledgeListPostProcessingStage()
    made = process(stage, knowledge_list=["- one\n- two", "No list.", None])

    assert made.column("knowledge_list").to_pylist() == ["one\ntwo", None, None]
    assert stage.context.own_counts.counted == {"unusable_answers": 1}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_an_empty_batch_has_the_columns(task):
    stage = task(client=TaskModel(), model_name="m", segmented=True)
    made = process(stage, text=pa.array([], pa.string()))

    assert str(made.column(stage.output_field).type) == "string"


def test_what_is_missing_is_said():
    with pytest.raises(
        ConfigError, match=r"^DistillStage: expected prompt, client and model_name; got 'distill', None"
    ):
        DistillStage(model_name="m")
    with pytest.raises(ConfigError, match="expected limits of the class"):
        BaseSyntheticStage(None, "{document}", client=TaskModel(), model_name="m", segmented=True)
