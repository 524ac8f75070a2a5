"""Anthropic's memory tool on plain files that Haversack keeps and carries.

`HaversackMemoryTool` goes into the `tools` of `client.beta.messages.tool_runner`, `AsyncHaversackMemoryTool` into those of the
asynchronous client. Both need the SDK: `pip install "haversack[anthropic]"`. The program `haversack` comes with this package and needs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._program import ProgramNotFoundError

if TYPE_CHECKING:
    from ._tools import AsyncHaversackMemoryTool, HaversackMemoryTool

__all__ = ["AsyncHaversackMemoryTool", "HaversackMemoryTool", "ProgramNotFoundError"]


def __getattr__(name: str) -> object:
    """Imports the tools when they are first used, because the SDK is optional."""
    if name not in ("AsyncHaversackMemoryTool", "HaversackMemoryTool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import _tools
    except ModuleNotFoundError as error:
        if error.name not in ("anthropic", "anyio"):
            raise
        raise ModuleNotFoundError(
            f'{name} needs Anthropic\'s SDK: pip install "haversack[anthropic]"', name=error.name
        ) from error
    return getattr(_tools, name)
