"""Memory that a page has used is not asked of the system again for the next page."""

import os
import platform
import resource
import subprocess
import sys

import pytest

SCRIPT = """
import resource
from gristmill.stages.text.html.freed_memory import keep_freed_memory

if {keeps}:
    keep_freed_memory()

def page():
    blocks = [b"x" * (4 << 20) for _ in range(8)]

page()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    page()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keeps, **environment):
    command = [sys.executable, "-c", SCRIPT.format(keeps=keeps)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_memory_is_kept_for_the_next_page_unless_the_environment_says_otherwise():
    pages_of_a_round = 8 * (4 << 20) // resource.getpagesize()

    assert faults(keeps=False) > 10 * pages_of_a_round
    assert faults(keeps=True) < pages_of_a_round
    assert faults(keeps=True, MALLOC_TRIM_THRESHOLD_="131072") > 10 * pages_of_a_round
