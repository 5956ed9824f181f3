"""Settings for all tests."""

import contextlib
import os
import re
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from tests.fault.disk.summary import pytest_sessionfinish, pytest_terminal_summary
from tests.ray_cluster import shared
from tests.xdist_groups import pytest_collection_modifyitems

__all__ = ["pytest_collection_modifyitems", "pytest_sessionfinish", "pytest_terminal_summary"]  # hooks

# No deadline: other work on the machine must not decide whether a property holds. The same examples in every run: what
# is found by chance belongs into a test of its own, and not into somebody else's build.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """What a test run measures stays out of the user's cache, and what is there out of the tests.

    Things that were slow to make are kept for later runs, of any checkout: kernels, where `make setup` has not compiled
    them. Their names are hashes of all they depend on.
    """
    own, kept = tmp_path_factory.mktemp("cache"), Path(tempfile.gettempdir()) / f"gristmill-tests-{os.getuid()}"
    kept.mkdir(mode=0o700, exist_ok=True)
    _link_made(kept, own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRISTMILL_CACHE_DIR", str(own))
        yield
    _link_made(own, kept)


def _link_made(source, target):
    for path in source.iterdir():
        if re.fullmatch("[0-9a-f]{64}", path.name):
            with contextlib.suppress(FileExistsError):
                (target / path.name).hardlink_to(path)


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_works():
    """Programs under test take Ctrl-C, however the tests were started.

    A shell starts what runs in the background (`make test &`, `nohup`) with SIGINT ignored, which every process below
    inherits, and gristmill like Python leaves a signal alone that it finds ignored.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Tiny models with the file layouts of real ones, made by torch when they are asked for."""
    pytest.importorskip("torch")
    from tests.tiny_torch_models import TinyModels

    return TinyModels(tmp_path_factory.mktemp("tiny_models"))


@pytest.fixture(scope="module")
def ray_cluster():
    """A Ray this process is connected to: while it is, a pipeline without an executor runs there."""
    return shared.connected()


@pytest.fixture
def no_cluster():
    """None: this test starts its own, and a small machine has room for one at a time."""
    shared.close()


@pytest.fixture(autouse=True)
def _ray_only_for_tests_of_it(request):
    if request.node.get_closest_marker("cluster") is None:
        shared.close()


@pytest.fixture(scope="session", autouse=True)
def _no_ray_is_left():
    yield
    shared.close()


@pytest.fixture
def quick_downloads(monkeypatch, tmp_path):
    """Pauses of milliseconds between the tries of a download, and rates of this test alone."""
    from gristmill.storage import http_ranges, rate, transfer

    monkeypatch.setattr(transfer, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(http_ranges, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(rate, "PAUSE_S", 0.001)
    (tmp_path / "rates").mkdir()
    monkeypatch.setattr(rate, "_directory", lambda: tmp_path / "rates")
