"""What keeps Cosmos-Xenna from starting is said with what to do about it."""

import socket
import sys

import pytest

from gristmill.backends.xenna.engine import check_dashboard, import_xenna
from gristmill.errors import ConfigError, MissingDependency


def test_xenna_that_is_not_installed_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cosmos_xenna.pipelines", None)  # as if it were not there
    expected = r"^XennaExecutor: expected cosmos_xenna .*; cosmos_xenna.* is not installed. .*'gristmill\[xenna\]'$"
    with pytest.raises(MissingDependency, match=expected):
        import_xenna()


def test_a_cluster_without_its_dashboard_is_told_how_to_get_one():
    pytest.importorskip("ray", reason="ray is an extra")
    with socket.socket() as taken:  # and does not listen
        taken.bind(("127.0.0.1", 0))
        expected = r"expected a Ray cluster with its dashboard.*Install ray\[default\], .*--include-dashboard=true"
        with pytest.raises(ConfigError, match=expected):
            check_dashboard(f"http://127.0.0.1:{taken.getsockname()[1]}", patience_s=0.0)
