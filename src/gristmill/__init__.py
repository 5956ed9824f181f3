"""gristmill streams raw data through curation stages until it is fit to train on.

Importing this package starts nothing and sets no environment. The classes live where users of this kind of tool expect
them: `gristmill.pipeline.Pipeline`, `gristmill.stages.base.ProcessingStage`, `gristmill.tasks.DocumentBatch`.
"""

__version__ = "0.1.0"
