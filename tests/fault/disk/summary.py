"""Says at the end of a test run how many states a crash may leave were tried, and lets it fail if they are too few.

Tests run in several processes, of which none knows what the others tried and whose output nobody sees: the counts
travel with the reports of the tests to the process that prints.
"""

import os

import pytest

FLOOR = int(os.environ.get("GRISTMILL_CRASH_STATES", "0"))  # at least so many; more than 0 in `make test-nightly`
PROPERTY = "states a crash may leave"


def _told(reporter):
    """What the tests have said, and how many states they tried in all."""
    reports = [report for kind in ("passed", "failed") for report in reporter.stats.get(kind, ())]
    said = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    return [told for told, _ in said], sum(tried for _, tried in said)


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.testscollected:
        return
    told, tried = _told(reporter)
    if told and tried < FLOOR and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    told, tried = _told(terminalreporter)
    if told:
        terminalreporter.section(PROPERTY)
        for line in told:
            terminalreporter.line(line)
        too_few = f"; expected {FLOOR:,} at least" if tried < FLOOR else ""
        terminalreporter.line(f"in all: {tried:,} different states{too_few}")
