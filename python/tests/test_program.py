"""Which program is started: the one that was installed with the package comes before the PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "haversack"

FIND = (
    "from haversack._program import Program; "
    "print(Program.find(home=None, program=None, agent=None, session=None, environment=None).path)"
)


def program(directory: Path) -> Path:
    """Makes a program in a directory."""
    directory.mkdir(parents=True)
    path = directory / "haversack"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.base = Path(scratch.name).resolve()
        self.on_path = program(self.base / "path")

    def found(self, packages: Path, **variables: str) -> str:
        """Returns the program that a fresh interpreter finds with the package in a directory."""
        shutil.copytree(PACKAGE, packages / "haversack", ignore=shutil.ignore_patterns("__pycache__"))
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        environment = {**kept, "PATH": str(self.on_path.parent), "PYTHONPATH": str(packages), **variables}
        command = [sys.executable, "-B", "-c", FIND]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    def test_directory_of_pip_target_comes_before_the_path(self) -> None:
        beside = program(self.base / "target" / "bin")
        self.assertEqual(self.found(self.base / "target"), str(beside))

    def test_checkout_without_a_program_uses_the_path(self) -> None:
        self.assertEqual(self.found(self.base / "checkout" / "src"), str(self.on_path))

    def test_named_program_comes_before_the_installed_one(self) -> None:
        program(self.base / "target" / "bin")
        named = program(self.base / "named")
        self.assertEqual(self.found(self.base / "target", HAVERSACK_PROGRAM=str(named)), str(named))
