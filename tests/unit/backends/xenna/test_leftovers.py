"""A worker ends with the process that started it, even if a thread of it never would."""

import subprocess
import sys

import psutil

CHILD = """
import threading
from gristmill.backends.xenna.leftovers import end_with_parent
threading.Thread(target=threading.Event().wait).start()
end_with_parent()
print("up", flush=True)
"""
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
os._exit(0)
"""


def test_a_worker_whose_parent_is_gone_ends():
    told = subprocess.run([sys.executable, "-c", PARENT, CHILD], capture_output=True, text=True, check=True)
    child = psutil.Process(int(told.stdout)) if psutil.pid_exists(int(told.stdout)) else None

    if child is not None:
        child.wait(timeout=120)
    assert not psutil.pid_exists(int(told.stdout))
