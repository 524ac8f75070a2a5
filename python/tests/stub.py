"""Passes lines on to the real program, and does what the path of a command says.

`hang`: answers nothing. `die-before`: ends instead of passing it on. `die-after`: ends instead of passing the answer on. `echo`: answers
with what came in. `nonsense`: answers with what is no answer. Each command is noted in the file `stub.log` in HOME.

The id of the real program is noted in `stub.pids` in HOME. The program outlives a stub that dies, so a test waits for it before it removes HOME.
"""

import json
import os
import subprocess
import sys

real = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
with open(os.path.join(os.environ["HOME"], "stub.pids"), "a") as pids:
    pids.write(f"{real.pid}\n")
assert real.stdin is not None and real.stdout is not None


def tell(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


for line in sys.stdin.buffer:
    command = json.loads(line) if line.strip() else {}
    path = command.get("path", "") if isinstance(command, dict) else ""
    what = path.rsplit("/", 1)[-1] if isinstance(path, str) else ""
    with open(os.path.join(os.environ["HOME"], "stub.log"), "a") as log:
        log.write(what + "\n")
    if what.startswith("hang"):
        continue
    if what.startswith("die-before"):
        os._exit(7)
    if what.startswith("echo") or (line.strip() and not isinstance(command, dict)):
        variables = {name: value for name, value in os.environ.items() if name.startswith("HAVERSACK_")}
        tell(json.dumps({"content": json.dumps([command, variables]), "is_error": False}).encode() + b"\n")
        continue
    if what.startswith("nonsense"):
        tell(b"what?\n")
        continue
    real.stdin.write(line)
    real.stdin.flush()
    answer = real.stdout.readline()
    if what.startswith("die-after"):
        os._exit(7)
    tell(answer)
