"""Tests of one `xdist_group` run in one process, as `--dist loadgroup` promises.

pytest-xdist 3.8 tells its scheduler the group by writing it into a field that pytest 9.2 no longer reads, and nothing
says so: two processes then start a Ray each. Here the name arrives where it is read. With other versions of either
there is nothing to do.
"""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for item in items:
        grouped = getattr(item, "_nodeid", item.nodeid)
        if grouped != item.nodeid:
            item._id = type(item.id).parse(grouped)
