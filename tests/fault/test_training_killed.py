"""A training that is killed leaves no half of a model, and the same command makes a whole one."""

import json
import signal
import subprocess
import sys

import pytest
from tests.classifier_corpus import documents, write_classes

# Kills its own process where training calls what is named: from there on everything is as after any kill -9.
KILLED = """
import os, signal, sys
import gristmill.workflows.training.{module} as module
def killed(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
module.{name} = killed
from gristmill.backends.local import LocalExecutor
from gristmill.workflows.training import TrainClassifierWorkflow
TrainClassifierWorkflow(*sys.argv[1:]).run(LocalExecutor(num_workers=0), quiet=True)
"""
WHOLE = """
import sys
from gristmill.backends.local import LocalExecutor
from gristmill.workflows.training import TrainClassifierWorkflow
print(TrainClassifierWorkflow(*sys.argv[1:]).run(LocalExecutor(num_workers=0), quiet=True))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_classes(tmp_path_factory.mktemp("corpus"), documents(600, seed=2))


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def run(script, *arguments):
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name"),
    [("kinds", "train_fasttext"), ("train_classifier", "explained")],
    ids=["before-training", "before-the-rename"],
)
def test_a_killed_training_leaves_no_model_and_can_be_repeated(corpus, tmp_path, module, name):
    output = tmp_path / "model"
    done = run(KILLED.format(module=module, name=name), *corpus, str(output))

    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not output.exists()

    again = run(WHOLE, *corpus, str(output))
    assert again.returncode == 0, again.stderr
    assert names(output) == ["card.json", "model.bin", "rows.jsonl"]
    assert names(tmp_path) == ["model"]
    assert json.loads((output / "card.json").read_text())["auc"]["value"] > 0.6


@pytest.mark.fault
@pytest.mark.slow
def test_two_at_once_do_not_disturb_each_other(corpus, tmp_path):
    """The second is told who has begun; the first ends as if nothing had been."""
    output = tmp_path / "model"
    holding = (
        """
import sys
import gristmill.workflows.training.train_classifier as module
original = module.Examples
def waiting(*arguments, **options):
    print("begun", flush=True)
    sys.stdin.readline()
    return original(*arguments, **options)
module.Examples = waiting
"""
        + WHOLE
    )
    command = [sys.executable, "-c", holding, *corpus, str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "begun\n"
        second = run(WHOLE, *corpus, str(output))
        first.communicate("\n", timeout=120)

    assert "is being made by process" in second.stderr
    assert (first.returncode, second.returncode) == (0, 1)
    assert names(tmp_path) == ["model"]
