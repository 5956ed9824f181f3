"""A run that is killed again and again: where its program waits (`tests.fault.crawl.wait_here`), or its server does."""

import contextlib
import os
import signal

import psutil
from tests.fault.processes import wait_until


class Story:
    """One run, killed again and again."""

    def __init__(self, scene, work, module, *arguments):
        self.scene, self.work, self.command = scene, work, ("-m", module, *arguments, work)
        self.work.mkdir()
        self.program = None

    def start(self):
        self.program = self.scene.start(*self.command)

    def wait(self, condition, what):
        found = wait_until(condition, what=what, program=self.program, deadline_s=120)
        assert found, f"the program ended before: {what}\n{self.program.communicate()}"
        return found

    def kill_driver(self):
        self.program.kill()
        self.program.wait()
        wait_until(lambda: not self.scene.processes(), what="its workers end", deadline_s=120)

    def kill_worker_at(self, phase):
        """Kill the worker that waits in a phase, and wait until another one has come there."""
        at = self.work / f"at-{phase}"
        pid = int(self.wait(lambda: at.exists() and at.read_text(), f"a worker at {phase}"))
        at.unlink()
        os.kill(pid, signal.SIGKILL)
        self.wait(lambda: at.exists() and at.read_text() not in ("", str(pid)), f"another worker at {phase}")
        at.unlink()

    def kill_worker_that_writes(self, path):
        """Kill the worker that has a file open; the driver has to go on without it."""
        self._kill_workers(lambda process: str(path) in {file.path for file in process.open_files()}, path)

    def kill_workers_connected_to(self, port):
        """Kill the workers that wait for a server on this machine, or did; the driver has to go on without them."""
        self._kill_workers(
            lambda process: any(found.raddr and found.raddr.port == port for found in process.net_connections("tcp")),
            f"127.0.0.1:{port}",
        )

    def _kill_workers(self, is_it, what):
        def found():
            made = []
            for process in self.scene.processes():
                with contextlib.suppress(psutil.Error):
                    made += [process] if is_it(process) else []
            return made

        workers = self.wait(found, f"a worker with {what}")
        assert self.program.pid not in {worker.pid for worker in workers}
        for worker in workers:
            worker.kill()

    def kill_in(self, phases):
        """In each phase kill a worker, and then the driver while another worker waits there."""
        for phase in phases:
            hold, at = self.work / f"hold-{phase}", self.work / f"at-{phase}"
            hold.touch()
            self.start()
            self.kill_worker_at(phase)
            self.wait(at.exists, f"a worker at {phase} again")
            self.kill_driver()
            hold.unlink()
            at.unlink()
