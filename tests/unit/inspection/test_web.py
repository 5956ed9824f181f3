"""What the page of `gristmill inspect --web` asks is answered from the files, over real connections."""

import http.client
import json
import threading
from urllib.parse import urlencode

import pytest

from gristmill.dashboard.guard import TOKEN_HEADER, Guard
from gristmill.dashboard.server import WebServer
from gristmill.inspection.dataset import Dataset
from gristmill.inspection.web import site as site_module
from gristmill.inspection.web.site import InspectSite

TOKEN = "correct-horse-battery-staple"
NUM_ROWS = 300


@pytest.fixture
def asked(tmp_path):
    rows = [{"id": f"d{n}", "n": n, "text": f"text {n} <script>alert(1)</script>"} for n in range(NUM_ROWS)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken <b>\n")
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:200]))
    with Dataset(str(tmp_path / "a.jsonl")) as dataset, Dataset(str(tmp_path / "b.jsonl")) as there:
        dataset.count_rows()
        site = InspectSite(dataset, there=there)
        with WebServer(site, Guard.for_address("127.0.0.1", TOKEN), "127.0.0.1", 0) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()

            def ask(path, token=TOKEN, method="GET", **query):
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
                connection.request(method, f"{path}?{urlencode(query)}", headers={TOKEN_HEADER: token})
                answer = connection.getresponse()
                body = answer.read()
                return answer.status, json.loads(body) if answer.status == 200 and path.startswith(
                    "/api"
                ) else body.decode()

            yield ask
            server.shutdown()
            thread.join()


def ids(page):
    return [row["cells"][0] if "cells" in row else "damaged" for row in page["rows"]]


def test_pages_lead_forwards_back_and_to_the_end(asked):
    _, first = asked("/api/page", count=20)
    _, second = asked("/api/page", count=20, place=first["next"])
    _, back = asked("/api/page", count=20, before=second["place"])
    _, last = asked("/api/page", count=3, last=1)
    _, row = asked("/api/page", count=1, row=250)

    assert ids(first) == ids(back) == [f"d{n}" for n in range(20)]
    assert ids(second)[0] == "d20"
    assert ids(last) == ["d298", "d299", "damaged"]
    assert (ids(row), row["rows"][0]["row"], row["is_exact"]) == (["d249"], 250, True)


def test_a_row_in_full_the_columns_and_a_sample(asked):
    _, about = asked("/api/about")
    _, page = asked("/api/page", count=1, where="n == 17")
    _, row = asked("/api/row", place=page["rows"][0]["place"])
    _, damaged = asked("/api/row", place=asked("/api/page", count=1, last=1)[1]["place"])
    _, statistics = asked("/api/statistics", where="n < 100")
    _, sample = asked("/api/page", count=10, sample=3)

    assert [column["name"] for column in about["columns"]] == ["id", "n", "text"]
    assert {value["name"]: value["text"] for value in row["values"]}["text"] == "text 17 <script>alert(1)</script>"
    assert (damaged["raw"], damaged["damage"][:8]) == ("broken <b>", "not JSON")
    assert statistics["columns"][1]["quantiles"][-1] == 99
    assert "the first 100 rows" in statistics["said"]
    assert len(set(ids(sample))) >= 5


def test_a_long_search_is_answered_in_pieces_that_add_up(asked, monkeypatch):
    from gristmill.inspection import lines_file

    monkeypatch.setattr(site_module, "ANSWER_S", -1.0)  # every answer is late
    monkeypatch.setattr(lines_file, "_SCAN_BYTES", 2048)
    found, place, num_asked = [], "0.0", 0
    while place:
        _, page = asked("/api/page", count=20, text="text 29", place=place)
        found, place, num_asked = (
            found + ids(page),
            page["next"] if page["is_stopped"] or page["rows"] else None,
            num_asked + 1,
        )
        assert 0 <= page["share"] <= 1

    assert found == ["d29", *(f"d{n}" for n in range(290, 300))]
    assert num_asked > 3


def test_the_difference_is_there_when_it_is_known(asked):
    lines = None
    while lines is None:
        lines = asked("/api/difference")[1]["lines"]

    assert "200  the same in both" in lines[0]


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/api/page", {"where": "nn > 1"}, 400),
        ("/api/page", {"where": "__import__('os')"}, 400),
        ("/api/page", {"place": "9.0"}, 400),
        ("/api/page", {"place": "../../etc/passwd"}, 400),
        ("/api/page", {"count": "-1"}, 400),
        ("/api/page", {"row": "9" * 30}, 400),
        ("/api/row", {"place": "0.99999999"}, 404),
        ("/api/etc", {}, 404),
        ("/static/../site.py", {}, 404),
    ],
)
def test_a_wrong_question_is_told_so(asked, path, query, status):
    found, words = asked(path, **query)

    assert found == status
    assert "expected" in words or "did you mean" in words


def test_nobody_without_the_token_sees_a_row_and_nobody_writes(asked):
    assert asked("/api/page", token="wrong")[0] == 401
    assert asked("/api/page", method="POST")[0] == 405
    assert asked("/")[0] == asked("/static/inspect.js")[0] == asked("/static/dom.js")[0] == 200


def test_the_page_makes_no_markup_of_texts():
    from importlib import resources

    script = (resources.files("gristmill.inspection.web") / "static" / "inspect.js").read_text()

    assert [word for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write") if word in script] == []
