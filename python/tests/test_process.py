"""The process behind a tool: started late, replaced when it died, never out of step."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings
from functools import partial
from typing import Any
from unittest.mock import patch

from anthropic.lib.tools import ToolError
from support import LISTING, PROGRAM, UNKNOWN, MachineTest, create, is_running, replace, view, wait_until

from haversack import AsyncHaversackMemoryTool, HaversackMemoryTool, ProgramNotFoundError
from haversack._bridge import Call, GivenUp
from haversack._process import Process

NOTES = "/memories/notes.md"

#: Edits one file as often as it is told to, each time in a line of its own.
EDITS = """
import sys
from haversack import HaversackMemoryTool

program, home, name = sys.argv[1:]
with HaversackMemoryTool(program=program, home=home) as tool:
    tool.call({"command": "view", "path": "/memories/notes.md"})
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(100):
        new = f"{name} {number}\\nend"
        tool.call({"command": "str_replace", "path": "/memories/notes.md", "old_str": "end", "new_str": new})
"""


def has_ended(pid: int) -> bool:
    return not is_running(pid)


def pid_of(tool: HaversackMemoryTool | AsyncHaversackMemoryTool) -> int:
    pid = tool._bridge.pid
    assert pid is not None
    return pid


class ProcessTest(MachineTest):
    def setUp(self) -> None:
        super().setUp()
        # The message of a process that dies on purpose is not needed here.
        logging.getLogger("haversack").setLevel(logging.CRITICAL)
        self.addCleanup(logging.getLogger("haversack").setLevel, logging.NOTSET)

    def tool(self, **options: Any) -> HaversackMemoryTool:
        tool = HaversackMemoryTool(**self.options(**options))
        self.addCleanup(tool.close)
        return tool

    def noted(self) -> list[str]:
        log = self.base / "stub.log"
        return log.read_text().split("\n") if log.exists() else []

    def assert_told(self, text: str, tool: HaversackMemoryTool, command: object) -> None:
        with self.assertRaises(ToolError) as raised:
            tool.call(command)
        self.assertEqual(raised.exception.content, text)


class Life(ProcessTest):
    def test_it_starts_with_the_first_call_and_stays(self) -> None:
        tool = self.tool()
        self.assertIsNone(tool._bridge.pid)
        self.assertFalse(self.home.exists(), "nothing is made before it is needed")
        tool.call(view("/memories"))
        pid = pid_of(tool)
        tool.call(create(NOTES, "a"))
        self.assertEqual(pid_of(tool), pid)
        tool.close()
        self.assertFalse(is_running(pid))
        tool.close()
        tool.call(view(NOTES))
        self.assertNotEqual(pid_of(tool), pid)

    def test_it_ends_with_the_block(self) -> None:
        with contextlib.suppress(ZeroDivisionError), self.tool() as tool:
            tool.call(view("/memories"))
            pid = pid_of(tool)
            raise ZeroDivisionError
        self.assertFalse(is_running(pid))

    def test_it_ends_with_the_tool(self) -> None:
        for kind in (HaversackMemoryTool, AsyncHaversackMemoryTool):
            tool = kind(**self.options())
            answer = tool.call(view("/memories"))
            if asyncio.iscoroutine(answer):
                asyncio.run(answer)
            pid = pid_of(tool)
            self.assertTrue(is_running(pid))
            del tool, answer
            gc.collect()
            self.assertFalse(is_running(pid))

    def test_it_ends_with_the_program_that_forgot_it(self) -> None:
        script = (
            "import os, sys; from haversack import HaversackMemoryTool\n"
            "tool = HaversackMemoryTool(program=sys.argv[1], home=sys.argv[2])\n"
            "tool.call({'command': 'view', 'path': '/memories'}); print(tool._bridge.pid, flush=True)\n"
            "os.kill(os.getpid(), 9) if sys.argv[3] == 'killed' else None\n"
        )
        for how in ("left", "killed"):
            command = [sys.executable, "-c", script, PROGRAM, str(self.home), how]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
            self.assertEqual(done.stderr, "")
            pid = int(done.stdout)
            wait_until("the process ends", partial(has_ended, pid))

    def test_a_missing_program_is_told_at_once(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"program": "/none/haversack"}, "there is no program at /none/haversack"),
            ({"program": "no-such-program"}, "there is no `no-such-program` on the PATH"),
            ({"program": None}, "there is no `haversack` on the PATH"),
        ]
        for options, where in cases:
            for kind in (HaversackMemoryTool, AsyncHaversackMemoryTool):
                with self.assertRaises(ProgramNotFoundError) as raised:
                    kind(**self.options(**options))
                cure = "install Haversack, or say where its program is, with program=… or the variable HAVERSACK_PROGRAM"
                self.assertEqual(str(raised.exception), f"{where}: {cure}")

    def test_the_program_is_found(self) -> None:
        on_path = {**self.environment, "PATH": os.path.dirname(PROGRAM)}
        named = {**self.environment, "HAVERSACK_PROGRAM": PROGRAM}
        for environment in (on_path, named):
            tool = self.tool(program=None, environment=environment)
            self.assertEqual(tool.call(view("/memories")), LISTING)
            process = tool._bridge._process
            self.assertTrue(process is not None and not process._said, "it has nothing to complain of")

    def test_a_program_that_went_away_is_told(self) -> None:
        program = self.base / "haversack"
        program.symlink_to(PROGRAM)
        tool = self.tool(program=program)
        program.unlink()
        with self.assertRaisesRegex(ToolError, "^Error: The command was not carried out: the memory did not start: .*No such file"):
            tool.call(view("/memories"))
        program.symlink_to(PROGRAM)
        self.assertEqual(tool.call(view("/memories")), LISTING)

    def test_why_it_did_not_start_is_told(self) -> None:
        self.home.mkdir()
        (self.home / "config.toml").write_text("[memory-tool]\nview-character = 1\n")
        with self.assertRaisesRegex(ToolError, r"(?s)was not carried out: the memory did not start: exit status 1.*view-characters"):
            self.tool().call(view("/memories"))
        with self.assertRaisesRegex(ToolError, "was not carried out: the memory did not start"):
            self.tool(program="cat").call(view("/memories"))

    def test_agent_and_session_reach_it(self) -> None:
        path = "/memories/echo"
        environment = {**self.environment, "HAVERSACK_AGENT": "of the shell"}
        tool = self.tool(program=self.stub(), environment=environment, agent="scout", session="s-1")
        told = json.loads(str(tool.call(view(path))))[1]
        self.assertEqual(told, {"HAVERSACK_AGENT": "scout", "HAVERSACK_SESSION": "s-1"})
        told = json.loads(str(self.tool(program=self.stub(), environment=environment).call(view(path))))[1]
        self.assertEqual(told, {"HAVERSACK_AGENT": "of the shell"})


class Deaths(ProcessTest):
    def test_between_calls(self) -> None:
        tool = self.tool()
        tool.call(create(NOTES, "0\n"))
        for number in range(20):
            pid = pid_of(tool)
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            # Half of the time it looks alive until it is written to.
            unseen = patch.object(Process, "has_ended", return_value=False) if number % 2 else contextlib.nullcontext()
            with unseen:
                tool.call(replace(NOTES, f"{number}\n", f"{number + 1}\n"))
            self.assertNotEqual(pid_of(tool), pid)
        self.assertEqual(self.read("notes.md"), "20\n")

    def test_in_the_middle_of_a_call(self) -> None:
        tool = self.tool(program=self.stub())
        for name, kept in (("die-before.md", False), ("die-after.md", True)):
            path = f"/memories/{name}"
            self.assert_told(UNKNOWN, tool, create(path, "once\n"))
            self.assertEqual((self.home / "memory" / name).exists(), kept)
            self.assertEqual(self.noted().count(name), 1, "it is not repeated")
            other = f"/memories/{kept}.md"
            self.assertEqual(tool.call(create(other, "")), f"File created successfully at: {other}")

    def test_nonsense_is_no_answer(self) -> None:
        tool = self.tool(program=self.stub())
        self.assert_told(UNKNOWN, tool, create("/memories/nonsense.md", "x"))
        self.assertEqual(tool.call(view("/memories")), LISTING)

    def test_killed_while_it_works(self) -> None:
        tool = self.tool(program=self.stub())
        tool.call(view("/memories"))
        told: list[object] = []

        def call() -> None:
            try:
                tool.call(create("/memories/hang", "x"))
            except ToolError as error:
                told.append(error.content)

        thread = threading.Thread(target=call)
        thread.start()
        wait_until("it is at work", lambda: "hang" in self.noted())
        os.kill(pid_of(tool), signal.SIGKILL)
        thread.join()
        self.assertEqual(told, [UNKNOWN])
        self.assertEqual(tool.call(view("/memories")), LISTING)

    def test_an_interrupted_call_leaves_nothing_behind(self) -> None:
        tool = self.tool(program=self.stub())
        tool.call(view("/memories"))
        pid = pid_of(tool)

        def interrupt() -> None:
            wait_until("it is at work", lambda: "hang" in self.noted())
            os.kill(os.getpid(), signal.SIGINT)

        # Tests in the background may run with interrupts ignored.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, handler)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            tool.call(view("/memories/hang"))
            wait_until("the interrupt arrives", lambda: False)
        thread.join()
        self.assertFalse(is_running(pid))
        self.assertEqual(tool.call(view("/memories")), LISTING)

    @unittest.skipUnless(hasattr(os, "fork"), "this system does not fork")
    def test_a_fork_has_a_process_of_its_own(self) -> None:
        tool = self.tool(program=self.stub())
        tool.call(create(NOTES, "mine\n"))
        pid = pid_of(tool)
        # Another thread is in the middle of a call, and is not copied.
        hanging = threading.Thread(target=self.assert_told, args=(UNKNOWN, tool, view("/memories/hang")))
        hanging.start()
        wait_until("it is at work", lambda: "hang" in self.noted())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            ok = False
            try:
                signal.alarm(60)
                answer = tool.call(replace(NOTES, "mine", "ours"))
                ok = "ours" in str(answer) and pid_of(tool) != pid
                tool.close()
            finally:
                os._exit(0 if ok else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(pid_of(tool), pid, "the parent's is left alone")
        os.kill(pid, signal.SIGKILL)
        hanging.join()
        self.assertIn("ours", str(tool.call(view(NOTES))))


class ManyAtOnce(ProcessTest):
    def test_sixteen_threads_on_one_tool(self) -> None:
        tool = self.tool()
        tool.call(create(NOTES, "end\n"))
        pid, failed = pid_of(tool), []

        def work(name: int) -> None:
            for number in range(10):
                path = f"/memories/{name}-{number}.md"
                tool.call(replace(NOTES, "end", f"{name} {number}\nend"))
                if f"created successfully at: {path}" not in str(tool.call(create(path, f"{name} {number}"))):
                    failed.append(path)
                if not str(tool.call(view(path))).endswith(f"     1\t{name} {number}"):
                    failed.append(path)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(pid_of(tool), pid, "one process did it all")
        expected = {f"{name} {number}" for name in range(16) for number in range(10)} | {"end"}
        lines = self.read("notes.md").splitlines()
        self.assertEqual((len(lines), set(lines)), (161, expected))

    def test_two_processes_keep_every_edit(self) -> None:
        self.tool().call(create(NOTES, "end\n"))
        started = [
            subprocess.Popen(
                [sys.executable, "-c", EDITS, PROGRAM, str(self.home), name],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in ("left", "right")
        ]
        for process in started:
            self.assertEqual(process.stdout.readline(), "ready\n")  # type: ignore[union-attr]
        for process in started:
            process.stdin.write("go\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
        for process in started:
            process.communicate()
            self.assertEqual(process.returncode, 0)
        lines = self.read("notes.md").splitlines()
        for name in ("left", "right"):
            own = [line for line in lines if line.startswith(name)]
            self.assertEqual(own, [f"{name} {number}" for number in range(100)])
        self.assertEqual(len(lines), 201)

    def test_closing_waits_for_the_call_under_way(self) -> None:
        tool = self.tool()
        tool.call(create(NOTES, "end\n"))
        done: list[int] = []

        def work() -> None:
            for number in range(50):
                tool.call(replace(NOTES, "end", f"{number}\nend"))
                done.append(number)

        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive():
            tool.close()
        thread.join()
        self.assertEqual(len(done), 50)


class Tasks(ProcessTest):
    def test_many_tasks_on_one_tool(self) -> None:
        async def work(tool: AsyncHaversackMemoryTool, number: int) -> None:
            path = f"/memories/{number}.md"
            await tool.call(create(path, f"{number}"))
            self.assertTrue(str(await tool.call(view(path))).endswith(f"     1\t{number}"))

        async def main() -> None:
            async with AsyncHaversackMemoryTool(**self.options()) as tool:
                await asyncio.gather(*(work(tool, number) for number in range(100)))

        asyncio.run(main())

    def test_one_tool_in_one_loop_after_another(self) -> None:
        tool = AsyncHaversackMemoryTool(**self.options())
        for number in range(3):
            asyncio.run(tool.call(create(f"/memories/{number}.md", "")))
        asyncio.run(tool.close())

    def test_a_cancelled_call_does_not_answer_the_next(self) -> None:
        async def main() -> None:
            async with AsyncHaversackMemoryTool(**self.options(program=self.stub())) as tool:
                await tool.call(create(NOTES, "a\n"))
                pid = pid_of(tool)
                hanging = asyncio.create_task(tool.call(view("/memories/hang")))
                while "hang" not in self.noted():
                    await asyncio.sleep(0.005)
                waiting = asyncio.create_task(tool.call(view(NOTES)))
                never = asyncio.create_task(tool.call(create("/memories/never.md", "")))
                await asyncio.sleep(0.05)
                never.cancel()
                await asyncio.gather(never, return_exceptions=True)
                self.assertTrue(is_running(pid), "a call that only waited ends nobody else's")
                hanging.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await hanging
                self.assertTrue(str(await waiting).endswith("     1\ta\n     2\t"))
                self.assertNotEqual(pid_of(tool), pid)
                self.assertFalse(is_running(pid))
                self.assertFalse((self.home / "memory" / "never.md").exists(), "a call that was given up is not made")

        asyncio.run(main())

    def test_a_call_that_was_given_up_before_its_turn_is_not_made(self) -> None:
        tool = self.tool()
        tool.call(view("/memories"))
        pid, call = pid_of(tool), Call()
        call.give_up()
        with self.assertRaises(GivenUp):
            tool._bridge.ask(create(NOTES, ""), call)
        self.assertEqual(tool.call(view("/memories")), LISTING)
        self.assertEqual(pid_of(tool), pid)

    def test_cancelled_at_any_moment(self) -> None:
        async def main() -> None:
            async with AsyncHaversackMemoryTool(**self.options()) as tool:
                await tool.call(create(NOTES, "0\n"))
                for number in range(90):
                    path = f"/memories/{number}.md"
                    task = asyncio.create_task(tool.call(create(path, "")))
                    await asyncio.sleep(number % 30 / 5000)
                    task.cancel()
                    answer = (await asyncio.gather(task, return_exceptions=True))[0]
                    self.assertIn(str(answer), ("", f"File created successfully at: {path}"))
                    await tool.call(replace(NOTES, f"{number}\n", f"{number + 1}\n"))

        asyncio.run(main())
        self.assertEqual(self.read("notes.md"), "90\n")


if __name__ == "__main__":
    unittest.main()
