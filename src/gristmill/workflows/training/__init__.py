"""Train a classifier on your own documents: `TrainClassifierWorkflow`."""

from gristmill.workflows.training.train_classifier import TrainClassifierWorkflow

__all__ = ["TrainClassifierWorkflow"]
