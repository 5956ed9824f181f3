"""How often a document is in the output."""

from gristmill.stages.mixing.sample_by_bucket import SampleByBucket

__all__ = ["SampleByBucket"]
