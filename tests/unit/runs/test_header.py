"""A header, and a report, are written in pieces that together are what they would be as a whole."""

import json

import pytest

from gristmill.pipeline.compile import compile_chain
from gristmill.runs import ledger
from gristmill.runs.ledger import as_texts, header_of, in_full, parse, with_long_list
from gristmill.stages.text.io import JsonlReader, JsonlWriter


@pytest.mark.parametrize("elements", [[], ["a"], ["a", 'b "c"\n', "é"]])
@pytest.mark.parametrize("document", [{"files": 1}, {"n": [1], "files": [], "files of": '\n "files": []'}])
def test_an_object_with_a_long_list_is_what_json_makes_of_it(document, elements):
    made = "".join(with_long_list(document, "files", map(json.dumps, elements)))
    assert made == json.dumps(document | {"files": elements}, indent=1)


@pytest.mark.parametrize("number", [1, 3])
def test_a_header_in_pieces_is_the_sealed_whole_and_comes_back(tmp_path, number):
    for index in range(number):
        (tmp_path / f'a"{index}.jsonl').write_text("{}\n")
    plan = compile_chain("p", [JsonlReader(str(tmp_path)), JsonlWriter(str(tmp_path / "_out"))], None)
    header = header_of(plan, None)
    text = "".join(as_texts(header))

    assert text == ledger.sealed(json.dumps(in_full(header), indent=1))
    assert parse("run", text) == in_full(header)
    assert len(in_full(header)["inputs"]) == number
