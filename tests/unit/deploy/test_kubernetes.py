"""The manifests are what the API server and KubeRay expect, and fit together. No cluster is asked."""

import copy
import shlex
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.unit.deploy.rayjob_schema import RAY_JOB, VOLUME_CLAIM

from gristmill.backends.options import EXECUTORS
from gristmill.config.shipped import find_recipe

DIRECTORY = Path(__file__).parents[3] / "deploy" / "kubernetes"


@pytest.fixture
def job():
    return yaml.safe_load((DIRECTORY / "rayjob.yaml").read_text())


@pytest.fixture
def claim():
    return yaml.safe_load((DIRECTORY / "storage.yaml").read_text())


def templates(job):
    cluster = job["spec"]["rayClusterSpec"]
    return [group["template"]["spec"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def test_the_job_is_a_ray_job(job):
    jsonschema.validate(job, RAY_JOB)


def test_the_claim_is_a_volume_claim_that_many_pods_may_write_to(claim):
    jsonschema.validate(claim, VOLUME_CLAIM)

    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda job: job["spec"].update(shutdownAfterJobFinish=True),
        lambda job: job["spec"].pop("rayClusterSpec"),
        lambda job: job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].pop("maxReplicas"),
        lambda job: job["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"].update({"num-cpus": 0}),
        lambda job: templates(job)[0]["containers"][0]["resources"]["limits"].update(memory="8 GB"),
    ],
)
def test_a_manifest_with_a_mistake_is_refused(job, spoil):
    spoilt = copy.deepcopy(job)
    spoil(spoilt)

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoilt, RAY_JOB)


def test_every_pod_has_the_same_image_and_the_shared_volume(job, claim):
    pods = templates(job)
    images = {container["image"] for pod in pods for container in pod["containers"]}

    assert len(images) == 1
    for pod in pods:
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert mounts.keys() == volumes.keys()
        assert volumes["data"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert mounts["data"] == "/data"


def test_replicas_are_within_their_bounds(job):
    for group in job["spec"]["rayClusterSpec"]["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]


def test_the_command_is_one_gristmill_understands(job):
    words = shlex.split(job["spec"]["entrypoint"])

    assert words[:2] == ["gristmill", "run"]
    assert find_recipe(words[2])
    assert words[words.index("--executor") + 1] in EXECUTORS


def test_the_image_has_the_version_of_ray_the_job_names(job):
    base = (DIRECTORY / "Dockerfile").read_text().split("FROM ")[1].split()[0]

    assert base.startswith(f"rayproject/ray:{job['spec']['rayClusterSpec']['rayVersion']}-")
