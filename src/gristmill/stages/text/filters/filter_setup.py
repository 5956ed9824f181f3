"""Getting filters ready: fetching what they need once per machine, loading it once per worker."""

from collections.abc import Sequence

from gristmill.stages.text.filters.document_filter import DocumentFilter


def wants_node_setup(judges: Sequence[object]) -> bool:
    """Whether some filter has a model or the like to look for."""
    check = DocumentFilter.model_check_or_download
    return any(isinstance(j, DocumentFilter) and type(j).model_check_or_download is not check for j in judges)


def set_up_node(judges: Sequence[object]) -> None:
    """Let every filter see to its files."""
    for judge in judges:
        if isinstance(judge, DocumentFilter):
            judge.model_check_or_download()


def set_up_worker(judges: Sequence[object]) -> None:
    """Let every filter load what it works with."""
    for judge in judges:
        if isinstance(judge, DocumentFilter):
            judge.load_model()
            judge.load_tokenizer()
