"""Calls, one at a time, to one process that is started when it is needed.

A process that ended between two calls is replaced, once for each call. A call whose answer was lost is never repeated: nobody knows
whether it was carried out, and the model is told so.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import weakref

from anthropic.lib.tools import ToolError

from ._process import Answer, NoAnswer, NotSent, Process, log
from ._program import Program

#: How much of what the program said about its failure is passed on, in characters.
SHOWN_CHARACTERS = 1000

#: How often memory is looked at again while it is cleared and others go on writing.
CLEARING_ROUNDS = 5

#: What the process answers without doing anything. Asked first: a process that cannot start is told from one that died at work.
GREETING = b"\n"


class GivenUp(Exception):
    """Whoever made the call does not wait for it any more."""


class Call:
    """One call, which another thread can give up."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._given_up = False
        self._process: Process | None = None

    def is_given_up(self) -> bool:
        with self._mutex:
            return self._given_up

    def talk_to(self, process: Process) -> None:
        """Notes which process is at work on it."""
        with self._mutex:
            self._process = process
            if self._given_up:
                raise GivenUp

    def finish(self) -> None:
        """Notes that it came to an end: whoever gives it up now is too late."""
        with self._mutex:
            self._process = None
            if self._given_up:
                raise GivenUp

    def give_up(self) -> None:
        """Ends the process that is at work on it: an answer that nobody waits for must not be taken for that of the next call."""
        with self._mutex:
            self._given_up = True
            if self._process is not None:
                self._process.signal_end()


class Bridge:
    """The process, and whoever waits to talk to it."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._process: Process | None = None
        _bridges.add(self)

    def ask(self, command: object, call: Call | None = None) -> Answer:
        """Passes on a command as the model sent it."""
        call = call or Call()
        line = json.dumps(command, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if call.is_given_up():
                raise GivenUp
            try:
                answer = self._exchange(line, call)
                # It may have answered just before it was ended.
                call.finish()
                return answer
            except BaseException:
                # Interrupted, given up or broken: ignore a late answer.
                self._drop()
                raise

    def close(self) -> None:
        """Lets a call under way finish, and ends the process. The next call starts another."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.end()

    def abandon(self) -> None:
        """Ends the process when nobody can make calls any more."""
        self._drop()

    def clear(self) -> str:
        """Deletes everything; what others write meanwhile may stay."""
        for _ in range(CLEARING_ROUNDS):
            names, odd = self._listing()
            if not names and odd:
                raise ToolError(f"Error: Memory was cleared except for what Haversack leaves alone: {', '.join(odd)}")
            if not names:
                return "All memory cleared"
            for name in names:
                answer = self.ask({"command": "delete", "path": f"/memories/{name}"})
                # Another process may have deleted it.
                if answer.is_error and name in self._listing()[0]:
                    raise ToolError(answer.content)
        raise ToolError("Error: Memory was not cleared: others go on writing to it")

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        process = self._process
        return None if process is None or process.has_ended() else process.pid

    def _exchange(self, line: bytes, call: Call) -> Answer:
        process = self._running(call)
        try:
            process.send(line)
        except NotSent:
            log.info("haversack memory-tool had ended, and is started again")
            self._drop()
            process = self._running(call)
            try:
                process.send(line)
            except NotSent as error:
                raise self._not_done(process) from error
        try:
            return process.receive()
        except NoAnswer as error:
            self._drop()
            call.finish()
            log.error("haversack memory-tool did not answer a command: %s", process.why_ended())
            raise ToolError(
                "Error: It is unknown whether this command was carried out: the memory stopped before it answered. "
                "View what is there before you try again."
            ) from error

    def _running(self, call: Call) -> Process:
        """Returns a process that answers."""
        if self._process is not None and self._process.has_ended():
            log.info("haversack memory-tool had ended, and is started again")
            self._drop()
        if self._process is not None:
            call.talk_to(self._process)
            return self._process
        try:
            process = self._process = Process(self._program)
        except OSError as error:
            log.error("haversack memory-tool did not start: %s", error)
            raise ToolError(f"Error: The command was not carried out: the memory did not start: {error}") from error
        call.talk_to(process)
        try:
            process.send(GREETING)
            process.receive()
        except (NotSent, NoAnswer) as error:
            call.finish()
            raise self._not_done(process) from error
        return process

    def _not_done(self, process: Process) -> ToolError:
        self._drop()
        why = process.why_ended()
        log.error("haversack memory-tool did not start: %s", why)
        return ToolError(
            f"Error: The command was not carried out: the memory did not start: {why[:SHOWN_CHARACTERS]}"
        )

    def _drop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _listing(self) -> tuple[list[str], list[str]]:
        """Returns what is at the top of the memory, and what of it is not Haversack's."""
        listing = subprocess.run(
            self._program.arguments("ls", "--json"),
            env=self._program.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if listing.returncode != 0:
            why = listing.stderr.decode(errors="replace")[:SHOWN_CHARACTERS]
            raise ToolError(f"Error: Memory was not cleared: {why}")
        found = json.loads(listing.stdout)
        return [entry["path"] for entry in found["entries"]], [odd["name"] for odd in found["odd"]]

    def _after_fork(self) -> None:
        """The process belongs to the parent, and so did whoever held the lock."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.forget()


_bridges: weakref.WeakSet[Bridge] = weakref.WeakSet()


def _after_fork() -> None:
    for bridge in list(_bridges):
        bridge._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
