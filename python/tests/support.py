"""A machine of its own for each test, a program that misbehaves on demand, and an API that answers from a script."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROGRAM = os.environ["HAVERSACK_PROGRAM"]
PROJECT = Path(__file__).resolve().parents[2]

#: How long a test waits for something that another process does before it fails.
PATIENCE_SECONDS = 60.0

LISTING = (
    "Here're the files and directories up to 2 levels deep in /memories, "
    "excluding hidden items and node_modules:\n4.0K\t/memories"
)
UNKNOWN = (
    "Error: It is unknown whether this command was carried out: the memory stopped before it answered. "
    "View what is there before you try again."
)


def view(path: str) -> dict[str, Any]:
    return {"command": "view", "path": path}


def create(path: str, text: str) -> dict[str, Any]:
    return {"command": "create", "path": path, "file_text": text}


def replace(path: str, old: str, new: str) -> dict[str, Any]:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"it did not happen: {what}")
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # An orphan without a parent that collects it stays in the list of processes.
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self/stat").exists()


class MachineTest(unittest.TestCase):
    """A test with an empty home and a scrubbed environment."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.addCleanup(self.wait_for_programs_behind_stubs)
        self.base = Path(directory.name).resolve()
        self.home = self.base / "home"
        self.environment = self.scrubbed()

    def wait_for_programs_behind_stubs(self) -> None:
        """Waits until every program that a stub started has ended: it may still write in the home."""
        pids = self.base / "stub.pids"
        for pid in map(int, pids.read_text().split()) if pids.exists() else ():
            wait_until("the program behind the stub ends", lambda pid=pid: not is_running(pid))  # type: ignore[misc]

    def scrubbed(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH") if name in os.environ}
        return {
            **kept,
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.base),
            "TMPDIR": str(self.base),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def options(self, **more: Any) -> dict[str, Any]:
        return {"home": self.home, "program": PROGRAM, "environment": self.environment, **more}

    def haversack(self, *arguments: str, **variables: str) -> str:
        done = subprocess.run(
            [PROGRAM, "--home", str(self.home), *arguments],
            env={**self.environment, **variables},
            cwd=self.base,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done.stdout

    def read(self, name: str) -> str:
        return (self.home / "memory" / name).read_text(encoding="utf-8")

    def stub(self) -> str:
        """Returns a program that passes everything on to the real one, and does what the path of a command says."""
        path = self.base / "stub"
        python, script = shlex.quote(sys.executable), shlex.quote(str(Path(__file__).with_name("stub.py")))
        path.write_text(f'#!/bin/sh\nexec {python} {script} {shlex.quote(PROGRAM)} "$@"\n')
        path.chmod(0o755)
        return str(path)


class ScriptedApi:
    """Stands in for the API: each request is answered with the next turn, and kept."""

    def __init__(self, turns: list[list[dict[str, Any]]]) -> None:
        self.requests: list[dict[str, Any]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                number = len(api.requests)
                api.requests.append(request)
                content = turns[number] if number < len(turns) else [{"type": "text", "text": "(no more turns)"}]
                calls = any(block["type"] == "tool_use" for block in content)
                body = json.dumps(
                    {
                        "id": f"msg_{number}",
                        "type": "message",
                        "role": "assistant",
                        "model": request["model"],
                        "content": content,
                        "stop_reason": "tool_use" if calls else "end_turn",
                        "stop_sequence": None,
                        "usage": {"input_tokens": 1, "output_tokens": 1},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> ScriptedApi:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def results(self) -> list[dict[str, Any]]:
        """Returns the results of tools that were sent back, in order; a client may send the whole conversation each time."""
        messages = [message for request in self.requests for message in request["messages"]]
        blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
        return list({block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}.values())


def uses(number: int, command: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
