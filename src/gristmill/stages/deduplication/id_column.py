"""`id_column`: the ids of a batch's documents, straight from its JSON lines where they are strings."""

import numpy as np
import pyarrow as pa

from gristmill.stages.text.text_column import unparsed_texts
from gristmill.tasks import DocumentBatch
from gristmill.tasks.text_columns import from_bytes_and_offsets


def id_column(batch: DocumentBatch, name: str) -> pa.ChunkedArray:
    """Return what `batch.column` returns, without making a Python object of each id."""
    texts = unparsed_texts(batch, name)
    if texts is None or texts.is_null.all():
        return batch.column(name)
    offsets = np.append(texts.starts, texts.stops[-1:])  # texts of lines lie end to end
    return pa.chunked_array([from_bytes_and_offsets(texts.data, offsets, ~texts.is_null)])
