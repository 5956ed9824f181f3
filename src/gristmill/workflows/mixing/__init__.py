"""Mix documents of several sources, each as often as its weight says."""

from gristmill.workflows.mixing.mix_workflow import MixWorkflow
from gristmill.workflows.mixing.mixture import MixSource, Mixture, Target

__all__ = ["MixSource", "MixWorkflow", "Mixture", "Target"]
