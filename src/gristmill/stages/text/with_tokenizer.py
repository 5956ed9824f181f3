"""`WithTokenizer`: what stages that open a tokenizer have in common, whatever they do with it.

Everything about models is imported where it is used: a program that writes other files does not load it.
"""

from typing import TYPE_CHECKING, ClassVar

from gristmill.stages.worker_info import NodeInfo, WorkerMetadata

if TYPE_CHECKING:
    from gristmill.models.runtime import ModelSource
    from gristmill.models.weights import Presence
    from gristmill.stages.base import AnyStage

    _Base = AnyStage
else:
    _Base = object


class WithTokenizer(_Base):
    """Comes before the stage's own base. The stage has `cache_dir` and `offline`, and sets `_revision` to None."""

    tokenizer_parameter: ClassVar[str] = "model_identifier"  # the one that says which tokenizer it is

    cache_dir: str | None
    offline: bool | None
    _revision: str | None

    def source(self) -> "ModelSource":
        """Which tokenizer it is."""
        from gristmill.models.runtime import ModelSource

        place = (getattr(self, self.tokenizer_parameter), self.cache_dir, self._revision)
        return ModelSource(*place, offline=self.offline, files="tokenizer", who=self.called())

    def called(self) -> str:
        """What messages call the stage."""
        return self.name

    def check_ready(self) -> None:
        self.look_for_tokenizer()

    def look_for_tokenizer(self) -> "Presence":
        """Return where it is, or what has to be downloaded; raise if it cannot be had. Workers take this revision."""
        from gristmill.stages.text.models.files import tokenizer_ready

        found = tokenizer_ready(self.source())
        self._revision = found.revision
        return found

    def get_config(self) -> dict[str, object]:
        from gristmill.stages.text.models.files import NOT_CONTENT

        given = {name: value for name, value in super().get_config().items() if name not in NOT_CONTENT}
        return {**given, "revision": self._revision}

    def wants_node_setup(self) -> bool:
        from gristmill.stages.text.models.files import is_from_hub

        return is_from_hub(self.source())

    def setup_on_node(self, node_info: NodeInfo | None = None, worker_metadata: WorkerMetadata | None = None) -> None:
        from gristmill.stages.text.models.files import download

        download(self.source())

    def make_paths_absolute(self) -> None:
        from gristmill.stages.text.models.files import make_absolute

        super().make_paths_absolute()
        make_absolute(self)
