"""Settings for all tests."""

import pytest
from hypothesis import settings

# No deadline: other work on the machine must not decide whether a property holds.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """What a test run measures stays out of the user's cache, and what is there out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
