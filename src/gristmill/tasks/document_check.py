"""Whether a task is a `DocumentBatch`, answered without loading one: where none was loaded, none can exist."""

import sys
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from gristmill.tasks.document import DocumentBatch

DOCUMENT_MODULE = "gristmill.tasks.document"


def is_document_batch(task: object) -> TypeGuard["DocumentBatch"]:
    """Like `isinstance(task, DocumentBatch)`, for code that runs in every worker."""
    module = sys.modules.get(DOCUMENT_MODULE)
    return module is not None and isinstance(task, module.DocumentBatch)
