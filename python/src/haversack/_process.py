"""A running `haversack memory-tool`: a line of JSON goes in, a line of JSON comes out."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

from ._program import Program

log = logging.getLogger("haversack")

#: How much is taken from the process at a time.
CHUNK_BYTES = 64 * 1024

#: How many of the last lines that it wrote to stderr are kept, to say why it ended.
KEPT_LINES = 20

#: How long a process has to end by itself after its input did.
ENDING_SECONDS = 10.0


class NotSent(Exception):
    """The process did not get the whole line: the command was not carried out."""


class NoAnswer(Exception):
    """The process got the line and did not answer it as it should."""


@dataclass(frozen=True)
class Answer:
    """What the model is told."""

    content: str | list[Any]
    is_error: bool


class Process:
    """A process that was started and has not been asked anything. One thread talks to it at a time; any may end it."""

    def __init__(self, program: Program) -> None:
        # A session of its own: Ctrl-C at the terminal must not end it in the middle of a write. The end of its input does end it.
        self._popen = subprocess.Popen(
            program.arguments("memory-tool"),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=program.environment(),
            start_new_session=True,
        )
        self._received = bytearray()
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        self._listener = threading.Thread(target=_listen, args=(self._popen.stderr, self._said), daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def has_ended(self) -> bool:
        return self._popen.poll() is not None

    def send(self, line: bytes) -> None:
        """Writes a line."""
        assert self._popen.stdin is not None
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._popen.stdin.write(rest) or 0 :]
        except (OSError, ValueError) as error:
            # Its last bytes at least did not arrive, and half a command is none.
            raise NotSent from error

    def receive(self) -> Answer:
        """Waits for the answer to the line that was sent."""
        assert self._popen.stdout is not None
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            try:
                chunk = os.read(self._popen.stdout.fileno(), CHUNK_BYTES)
            except (OSError, ValueError) as error:
                raise NoAnswer from error
            if not chunk:
                raise NoAnswer
            self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return _parse(line)

    def end(self) -> None:
        """Ends its input, waits until it has ended, and ends it if it does not."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        try:
            self._popen.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("haversack memory-tool did not end by itself")
        self.kill()

    def kill(self) -> None:
        """Ends it at once. What it was writing is there whole or not at all."""
        assert self._popen.stdin is not None and self._popen.stdout is not None
        self._popen.kill()
        self._popen.wait()
        self._popen.stdin.close()
        self._popen.stdout.close()

    def signal_end(self) -> None:
        """Lets it end now, for a thread that does not talk to it; whoever does notices, and clears up."""
        self._popen.kill()

    def forget(self) -> None:
        """Lets go of a process that belongs to the process that this one was forked from."""
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            assert pipe is not None
            pipe.close()
        # It is not ours to wait for, and not to be complained of.
        self._popen.returncode = 0

    def why_ended(self) -> str:
        """Returns how it ended and what it said last. Only after `kill`."""
        self._listener.join(ENDING_SECONDS)
        code = self._popen.returncode
        how = f"killed by signal {-code}" if code < 0 else f"exit status {code}"
        return "\n".join([how, *self._said])


def _listen(pipe: Any, said: deque[str]) -> None:
    with pipe:
        rest = b""
        while True:
            try:
                chunk = os.read(pipe.fileno(), CHUNK_BYTES)
            except OSError:
                chunk = b""
            *lines, rest = (rest + chunk).split(b"\n")
            if not chunk and rest:
                lines.append(rest)
            for line in lines:
                text = line.decode(errors="replace")
                said.append(text)
                log.warning("haversack memory-tool: %s", text)
            if not chunk:
                return


def _parse(line: bytes) -> Answer:
    try:
        answer = json.loads(line)
        content, is_error = answer["content"], answer["is_error"]
    except (ValueError, TypeError, KeyError) as error:
        raise NoAnswer from error
    if not isinstance(content, (str, list)) or not isinstance(is_error, bool):
        raise NoAnswer
    return Answer(content, is_error)
