"""Stages that ask a language model: scores, rewritten texts, questions and answers."""
