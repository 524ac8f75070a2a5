"""The tools as the Anthropic SDK knows them."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import anyio.to_thread  # what the SDK itself runs on, asyncio and trio alike
from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from ._bridge import Bridge, Call
from ._process import Answer
from ._program import Program

_Command = (
    BetaMemoryTool20250818ViewCommand
    | BetaMemoryTool20250818CreateCommand
    | BetaMemoryTool20250818StrReplaceCommand
    | BetaMemoryTool20250818InsertCommand
    | BetaMemoryTool20250818DeleteCommand
    | BetaMemoryTool20250818RenameCommand
)

_NAMES = frozenset({"view", "create", "str_replace", "insert", "delete", "rename"})


class HaversackMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory in a Haversack home.

    The commands go to one `haversack memory-tool` process, started with the first of them. Any number of threads may use one tool: they
    take turns. `close`, the end of a `with` block, or the end of the tool itself end the process; a call after `close` starts
    another.
    """

    def __init__(
        self,
        *,
        home: str | os.PathLike[str] | None = None,
        program: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        session: str | None = None,
        environment: Mapping[str, str] | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """Finds the program; nothing is started yet.

        home: the directory that holds everything; without it, that of the command line.
        program: where `haversack` is; without it, what the variable HAVERSACK_PROGRAM says, or the one on the PATH.
        agent, session: who is at work, for the history.
        environment: variables for the process, instead of those of this one.

        Raises ProgramNotFoundError if there is no such program.
        """
        super().__init__(cache_control=cache_control)
        self._bridge = Bridge(
            Program.find(home=home, program=program, agent=agent, session=session, environment=environment)
        )
        self._end = weakref.finalize(self, self._bridge.abandon)

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Answers what the model sent."""
        # Input that is no command goes to the program unchanged, which answers with the right error.
        return super().call(input) if _is_command(input) else _result(self._bridge.ask(input))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return self._do(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return self._do(command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return self._do(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return self._do(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return self._do(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return self._do(command)

    def clear_all_memory(self) -> BetaFunctionToolResultType:
        """Deletes everything in the memory. What was synced before is in the history: `haversack restore --deleted` brings it back."""
        return self._bridge.clear()

    def close(self) -> None:
        """Ends the process, after a call that is under way."""
        self._bridge.close()

    def __enter__(self) -> HaversackMemoryTool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, command: _Command) -> BetaFunctionToolResultType:
        return _result(self._bridge.ask(_as_sent(command)))


class AsyncHaversackMemoryTool(BetaAsyncAbstractMemoryTool):
    """Claude's memory in a Haversack home, for the asynchronous client.

    As `HaversackMemoryTool`, with `async with` and `await tool.close()`. A call that is cancelled while the process is at work on it ends
    the process, so that its answer is not taken for that of the next call; whether it was carried out is not known.
    """

    def __init__(
        self,
        *,
        home: str | os.PathLike[str] | None = None,
        program: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        session: str | None = None,
        environment: Mapping[str, str] | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """Finds the program; nothing is started yet. The options are those of `HaversackMemoryTool`."""
        super().__init__(cache_control=cache_control)
        self._bridge = Bridge(
            Program.find(home=home, program=program, agent=agent, session=session, environment=environment)
        )
        self._end = weakref.finalize(self, self._bridge.abandon)

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """Answers what the model sent."""
        return await super().call(input) if _is_command(input) else await self._ask(input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return await self._do(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return await self._do(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> BetaFunctionToolResultType:
        return await self._do(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return await self._do(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return await self._do(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return await self._do(command)

    async def clear_all_memory(self) -> BetaFunctionToolResultType:
        """Deletes everything in the memory. What was synced before is in the history: `haversack restore --deleted` brings it back."""
        return await anyio.to_thread.run_sync(self._bridge.clear)

    async def close(self) -> None:
        """Ends the process, after a call that is under way."""
        # Bounded, and also to be done when the task that used the tool was cancelled.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._bridge.close)

    async def __aenter__(self) -> AsyncHaversackMemoryTool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _do(self, command: _Command) -> BetaFunctionToolResultType:
        return await self._ask(_as_sent(command))

    async def _ask(self, command: object) -> BetaFunctionToolResultType:
        call = Call()
        try:
            answer = await anyio.to_thread.run_sync(self._bridge.ask, command, call, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            call.give_up()
            raise
        return _result(answer)


def _is_command(input: object) -> bool:
    name = input.get("command") if isinstance(input, Mapping) else None
    return isinstance(name, str) and name in _NAMES


def _as_sent(command: _Command) -> dict[str, Any]:
    """Returns what the model sent: what it left out stays out, and what is wrong in it stays wrong."""
    return command.to_dict(mode="python", warnings=False)


def _result(answer: Answer) -> BetaFunctionToolResultType:
    if answer.is_error:
        raise ToolError(answer.content)
    return answer.content
