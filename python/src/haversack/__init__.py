"""Anthropic's memory tool on plain files that Haversack keeps and carries.

`HaversackMemoryTool` goes into the `tools` of `client.beta.messages.tool_runner`, `AsyncHaversackMemoryTool` into those of the
asynchronous client.
"""

from ._program import ProgramNotFoundError
from ._tools import AsyncHaversackMemoryTool, HaversackMemoryTool

__all__ = ["AsyncHaversackMemoryTool", "HaversackMemoryTool", "ProgramNotFoundError"]
