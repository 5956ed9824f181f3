"""`TaskStory`: what happened to one task, in words, told from the steps of a replay."""

from collections.abc import Iterator

from gristmill.engine import commands as c
from gristmill.engine import events as e
from gristmill.engine.commands import Care, Command
from gristmill.engine.events import Event
from gristmill.engine.faults import Fault
from gristmill.engine.replay import Step


class TaskStory:
    """Follows one item through all its attempts. `item_ids` are those of all tasks met, for when one is misspelt."""

    def __init__(self, item_id: str) -> None:
        self.item_id = item_id
        self.item_ids: dict[str, None] = {}
        self._tasks: set[int] = set()  # numbers of its attempts
        self._worker: int | None = None  # has it now

    def follow(self, step: Step) -> Iterator[tuple[int, str]]:
        """Yield (number of the event, sentence) for everything in this step that is about the item."""
        for offset, event in enumerate(step.events):
            for sentence in self._heard(event):
                yield step.first_event + offset, sentence
        last = step.first_event + len(step.events) - 1
        for command in step.commands:
            for sentence in self._told(command):
                yield last, sentence

    def _heard(self, event: Event) -> Iterator[str]:
        match event:
            case e.SourceListed(items):
                self.item_ids.update(dict.fromkeys(item.name for item in items))
                yield from (f"listed, {i.num_bytes} bytes" for i in items if i.name == self.item_id)
            case e.ListedAgain(item) if item.name == self.item_id:
                yield "listed again: what had been made from it was on a machine that is lost"
            case e.TaskEmitted(worker, task, output):
                yield from self._made(worker, task, (output,))
            case e.TaskFinished(worker, task, outputs):
                yield from self._made(worker, task, outputs)
                if task in self._tasks:
                    self._worker = None
                    yield f"finished by worker {worker} after {event.useful_s:.3f} s of work, {len(outputs)} outputs"
            case e.TaskStepped(worker, task) if task in self._tasks:
                yield f"moved on to its next step on worker {worker}"
            case e.TaskRaised(worker, task) if task in self._tasks:
                self._worker = None
                kind = "an error" if event.fault is Fault.DOCUMENT else f"an error ({event.fault.value})"
                yield f"{kind} in stage {event.stage} on worker {worker}: {event.error}"
            case e.WorkerLost(worker, cause) if worker == self._worker:
                self._worker = None
                yield f"lost with worker {worker}{_place(event.crumb)}: {cause}"
            case e.WorkerExited(worker) if worker == self._worker:
                self._worker = None
                yield f"given back by worker {worker}"
            case _:
                pass

    def _made(self, worker: int, task: int, outputs: tuple[e.Output, ...]) -> Iterator[str]:
        self.item_ids.update(dict.fromkeys(output.item_id for output in outputs))
        for output in outputs:
            if output.item_id == self.item_id:
                yield f"made by worker {worker} as output {output.index} of task {task}, {output.num_bytes} bytes"

    def _told(self, command: Command) -> Iterator[str]:
        match command:
            case c.SendTask(worker, calls):
                for assignment in (a for call in calls for a in call if a.item_id == self.item_id):
                    self._tasks.add(assignment.task)
                    self._worker = worker
                    yield f"sent to worker {worker} as task {assignment.task}{_circumstances(assignment)}"
            case c.Commit(root, name) if name == self.item_id:
                yield f"complete, with all that was made from it: root {root} is committed"
            case c.Commit(root, _, outputs) if any(o.item_id == self.item_id for o in outputs):
                yield f"committed as an output of root {root}"
            case c.Warn(worker, _, item_id, running_s) if item_id == self.item_id:
                yield f"the user is warned: busy on worker {worker} for {running_s:.0f} s"
            case _:
                pass


def _place(crumb: e.Crumb | None) -> str:
    if crumb is None:
        return ""
    rows = crumb.end_row - crumb.first_row
    return f" in document {crumb.first_row}" if rows == 1 else f" in one of {rows} documents"


def _circumstances(assignment: c.Assignment) -> str:
    parts = [f"attempt {assignment.attempt + 1}"] if assignment.attempt else []
    parts += [f"with care {assignment.care.name}"] if assignment.care is not Care.NORMAL else []
    parts += [f"without {len(assignment.condemned)} condemned documents"] if assignment.condemned else []
    return "".join(f", {part}" for part in parts)
