"""`NumberTask`: a task of one number, for tests that ask a worker something."""

from gristmill.tasks import Task


class NumberTask(Task[int]):
    """A number."""

    @property
    def num_items(self):
        return 1

    def validate(self):
        return True
