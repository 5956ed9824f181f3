"""Which options reach which store: of all a run writes, only a writer's own directory has `storage_options` given."""

from collections.abc import Callable, Mapping

from gristmill.engine.plan import Plan
from gristmill.storage.file_system import StorageOptions, is_url
from gristmill.storage.remote_file_system import CREATES

OptionsOf = Callable[[str], StorageOptions]
_NONE: Mapping[str, object] = {}


def can_hold_runs(url: str) -> bool:
    """Whether a run directory may be on a store like that one. Whether its server does its part, the run finds out."""
    return url.partition("://")[0].lower() in CREATES


def environment_only(path: str) -> StorageOptions:
    """Options of a run without writers on stores."""
    del path
    return _NONE


def store_options(plan: Plan) -> OptionsOf:
    """Return what gives the options for a path of a run.

    Below a writer's directory they are the writer's. Rejects and a run directory elsewhere are reached like the first
    writer's directory of the same scheme, else as the environment says.
    """
    stages = [stage for group in plan.groups for stage in group.stages]
    known = [(path, stage.output_options()) for stage in stages if (path := stage.output_directory()) and is_url(path)]

    def of(path: str) -> StorageOptions:
        if not is_url(path):
            return _NONE
        below = [options for directory, options in known if f"{path}/".startswith(f"{directory.rstrip('/')}/")]
        scheme = path.partition("://")[0]
        alike = [options for directory, options in known if directory.partition("://")[0] == scheme]
        return next(iter([*below, *alike]), _NONE)

    return of
