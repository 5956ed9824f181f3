"""The doctor looks at everything a run depends on and changes nothing."""

import json
from importlib.util import find_spec

from typer.testing import CliRunner

from gristmill.cli.doctor import CHECKS, cgroup_limit
from gristmill.cli.main import app


def test_every_check_finds_something_to_say():
    assert all(list(check()) for check in CHECKS)


def test_the_main_subjects_are_covered():
    subjects = {finding.subject for check in CHECKS for finding in check()}

    assert {"python", "cores", "memory", "shared memory", "open files", "pyarrow"} <= subjects


def test_a_control_group_larger_than_the_machine_is_no_limit():
    assert cgroup_limit(total=0) is None


def test_what_is_missing_is_named_with_its_purpose_and_the_command(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "jieba" else find_spec(name))
    said = CliRunner().invoke(app, ["doctor"]).output
    extras = {part["name"]: part for part in json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)["extras"]}

    assert "  pip install 'gristmill[zh]'" in said
    assert said.index("Not installed") < said.index("words of Chinese texts")
    assert extras["zh"]["missing"] == ["jieba"]
