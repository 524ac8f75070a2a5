"""The guide's examples, run as they are written."""

import re
import subprocess
import sys
import unittest

from support import LISTING, PROGRAM, PROJECT, MachineTest, ScriptedApi, create, says, uses, view

NOTE = "/memories/lighthouse.md"
CREATED = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": f"File created successfully at: {NOTE}",
}
SEEN = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": f"Here's the content of {NOTE} with line numbers:\n     1\tstaging listens on 5433\n     2\t",
}

#: For each example: what the model says, what it is told, what is printed.
EXAMPLES = [
    ([[uses(1, create(NOTE, "staging listens on 5433\n"))], [says("I will.")]], [CREATED], "I will.\n"),
    ([[uses(1, view(NOTE))], [says("On 5433.")]], [SEEN], "On 5433.\n"),
    ([], [], f"{LISTING}\n"),
]


class Guide(MachineTest):
    def test_every_example_does_what_it_says(self) -> None:
        text = (PROJECT / "docs" / "guide" / "python.md").read_text(encoding="utf-8")
        examples = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(examples), len(EXAMPLES))
        for example, (turns, results, printed) in zip(examples, EXAMPLES):
            with ScriptedApi(turns) as api:
                environment = {
                    **self.environment,
                    "ANTHROPIC_BASE_URL": api.url,
                    "ANTHROPIC_API_KEY": "none",
                    "HAVERSACK_PROGRAM": PROGRAM,
                }
                command = [sys.executable, "-c", example]
                done = subprocess.run(command, env=environment, cwd=self.base, capture_output=True, text=True)
                self.assertEqual((done.stdout, done.stderr), (printed, ""))
                self.assertEqual(api.results(), results)


if __name__ == "__main__":
    unittest.main()
