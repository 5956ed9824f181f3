import signal
import subprocess

import pytest
from tests.browser import browser
from tests.dashboard_runs import COMMAND, RUNS, assert_nothing_forbidden_happened, finished_runs


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """Where the finished runs lie."""
    place = tmp_path_factory.mktemp("dashboard")
    finished_runs(place)
    return place


@pytest.fixture(scope="session")
def address(work):
    with subprocess.Popen([*COMMAND, "dashboard", *RUNS], cwd=work, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(session, address):
    """The page on a finished run. Whatever a test did, nothing forbidden may have happened."""
    session.failures.clear()
    session.requests.clear()
    session.dialogs.clear()
    session.prefer("light")
    session.open(address)
    session.until("document.querySelector('#state').textContent === 'finished'")
    yield session
    assert_nothing_forbidden_happened(session, address)
