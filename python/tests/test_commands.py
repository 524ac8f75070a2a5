"""What the model is told, to the letter."""

import asyncio
import base64
import json
import unittest
from typing import Any

from anthropic.lib.tools import ToolError
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand
from support import LISTING, MachineTest, create, replace, view

from haversack import AsyncHaversackMemoryTool, HaversackMemoryTool

A = "/memories/lighthouse/ports.md"

EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
CONTENT = f"Here's the content of {A} with line numbers:\n"

#: Commands in order, what each is answered, and whether that is an error.
CONVERSATION: list[tuple[Any, Any, bool]] = [
    (view("/memories"), LISTING, False),
    (create(A, "staging 5433\nlive 443\nstaging\n"), f"File created successfully at: {A}", False),
    (create(A, "x"), f"Error: File {A} already exists", True),
    (view(A), f"{CONTENT}     1\tstaging 5433\n     2\tlive 443\n     3\tstaging\n     4\t", False),
    ({**view(A), "view_range": [2, 2]}, f"{CONTENT}     2\tlive 443", False),
    ({**view(A), "view_range": [2, -1]}, f"{CONTENT}     2\tlive 443\n     3\tstaging\n     4\t", False),
    ({**view(A), "view_range": None}, f"{CONTENT}     1\tstaging 5433\n     2\tlive 443\n     3\tstaging\n     4\t", False),
    (view("/memories/none.md"), "The path /memories/none.md does not exist. Please provide a valid path.", True),
    (replace(A, "5433", "5434"), f"{EDITED}     1\tstaging 5434\n     2\tlive 443\n     3\tstaging", False),
    (
        replace(A, "9", "1"),
        f"No replacement was performed, old_str `9` did not appear verbatim in {A}.",
        True,
    ),
    (
        replace(A, "staging", "x"),
        "No replacement was performed. Multiple occurrences of old_str `staging` in lines: 1, 3. Please ensure it is unique",
        True,
    ),
    (
        replace("/memories/none.md", "a", "b"),
        "Error: The path /memories/none.md does not exist. Please provide a valid path.",
        True,
    ),
    # The SDK's own tool breaks on this: without new_str, old_str is removed.
    (
        {"command": "str_replace", "path": A, "old_str": " 5434"},
        f"{EDITED}     1\tstaging\n     2\tlive 443\n     3\tstaging",
        False,
    ),
    (
        {"command": "insert", "path": A, "insert_line": 0, "insert_text": "# Ports\n"},
        f"The file {A} has been edited.",
        False,
    ),
    (
        {"command": "insert", "path": A, "insert_line": 9, "insert_text": "x"},
        "Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 4]",
        True,
    ),
    (
        {"command": "insert", "path": "/memories/none.md", "insert_line": 0, "insert_text": "x"},
        "Error: The path /memories/none.md does not exist",
        True,
    ),
    (
        {"command": "rename", "old_path": A, "new_path": "/memories/p.md"},
        f"Successfully renamed {A} to /memories/p.md",
        False,
    ),
    (
        {"command": "rename", "old_path": A, "new_path": "/memories/q.md"},
        f"Error: The path {A} does not exist",
        True,
    ),
    (create("/memories/q.md", ""), "File created successfully at: /memories/q.md", False),
    (
        {"command": "rename", "old_path": "/memories/q.md", "new_path": "/memories/p.md"},
        "Error: The destination /memories/p.md already exists",
        True,
    ),
    ({"command": "delete", "path": "/memories/q.md"}, "Successfully deleted /memories/q.md", False),
    ({"command": "delete", "path": "/memories/q.md"}, "Error: The path /memories/q.md does not exist", True),
    ({"command": "delete", "path": "/memories"}, "Cannot delete the /memories directory itself", True),
    (view("/etc/passwd"), "Path must start with /memories, got: /etc/passwd", True),
    (view("/memories/../x"), "Path /memories/../x would escape /memories directory", True),
    # A command that the SDK does not know, and input that is no command.
    (
        {"command": "undo"},
        "Error: Unknown command `undo`; the commands are view, create, str_replace, insert, delete and rename",
        True,
    ),
    ({"command": "view"}, "Error: The parameter `path` of `view` is missing", True),
    ({"command": "create", "path": 5}, "Error: The parameter `path` of `create` must be a string, not a number", True),
    ("view", "Error: The input must be a JSON object, not a string", True),
    ({"command": []}, "Error: `command` must be a string, not a list", True),
]


def told(tool: HaversackMemoryTool, command: Any) -> tuple[Any, bool]:
    try:
        return tool.call(command), False
    except ToolError as error:
        return error.content, True


async def told_later(tool: AsyncHaversackMemoryTool, command: Any) -> tuple[Any, bool]:
    try:
        return await tool.call(command), False
    except ToolError as error:
        return error.content, True


class Commands(MachineTest):
    def test_the_answers_are_the_documented_ones(self) -> None:
        with HaversackMemoryTool(**self.options()) as tool:
            self.assertEqual(tool.to_dict(), {"type": "memory_20250818", "name": "memory"})
            for command, text, is_error in CONVERSATION:
                self.assertEqual(told(tool, command), (text, is_error), command)
        self.assertEqual(self.read("p.md"), "# Ports\nstaging\nlive 443\nstaging\n")

    def test_they_are_the_same_without_blocking(self) -> None:
        async def converse() -> None:
            async with AsyncHaversackMemoryTool(**self.options()) as tool:
                self.assertEqual(tool.to_dict(), {"type": "memory_20250818", "name": "memory"})
                for command, text, is_error in CONVERSATION:
                    self.assertEqual(await told_later(tool, command), (text, is_error), command)

        asyncio.run(converse())
        self.assertEqual(self.read("p.md"), "# Ports\nstaging\nlive 443\nstaging\n")

    def test_what_the_model_sent_is_passed_on_as_it_is(self) -> None:
        path = "/memories/echo"
        sent = [
            view(path),
            {**view(path), "view_range": None},
            {**view(path), "view_range": [1, 2, 3]},
            {**view(path), "view_range": "all"},
            {"command": "str_replace", "path": path, "old_str": "a"},
            {"command": "str_replace", "path": path, "old_str": "a", "new_str": None},
            {"command": "insert", "path": path, "insert_line": "1", "insert_text": 2.5, "more": {"a": [True]}},
            {"command": "insert", "path": path, "insert_line": 10**30},
            {"command": "nothing we know", "path": path},
            [1, "two"],
        ]
        with HaversackMemoryTool(**self.options(program=self.stub())) as tool:
            for command in sent:
                passed_on, _ = json.loads(tool.call(command))  # type: ignore[arg-type]
                self.assertEqual(passed_on, command)
            made_here = BetaMemoryTool20250818ViewCommand(command="view", path=path)
            self.assertEqual(json.loads(tool.view(made_here))[0], view(path))  # type: ignore[arg-type]

    def test_any_text_is_kept(self) -> None:
        texts = [
            'quotes " \' ` \\ \t and \r\n line ends\n',
            "Grüße, 日本, 👩‍👩‍👧, e\u0301, \u2028 \u2029 \u0085 \x7f\n",
            "",
            "no newline at the end",
            "x" * (5 * 1024 * 1024) + "\n",
        ]
        with HaversackMemoryTool(**self.options()) as tool:
            for number, text in enumerate(texts):
                self.assertFalse(told(tool, create(f"/memories/{number} – ü.md", text))[1])
                stored = (self.home / "memory" / f"{number} – ü.md").read_bytes()
                self.assertEqual(stored, text.encode())
            half, is_error = told(tool, create("/memories/half.md", "\ud800"))
            self.assertTrue(is_error and half.startswith("Error: Invalid JSON: "), half)
            self.assertEqual(
                told(tool, create("/memories/large.md", "x" * (17 * 1024 * 1024))),
                ("Error: The command is longer than 16777216 bytes and was not carried out", True),
            )
            shown = tool.call(view("/memories/1 – ü.md"))
            self.assertIn("👩‍👩‍👧, e\u0301, \u2028 \u2029 \u0085 \x7f", str(shown))

    def test_an_image_is_an_image(self) -> None:
        image = b"\x89PNG\r\n\x1a\n\x00\xff"
        with HaversackMemoryTool(**self.options()) as tool:
            tool.call(create("/memories/a.md", "a"))
            (self.home / "memory" / "map.png").write_bytes(image)
            source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(image).decode()}
            self.assertEqual(tool.call(view("/memories/map.png")), [{"type": "image", "source": source}])

    def test_everything_is_cleared(self) -> None:
        with HaversackMemoryTool(**self.options()) as tool:
            self.assertEqual(tool.clear_all_memory(), "All memory cleared", "also when there is nothing")
            for name in ("a.md", ".hidden.md", "deep/er/b.md", "grüße 日本.md"):
                tool.call(create(f"/memories/{name}", "x"))
            self.assertEqual(tool.clear_all_memory(), "All memory cleared")
            self.assertEqual(told(tool, view("/memories")), (LISTING, False))
            self.assertEqual(list((self.home / "memory").iterdir()), [])
            tool.call(create("/memories/a.md", "x"))
            (self.home / "memory" / "link").symlink_to(self.base)
            with self.assertRaisesRegex(ToolError, "Memory was cleared except for what Haversack leaves alone: link"):
                tool.clear_all_memory()

        async def clear() -> None:
            async with AsyncHaversackMemoryTool(**self.options()) as tool:
                (self.home / "memory" / "link").unlink()
                await tool.call(create("/memories/b.md", "x"))
                self.assertEqual(await tool.clear_all_memory(), "All memory cleared")

        asyncio.run(clear())


if __name__ == "__main__":
    unittest.main()
