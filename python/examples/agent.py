"""An agent that remembers. Ask it something, and in another run something about it:

python agent.py "Staging listens on 5433. Remember that."
python agent.py "Where does staging listen?"
"""

import sys

from anthropic import Anthropic

from haversack import HaversackMemoryTool


def main() -> None:
    client = Anthropic()
    with HaversackMemoryTool(agent="example") as memory:
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=4096,
            tools=[memory],
            messages=[{"role": "user", "content": " ".join(sys.argv[1:]) or "What do you remember?"}],
        )
        for message in runner:
            for block in message.content:
                if block.type == "text":
                    print(block.text)
                elif block.type == "tool_use":
                    print(f"[{block.name}] {block.input}", file=sys.stderr)


if __name__ == "__main__":
    main()
