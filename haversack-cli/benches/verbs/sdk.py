"""Lets the Anthropic SDK's local memory tool take part in the benchmark of the verbs.

The argument is a directory for its files. The first line on stdout says which version it is; then each line on stdin is
a list of inputs as a model gives them, and its answer a list of the nanoseconds that each call took. An input that is
refused ends the process, because a benchmark of refusals measures nothing.
"""

import json
import platform
import sys
import time
from importlib.metadata import version

from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool


def answer(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main():
    tool = BetaLocalFilesystemMemoryTool(sys.argv[1])
    answer(f"anthropic {version('anthropic')} on Python {platform.python_version()}")
    for line in sys.stdin:
        samples = []
        for given in json.loads(line):
            started = time.perf_counter_ns()
            result = tool.call(given)
            samples.append(time.perf_counter_ns() - started)
            # Only now: to forget a long text is not part of the call.
            del result
        answer(samples)


main()
