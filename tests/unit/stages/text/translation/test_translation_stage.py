"""Documents translated, one batch at a time."""

import asyncio
import json

import pyarrow as pa
import pytest

from gristmill.errors import ConfigError
from gristmill.models.client import AsyncLLMClient
from gristmill.stages.text.experimental.translation import TranslationStage
from gristmill.stages.text.experimental.translation.translate import unwrapped
from gristmill.tasks import DocumentBatch
from gristmill.tasks.json_encoding import encode_lines
from gristmill.tasks.json_lines import JsonLines

MARKS = '{"Fluency": 4, "Accuracy": 4, "Idiomaticity": 4, "Terminology": 0, "Handling_of_Format": 4}'
GOOD, BAD = MARKS, MARKS.replace("4", "1")


class Translates(AsyncLLMClient):
    """Translates by writing in capitals, and marks by what it reads. "fail" fails, "hollow" is empty."""

    def setup(self):
        self._live_asked = []

    async def _query_model_impl(self, *, messages, model, conversation_formatter=None, generation_config=None):
        content = messages[-1]["content"]
        self._live_asked.append((model, content))
        if "five marks" in content:
            shown = content.partition("Translation:\n")[2]
            return ["no idea" if "ODD" in shown else BAD if "POOR" in shown else GOOD]
        text = content[content.rindex("〘") + 1 : content.rindex("〙")]
        if "fail" in text:
            raise ValueError("cannot")
        return ["〘〙" if "hollow" in text else f"Sure: 〘{text.upper()}〙"]


def stage(**options):
    given = {"source_lang": "en", "target_lang": "de", "client": Translates(), "model_name": "m", "health_check": False}
    return TranslationStage(**{**given, **options})


def run(translation, batch):
    """Return the batch behind all inner stages, and these."""
    batch = batch if isinstance(batch, DocumentBatch) else DocumentBatch("d", pa.table(batch))
    stages = translation.decompose()

    async def through():
        made = batch
        for each in stages:
            await each.setup()
            made = await each.process(made)
        return made

    return asyncio.run(through()), stages


def lines(*documents):
    encoded = [json.dumps(document).encode() + b"\n" for document in documents]
    return DocumentBatch.from_lines("d", JsonLines(pa.array(encoded, pa.large_binary())))


def written(batch):
    return [json.loads(line) for chunk in encode_lines(batch) for line in bytes(chunk).splitlines()]


def test_lines_are_translated_and_everything_else_stays():
    text = "# A title\n\n  one two\n```\ncode = 1\n```\n42\n"
    made, (translate,) = run(stage(), {"text": [text, None, "  ", "```\ncode\n```"]})

    assert made.column("translated_text").to_pylist() == [
        "# A TITLE\n\n  ONE TWO\n```\ncode = 1\n```\n42\n",
        None,
        None,
        "```\ncode\n```",
    ]
    assert made.column("text").to_pylist()[0] == text
    assert len(translate._asked._live_asked) == 2
    assert "from English into German" in translate._asked._live_asked[0][1]


def test_a_segment_is_asked_for_once_in_a_document():
    _, (translate,) = run(stage(segmentation_mode="fine"), {"text": ["Yes. Yes. No."]})

    assert len(translate._asked._live_asked) == 2


@pytest.mark.parametrize("bad", ["fail", "hollow"])
def test_a_segment_that_fails_never_becomes_an_empty_text(bad):
    batch = {"text": ["good", f"first\n{bad} here\nlast"], "id": ["a", "b"]}
    made, (translate,) = run(stage(), batch)

    assert made.column("translated_text").to_pylist() == ["GOOD"]
    (record,) = translate.context.quarantined
    assert (record.document_id, record.kind) == ("b", "RowFailed")
    assert f"segment '{bad} here' was not translated" in record.error

    kept, (translate,) = run(stage(on_segment_error="keep_source"), batch)
    assert kept.column("translated_text").to_pylist() == ["GOOD", f"FIRST\n{bad} here\nLAST"]
    assert kept.column("translation_errors").to_pylist()[0] is None
    assert kept.column("translation_errors").to_pylist()[1].startswith(f"'{bad} here': ")
    assert translate.context.own_counts.counted["segments_kept_in_source"] == 1


def test_one_failing_document_of_256_is_quarantined_alone():
    texts = [f"text {n}" for n in range(256)]
    texts[77] = "fail"
    made, (translate,) = run(stage(), {"text": texts})

    assert made.column("text").to_pylist() == texts[:77] + texts[78:]
    assert [record.row for record in translate.context.quarantined] == [77]


def test_braces_pass_unchanged():
    made, (translate,) = run(stage(), {"text": ["{src} {0} {} {{x}} %s and {TARGET_LANG}"]})

    assert made.column("translated_text").to_pylist() == ["{SRC} {0} {} {{X}} %S AND {TARGET_LANG}"]
    assert "〘{src} {0} {} {{x}} %s and {TARGET_LANG}〙" in translate._asked._live_asked[0][1]
    assert "such as {name} or %s" in translate._asked._live_asked[0][1]


@pytest.mark.parametrize(
    ("answer", "segment", "text"),
    [
        ("〘Hallo〙", "Hello", "Hallo"),
        ("〘Hello〙 is 〘Hallo〙!", "Hello", "Hallo"),
        ("Hallo", "Hello", "Hallo"),
        ("〘Hallo", "Hello", "Hallo"),
        ("〘Er sagt 〘ja〙 dazu〙", "He says 〘yes〙 to it", "Er sagt 〘ja〙 dazu"),
        ("〘〙", "Hello", ""),
    ],
)
def test_the_translation_is_between_the_brackets(answer, segment, text):
    assert unwrapped(answer, segment) == text


MESSAGES = [
    {"role": "user", "content": "hi there"},
    {"role": "tool", "n": 1},
    {"role": "bot", "content": "yes", "x": []},
]


def test_a_path_leads_into_messages_and_nothing_but_texts_changes():
    batch = lines({"id": 1, "messages": MESSAGES}, {"id": 2, "messages": []}, {"id": 3})
    made, _ = run(stage(text_field="messages.*.content", output_field="german", reconstruct_messages=True), batch)

    first, *others = written(made)
    translated = [{**each, **({"content": each["content"].upper()} if "content" in each else {})} for each in MESSAGES]
    assert first == {
        "id": 1,
        "messages": MESSAGES,
        "german": translated,
        "german_truncated": False,
        "translated_messages": translated,
    }
    assert [each["german"] for each in others] == [None, None]


def test_a_nested_column_keeps_its_type():
    kind = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    table = pa.table({"messages": pa.array([[{"role": "u", "content": "hi"}], None], kind)})
    made, _ = run(stage(text_field="messages.*.content"), DocumentBatch("d", table))

    assert made.column("translated_text").type == kind
    assert made.column("translated_text").to_pylist() == [[{"role": "u", "content": "HI"}], None]


def test_a_text_that_holds_json_is_json_in_a_text_again():
    made, _ = run(stage(text_field="messages.*.content"), {"messages": [json.dumps(MESSAGES[:1])]})

    assert json.loads(made.column("translated_text").to_pylist()[0]) == [{"role": "user", "content": "HI THERE"}]


def test_several_fields_become_one_object():
    batch = lines({"title": "a title", "meta": {"note": "a note", "n": 1}}, {"title": None, "meta": None})
    made, _ = run(stage(text_field=["title", "meta.note"]), batch)

    assert [each["translated_text"] for each in written(made)] == [
        {"title": "A TITLE", "meta": {"note": "A NOTE", "n": 1}},
        None,
    ]


def test_a_document_without_what_a_path_leads_into_is_quarantined():
    made, (translate,) = run(stage(text_field="messages.*.content"), lines({"messages": "plain"}, {"messages": []}))

    assert made.num_items == 1
    assert "expected 'messages' to hold what 'messages.*.content' leads into" in translate.context.quarantined[0].error


@pytest.mark.parametrize(
    ("mode", "columns"),
    [
        ("replaced", ["text", "translated_text", "translated_text_truncated"]),
        ("raw", ["text", "translated_text_truncated", "translation_metadata"]),
        ("both", ["text", "translated_text", "translated_text_truncated", "translation_metadata"]),
    ],
)
def test_output_modes(mode, columns):
    made, (translate,) = run(stage(output_mode=mode), {"text": ["one\ntwo"]})

    assert made.get_columns() == columns
    assert ["text", *translate.outputs()[1]] == columns
    if mode != "replaced":
        assert json.loads(made.column("translation_metadata").to_pylist()[0]) == {
            "target_lang": "de",
            "translation": {"text": "ONE\nTWO"},
            "segmented_translation": {"text": [{"src": "one", "tgt": "ONE"}, {"src": "two", "tgt": "TWO"}]},
        }


def test_what_is_translated_already_is_left_alone():
    batch = {"text": ["one", "two", "three"], "translated_text": ["eins", None, " "]}
    made, (translate,) = run(stage(skip_translated=True), batch)

    assert made.column("translated_text").to_pylist() == ["eins", "TWO", "THREE"]
    assert translate.context.own_counts.counted["already_translated"] == 1
    assert translate.new_columns() == []
    first, _ = run(stage(skip_translated=True), {"text": ["one"]})
    assert first.column("translated_text").to_pylist() == ["ONE"]


def test_a_dry_run_asks_nobody(capsys):
    made, (translate,) = run(stage(dry_run=True, dry_run_log_count=2), {"text": ["one\ntwo\nthree", "four"]})

    assert made.column("translated_text").to_pylist() == [None, None]
    assert translate._asked._live_asked == []
    assert capsys.readouterr().err.count("would ask") == 2
    assert translate.context.own_counts.counted["segments_not_asked"] == 4


def test_a_health_check_asks_once_and_says_who_does_not_answer():
    class Away(Translates):
        async def _query_model_impl(self, **asked):
            raise ConnectionRefusedError("nobody is there")

    _, (translate,) = run(stage(health_check=True), {"text": ["one"]})
    assert len(translate._asked._live_asked) == 2
    with pytest.raises(Exception, match="expected the translation backend to answer; got nobody is there"):
        run(stage(health_check=True, client=Away(max_retries=0)), {"text": ["one"]})


def test_translations_are_marked_and_bad_ones_dropped():
    made, (_, faith) = run(stage(enable_faith_eval=True), {"text": ["fine", "poor", "odd", None]})

    assert made.column("text").to_pylist() == ["fine", "odd", None]
    assert made.column("faith_avg").to_pylist() == [4.0, None, None]
    assert made.column("faith_terminology").to_pylist() == [0.0, None, None]
    assert made.column("faith_parse_failed").to_pylist() == [False, True, False]
    assert faith.context.dropped == {"faith_avg": 1}
    assert not [name for name in made.get_columns() if name.startswith("_")]
    assert [model for model, _ in faith._asked._live_asked] == ["m"] * 3


def test_marks_may_be_kept_without_dropping_and_entered_into_the_metadata():
    options = {"filter_enabled": False, "merge_scores": True, "output_mode": "both", "faith_model_name": "judge"}
    made, (_, faith) = run(stage(enable_faith_eval=True, **options), {"text": ["poor", None]})

    metadata = made.column("translation_metadata").to_pylist()
    assert json.loads(metadata[0])["faith_scores"]["average"] == 1.0
    assert metadata[1] is None
    assert [model for model, _ in faith._asked._live_asked] == ["judge"]


def test_own_prompts_are_read_from_files(tmp_path):
    (tmp_path / "own.yaml").write_text("system: Be brief.\nuser: '{source_lang}>{target_lang}: 〘{src}〙 {else}'\n")
    made, (translate,) = run(stage(translation_prompt_path=str(tmp_path / "own.yaml")), {"text": ["hi"]})

    assert translate._asked._live_asked == [("m", "English>German: 〘hi〙 {else}")]
    assert made.column("translated_text").to_pylist() == ["HI"]


def test_an_empty_batch_has_the_columns():
    made, _ = run(stage(enable_faith_eval=True, output_mode="both"), {"text": pa.array([], pa.string())})

    assert {"translated_text", "translation_metadata", "faith_avg"} <= set(made.get_columns())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"source_lang": " "}, "expected source_lang and target_lang"),
        ({"client": None}, "expected client and model_name"),
        ({"model_name": ""}, "expected client and model_name"),
        ({"output_mode": "replace"}, "did you mean 'replaced'"),
        ({"segmentation_mode": "middle"}, "expected segmentation_mode to be one of"),
        ({"backend_type": "nmtt"}, "did you mean 'nmt'"),
        ({"on_segment_error": "empty"}, "expected on_segment_error to be one of"),
        ({"merge_scores": True}, "expected output_mode 'raw' or 'both' with merge_scores"),
        ({"merge_scores": True, "output_mode": "raw"}, "expected enable_faith_eval with merge_scores"),
        ({"reconstruct_messages": True}, "expected text_field to be 'messages.*.content'"),
        ({"text_field": []}, "expected text_field to name columns"),
        ({"text_field": "a..b"}, "expected the name of a column"),
        ({"backend_type": "nmt"}, "expected backend_config to name the server"),
        ({"backend_type": "nmt", "backend_config": {"url": "x"}}, "expected options of the backend 'nmt'"),
        (
            {
                "backend_type": "nmt",
                "backend_config": {"server_url": "http://x"},
                "client": None,
                "enable_faith_eval": True,
            },
            "expected client and faith_model_name",
        ),
        ({"translation_prompt_path": "no.yaml"}, "expected a YAML file"),
    ],
)
def test_what_does_not_fit_together_is_said_at_once(options, said):
    with pytest.raises(ConfigError) as error:
        stage(**options)
    assert said in str(error.value)
