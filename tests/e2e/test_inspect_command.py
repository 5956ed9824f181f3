"""`gristmill inspect` prints what is in files, and cannot be made to print anything that acts."""

import json
import subprocess
import sys

import pytest

GRISTMILL = [sys.executable, "-c", "from gristmill.cli.main import main; main()"]
HOSTILE = "\x1b[2J\x1b]0;title\x07[red]no markup[/red]\u202eevil <script>"


def run(*arguments, cwd):
    return subprocess.run([*GRISTMILL, "inspect", *arguments], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("inspect")
    rows = [{"id": f"d{n}", "score": n / 10, "text": f"text {n}"} for n in range(50)]
    rows[1] |= {"text": HOSTILE, HOSTILE: HOSTILE}
    (directory / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "damaged \x1b[2J\n")
    rows[2]["text"] = "another"
    (directory / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:40]))
    return directory


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--head", "60"], ["damaged: not JSON", "text 49", "51 rows in 1 file\n"]),
        (
            ["--where", "score >= 4.8", "--columns", "id,score"],
            ["d48", "d49", "2 of", "1 damaged, which cannot be judged"],
        ),
        (["--search", "no markup", "--columns", "id,text"], ["d1", "[red]no markup[/red]"]),
        (
            ["--row", "2"],
            ["row 2 · ", "a.jsonl:2\n", "\\x1b[2J\\x1b]0;title\\x07[red]no markup[/red]\\u202eevil <script>"],
        ),
        (["--stats"], ["from all 50 rows, 1 damaged lines left out", "█"]),
        (["--sample", "5"], ["5 of"]),
        (
            ["--diff", "b.jsonl"],
            ["39  the same in both", "1  changed", "10  only here", "text: … [-text 2-] {+another+}"],
        ),
    ],
)
def test_each_way_of_printing(data, arguments, said):
    done = run("a.jsonl", *arguments, cwd=data)

    assert done.returncode == 0, done.stderr
    assert [text for text in said if text not in done.stdout] == []
    assert {"\x1b", "\x07", "\u202e"}.isdisjoint(done.stdout)


@pytest.mark.slow
def test_a_program_gets_one_line_of_json(data):
    found = json.loads(run("a.jsonl", "--where", "score > 4.7", "--json", cwd=data).stdout)

    assert [row["values"]["id"] for row in found["rows"]] == ["d48", "d49"]
    assert found["num_damaged"] == 1
    assert found["rows"][0]["place"] == f"{data}/a.jsonl:49"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.jsonl", "--where", "scor > 1"], "did you mean 'score'"),
        (["a.jsonl", "--columns", "txt"], "did you mean 'text'"),
        (["a.jsonl", "--head", "1", "--stats"], "--head and --stats"),
        (["nothing"], "'nothing'"),
    ],
)
def test_mistakes_are_said_in_words(data, arguments, said):
    done = run(*arguments, cwd=data)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
