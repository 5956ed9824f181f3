"""Settings for all tests."""

import pytest
from hypothesis import settings
from tests.ray_cluster import NODE, connected, started

# No deadline: other work on the machine must not decide whether a property holds. The same examples in every run: what
# is found by chance belongs into a test of its own, and not into somebody else's build.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """What a test run measures stays out of the user's cache, and what is there out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def cluster():
    """One Ray for all tests that need one; tests may add nodes, and remove those."""
    with started() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ray_cluster(cluster):
    """The same, with this process connected to it: while it is, a pipeline without an executor runs there."""
    with connected(cluster):
        yield cluster


@pytest.fixture(scope="module")
def xenna_cluster(ray_cluster):
    """The same with a second node: Cosmos-Xenna wants a core for each of its stages, and some to spare."""
    node = ray_cluster.add_node(**{**NODE, "num_cpus": 3})
    ray_cluster.wait_for_nodes()
    yield ray_cluster
    ray_cluster.remove_node(node)
