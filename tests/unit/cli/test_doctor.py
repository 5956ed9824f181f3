"""The doctor looks at everything a run depends on and changes nothing."""

from gristmill.cli.doctor import CHECKS, cgroup_limit


def test_every_check_finds_something_to_say():
    assert all(list(check()) for check in CHECKS)


def test_the_main_subjects_are_covered():
    subjects = {finding.subject for check in CHECKS for finding in check()}

    assert {"python", "cores", "memory", "shared memory", "open files", "pyarrow"} <= subjects


def test_a_control_group_larger_than_the_machine_is_no_limit():
    assert cgroup_limit(total=0) is None
