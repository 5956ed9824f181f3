"""A shelf knows parcels by numbers that are never used twice."""

import pytest

from gristmill.tasks import FileGroupTask
from gristmill.worker.desk import ParcelShelf
from gristmill.worker.wire import pack


@pytest.fixture
def parcel():
    return pack(FileGroupTask("files", ["a.jsonl"]))


def test_a_parcel_is_found_by_its_number_until_it_is_released(parcel):
    shelf = ParcelShelf()
    number = shelf.put(parcel)

    assert shelf.look(number) is parcel
    shelf.release(number)
    with pytest.raises(KeyError):
        shelf.look(number)


def test_a_number_is_not_used_again_after_its_parcel_has_gone(parcel):
    shelf = ParcelShelf()
    first = shelf.put(parcel)
    shelf.release(first)

    assert shelf.put(parcel) != first


def test_a_final_task_is_unpacked_when_it_is_asked_for(parcel):
    shelf = ParcelShelf()
    get = shelf.keep(shelf.put(parcel))

    assert get().data == ["a.jsonl"]
