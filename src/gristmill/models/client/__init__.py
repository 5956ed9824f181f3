"""Clients of language models behind a server, and what users of NeMo Curator import from here."""

from gristmill.models.client.llm_client import (
    Answer,
    AsyncLLMClient,
    ConversationFormatter,
    GenerationConfig,
    LLMClient,
    Reply,
    RequestFailed,
)
from gristmill.models.client.openai_client import AsyncOpenAIClient, OpenAIClient

__all__ = [
    "Answer",
    "AsyncLLMClient",
    "AsyncOpenAIClient",
    "ConversationFormatter",
    "GenerationConfig",
    "LLMClient",
    "OpenAIClient",
    "Reply",
    "RequestFailed",
]
