"""What the run directory on a store rests on: of two that create one object, one is told that it came too late."""

import pytest

pytestmark = [pytest.mark.heavy, pytest.mark.slow]


def test_the_second_to_create_an_object_is_refused_and_changes_nothing(store):
    client = store.client()
    client.put_object(Bucket=store.bucket, Key="once", Body=b"first", IfNoneMatch="*")
    with pytest.raises(client.exceptions.ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=store.bucket, Key="once", Body=b"second", IfNoneMatch="*")
    assert store.objects("once") == {"": b"first"}
