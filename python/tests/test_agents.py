"""The example, and two agents, against the real SDK and an API that answers from a script."""

import asyncio
import json
import subprocess
import sys
import unittest
from typing import Any

from anthropic import Anthropic, AsyncAnthropic
from support import LISTING, PROGRAM, PROJECT, MachineTest, ScriptedApi, create, replace, says, uses, view

from haversack import AsyncHaversackMemoryTool, HaversackMemoryTool

PORTS = "/memories/lighthouse/ports.md"

#: What the model says in each turn. Two calls in one turn, errors among them.
TURNS: list[list[dict[str, Any]]] = [
    [says("I look at what I know."), uses(1, view("/memories"))],
    [uses(2, create(PORTS, "staging 5433\n"))],
    [uses(3, replace(PORTS, "5433", "5434")), uses(4, replace(PORTS, "5433", "5435"))],
    [uses(5, {"command": "str_replace", "path": PORTS, "old_str": "staging "})],
    [uses(6, {"command": "forget", "path": PORTS}), uses(7, view("/memories/map.png"))],
    [says("Staging listens on 5434.")],
]

EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"


def result(number: int, content: Any, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content}
    return {**block, "is_error": True} if is_error else block


RESULTS = [
    result(1, f"{LISTING}\n8B\t/memories/map.png"),
    result(2, f"File created successfully at: {PORTS}"),
    result(3, f"{EDITED}     1\tstaging 5434\n     2\t"),
    result(4, f"No replacement was performed, old_str `5433` did not appear verbatim in {PORTS}.", True),
    result(5, f"{EDITED}     1\t5434\n     2\t"),
    result(
        6,
        "Error: Unknown command `forget`; the commands are view, create, str_replace, insert, delete and rename",
        True,
    ),
    result(7, [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]),
]


class Loops(MachineTest):
    def setUp(self) -> None:
        super().setUp()
        (self.home / "memory").mkdir(parents=True)
        (self.home / "memory" / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n")

    def assert_all_of_it(self, api: ScriptedApi) -> None:
        self.assertEqual(len(api.requests), len(TURNS))
        self.assertEqual(api.requests[0]["tools"], [{"type": "memory_20250818", "name": "memory"}])
        self.assertEqual(api.results(), RESULTS)
        self.assertEqual(self.read("lighthouse/ports.md"), "5434\n")

    def test_the_example(self) -> None:
        with ScriptedApi(TURNS) as api:
            environment = {
                **self.environment,
                "ANTHROPIC_BASE_URL": api.url,
                "ANTHROPIC_API_KEY": "none",
                "HAVERSACK_HOME": str(self.home),
                "HAVERSACK_PROGRAM": PROGRAM,
            }
            example = str(PROJECT / "python" / "examples" / "agent.py")
            command = [sys.executable, example, "Where", "does staging listen?"]
            done = subprocess.run(command, env=environment, cwd=self.base, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "I look at what I know.\nStaging listens on 5434.\n")
            self.assertEqual(len(done.stderr.splitlines()), 7, done.stderr)
            question = {"role": "user", "content": "Where does staging listen?"}
            self.assertEqual(api.requests[0]["messages"], [question])
            self.assert_all_of_it(api)

    def test_the_asynchronous_client(self) -> None:
        async def main(api: ScriptedApi) -> str:
            async with (
                AsyncAnthropic(base_url=api.url, api_key="none") as client,
                AsyncHaversackMemoryTool(**self.options()) as memory,
            ):
                runner = client.beta.messages.tool_runner(
                    model="claude-sonnet-5-5",
                    max_tokens=1024,
                    tools=[memory],
                    messages=[{"role": "user", "content": "Where does staging listen?"}],
                )
                message = await runner.until_done()
                return message.content[0].text  # type: ignore[union-attr]

        with ScriptedApi(TURNS) as api:
            self.assertEqual(asyncio.run(main(api)), "Staging listens on 5434.")
            self.assert_all_of_it(api)

    def test_the_tool_s_cache_control_is_sent(self) -> None:
        with ScriptedApi([[says("Yes.")]]) as api, Anthropic(base_url=api.url, api_key="none") as client:
            with HaversackMemoryTool(**self.options(), cache_control={"type": "ephemeral"}) as memory:
                client.beta.messages.tool_runner(
                    model="claude-sonnet-5-5",
                    max_tokens=1024,
                    tools=[memory],
                    messages=[{"role": "user", "content": "Well?"}],
                ).until_done()
            tool = {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
            self.assertEqual(api.requests[0]["tools"], [tool])


class History(MachineTest):
    def test_two_agents_are_told_apart(self) -> None:
        self.haversack("remote", "add", f"file://{self.base}/remote", "--device", "laptop")
        agents = {"scout": "s-1", "keeper": "k-7"}
        for agent, session in agents.items():
            with HaversackMemoryTool(**self.options(agent=agent, session=session)) as memory:
                memory.call(create(f"/memories/{agent}.md", f"{agent} was here\n"))
        self.haversack("sync")
        changes = json.loads(self.haversack("log", "--json"))["changes"]
        found = {
            change["path"]: (commit["agent"], commit["session"]) for commit in changes for change in commit["files"]
        }
        self.assertEqual(found, {f"{agent}.md": (agent, session) for agent, session in agents.items()})

    def test_what_was_cleared_can_be_brought_back(self) -> None:
        self.haversack("remote", "add", f"file://{self.base}/remote", "--device", "laptop")
        with HaversackMemoryTool(**self.options()) as memory:
            memory.call(create(PORTS, "staging 5433\n"))
            self.haversack("sync")
            memory.clear_all_memory()
        self.haversack("restore", "--deleted")
        self.assertEqual(self.read("lighthouse/ports.md"), "staging 5433\n")


if __name__ == "__main__":
    unittest.main()
