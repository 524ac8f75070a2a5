"""Puts the program into the wheel.

`cargo xtask dist` sets these variables:

- `HAVERSACK_WHEEL_PROGRAM`: the program, which the wheel installs beside the environment's other programs.
- `HAVERSACK_WHEEL_TAG`: the systems that the program runs on, as `manylinux_2_17_x86_64.musllinux_1_1_x86_64`.
- `HAVERSACK_WHEEL_SHARED`: a directory whose files go below the environment's directory (`share/man`, completions).

Without them the wheel holds Python only, and the program is looked for on the PATH.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """The hook that hatchling runs before it builds the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("HAVERSACK_WHEEL_PROGRAM")
        if self.target_name != "wheel" or version == "editable" or not program:
            return
        build_data["shared_scripts"][program] = Path(program).name
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['HAVERSACK_WHEEL_TAG']}"
        shared = os.environ.get("HAVERSACK_WHEEL_SHARED")
        if shared:
            for path in sorted(Path(shared).rglob("*")):
                if path.is_file():
                    build_data["shared_data"][str(path)] = path.relative_to(shared).as_posix()
