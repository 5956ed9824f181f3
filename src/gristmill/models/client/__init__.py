"""Clients of language models behind a server, and what users of the reference import from here."""

from gristmill.models.client.llm_client import (
    Answer,
    AsyncLLMClient,
    ConversationFormatter,
    GenerationConfig,
    LLMClient,
    Reply,
    RequestFailed,
)

__all__ = [
    "Answer",
    "AsyncLLMClient",
    "ConversationFormatter",
    "GenerationConfig",
    "LLMClient",
    "Reply",
    "RequestFailed",
]
