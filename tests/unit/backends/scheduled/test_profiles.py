"""What was measured comes back as a prior; a file that is no good is as good as none."""

import msgspec
import pyarrow as pa
import pytest

from gristmill.backends.scheduled.kept_records import MAX_PROFILES, Profile, ProfileStore, open_store, priors, remember
from gristmill.engine.policies.rates import MEASURED, Prior
from gristmill.pipeline.compile import compile_chain
from gristmill.runs.progress import MeasuredGroup, MeasuredRun
from gristmill.stages.base import ProcessingStage
from gristmill.tasks import DocumentBatch

PROFILE = Profile(0.5, 3.0, 2.0)


class Slow(ProcessingStage[DocumentBatch, DocumentBatch]):
    fusible = False

    def __init__(self, size=1):
        self.size = size

    def process(self, task):
        return task


class Hinted(Slow):
    expected_s = 0.25


def plan_of(*stages, texts=("a",)):
    return compile_chain("p", list(stages), [DocumentBatch("b", pa.table({"text": list(texts)}))])


def measured(*tasks, service_s=0.5):
    """A run in which each group did so many tasks."""
    groups = [
        MeasuredGroup(f"g{n}", 1.0, 0.0, 0.0, 1, None, count, service_s, 0.0, 3.0, 0.0, 2.0, 0.0)
        for n, count in enumerate(tasks)
    ]
    return MeasuredRun("p", 2.0, (), 0, 1.0, 0.0, tuple(groups), 1.0, 1.0, "cpu", {})


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "cache" / "profiles.json")


def test_a_group_starts_with_what_the_last_run_measured(store):
    plan = plan_of(Slow(1), Slow(2))
    assert priors(plan, (), store) == (None, None)

    remember(plan, measured(100, 100), store)
    assert priors(plan, (), store) == (Prior(2.0, 3.0, 2.0), Prior(2.0, 3.0, 2.0))


def test_a_group_that_did_too_little_is_not_remembered(store):
    plan = plan_of(Slow(1), Slow(2))
    remember(plan, measured(MEASURED - 1, MEASURED), store)

    assert [prior is None for prior in priors(plan, (), store)] == [True, False]


@pytest.mark.parametrize(
    ("stages", "texts", "gpus"),
    [((Slow(3), Slow(4)), ("a",), ()), ((Slow(1), Slow(2)), ("a" * 1000,), ()), ((Slow(1), Slow(2)), ("a",), (80.0,))],
    ids=["other settings", "larger tasks", "other hardware"],
)
def test_what_decides_the_speed_is_part_of_the_key(store, stages, texts, gpus):
    remember(plan_of(Slow(1), Slow(2)), measured(100, 100), store)

    assert priors(plan_of(*stages, texts=texts), gpus, store) == (None, None)


def test_what_a_stage_says_of_itself_comes_first(store):
    plan = plan_of(Hinted(), Slow())
    assert priors(plan, (), None) == (Prior(4.0), None)

    remember(plan, measured(100, 100), store)
    assert priors(plan, (), store)[0] == Prior(4.0, setup_s=3.0, fan_out=2.0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"version": 99, "profiles": {}}',
        b'{"version": 1, "profiles": {"a": {"service_s": "x", "setup_s": 0, "fan_out": 1}}}',
        b'{"version": 1, "profiles": {"a": {"service_s": 0, "setup_s": 0, "fan_out": 1}}}',
    ],
)
def test_a_file_that_is_not_ours_is_as_good_as_none_and_is_written_anew(store, content):
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    assert store.read() == {}

    store.add({"b": PROFILE})
    assert store.read() == {"b": PROFILE}


def test_a_place_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    nowhere = ProfileStore(tmp_path / "file" / "profiles.json")
    nowhere.add({"a": PROFILE})

    assert nowhere.read() == {}


def test_the_oldest_are_forgotten(store):
    store.add({f"{n}": PROFILE for n in range(MAX_PROFILES)})
    store.add({"0": PROFILE, "new": PROFILE})
    kept = list(store.read())

    assert len(kept) == MAX_PROFILES
    assert kept[0] == "2"  # 1 was the oldest once 0 had been written again
    assert kept[-2:] == ["0", "new"]


def test_nothing_is_left_beside_the_file(store):
    store.add({"a": PROFILE})

    assert [path.name for path in store.path.parent.iterdir()] == ["profiles.json"]


def test_profiles_can_be_turned_off(monkeypatch):
    plan = plan_of(Slow(1), Slow(2))
    assert open_store(plan) is not None

    monkeypatch.setenv("GRISTMILL_PROFILES", "off")
    assert open_store(plan) is None


def test_one_group_has_nothing_to_share_out():
    assert open_store(plan_of(Slow())) is None


def test_the_figures_are_those_of_the_measured_run(store):
    plan = plan_of(Slow(1), Slow(2))
    run = measured(100, 100)
    quick = msgspec.structs.replace(run.groups[1], service_s=0.1)
    remember(plan, msgspec.structs.replace(run, groups=(run.groups[0], quick)), store)

    assert [prior.rate for prior in priors(plan, (), store)] == pytest.approx([2.0, 10.0])
