"""Partitions that are made when asked for are those that were put in."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gristmill.stages.file_partitioning import FilePartitioningStage
from gristmill.stages.io.partitions import FilePartitions, whole
from gristmill.storage.paths import FileList

SIZES = st.lists(st.integers(0, 100), min_size=1, max_size=12)


def listed(sizes):
    files = FileList()
    for index, size in enumerate(sizes):
        files.append(f"/in/{index // 3}/{index:02d}.jsonl{'.gz' * (index % 5 == 4)}", size, f"v{index}")
    return files


@st.composite
def grouped(draw):
    """Files, and partitions of them: some split by bytes or row groups, some grouped, in the order of the files."""
    files = listed(draw(SIZES))
    groups, at = [], 0
    while at < len(files):
        how = draw(st.sampled_from(["apart", "together"]))
        entire = whole(files[at])
        if how == "together":
            end = draw(st.integers(at + 1, len(files)))
            groups.append((tuple(map(whole, files[at:end])), None))
            at = end
        else:
            numbers = draw(st.lists(st.lists(st.integers(0, 2**60), max_size=3).map(tuple), min_size=2, max_size=4))
            parts = [replace(entire, part=part, num_bytes=draw(st.integers(0, 2**40))) for part in numbers]
            groups += [((part,), k) for k, part in enumerate(parts)]
            at += 1
    return files, groups


@given(grouped(), st.integers(0, 3), st.integers(1, 3))
def test_what_is_made_is_what_was_put_in(made, first, step):
    files, groups = made
    partitions = FilePartitions("list", files, iter(groups), {"storage_options": {"anon": True}})

    assert [task.slices for task in partitions] == [slices for slices, _ in groups]
    assert [task.data for task in partitions] == [list(dict.fromkeys(s.path for s in slices)) for slices, _ in groups]
    assert {task.reader_config["storage_options"]["anon"] for task in partitions} == {True}
    assert partitions.names == [task.partition_name for task in partitions]
    assert partitions.nbytes == sum(task.nbytes for task in partitions)
    part = partitions[first::step]
    assert part == list(partitions)[first::step]
    assert part.names == list(partitions.names)[first::step]
    assert part.nbytes == sum(task.nbytes for task in part)
    of_part = {s.path: (s.path, s.file_size, s.version) for task in part for s in task.slices}
    assert part.files == list(of_part.values())


def test_a_task_is_its_own_each_time(tmp_path):
    """A worker in this process changes the task it gets; the next attempt must not find that."""
    (tmp_path / "a.jsonl").write_text("{}\n")
    partitions = FilePartitioningStage(str(tmp_path), storage_options={"x": 1}).partitions()
    partitions[0].task_id = "changed"
    partitions[0].reader_config["storage_options"] = "changed"
    partitions[0].data.append("changed")

    assert partitions[0].task_id == ""
    assert partitions[0].reader_config == {"storage_options": {"x": 1}}
    assert partitions[0].data == [str(tmp_path / "a.jsonl")]
