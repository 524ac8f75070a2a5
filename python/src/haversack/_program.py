"""Which program is started, and with what."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: The variable that names the program, if no argument does.
PROGRAM_VARIABLE = "HAVERSACK_PROGRAM"


class ProgramNotFoundError(FileNotFoundError):
    """The program `haversack` is not where it was looked for."""


@dataclass(frozen=True)
class Program:
    """The program and everything it is told when it starts."""

    path: str
    home: str | None
    agent: str | None
    session: str | None
    #: Instead of the variables of this process.
    variables: dict[str, str] | None

    @staticmethod
    def find(
        *,
        home: str | os.PathLike[str] | None,
        program: str | os.PathLike[str] | None,
        agent: str | None,
        session: str | None,
        environment: Mapping[str, str] | None,
    ) -> Program:
        """Returns the program that these options mean; it is looked for at once, so that a mistake shows where it was made."""
        variables = None if environment is None else dict(environment)
        known = os.environ if variables is None else variables
        named = os.fspath(program) if program is not None else known.get(PROGRAM_VARIABLE)
        name = named or "haversack"
        path = None if named else _installed_with_this_package()
        path = path or shutil.which(name, path=known.get("PATH", os.defpath))
        if path is None:
            where = f"there is no program at {name}" if os.path.dirname(name) else f"there is no `{name}` on the PATH"
            raise ProgramNotFoundError(
                f"{where}: install Haversack, or say where its program is, with program=… or the variable {PROGRAM_VARIABLE}"
            )
        # In full: this process may go to another directory before the program starts.
        return Program(
            path=os.path.abspath(path),
            home=None if home is None else os.path.abspath(home),
            agent=agent,
            session=session,
            variables=variables,
        )

    def arguments(self, *command: str) -> list[str]:
        """Returns what is started for a command."""
        return [self.path, *(() if self.home is None else ("--home", self.home)), *command]

    def environment(self) -> dict[str, str]:
        """Returns the variables that it is started with."""
        variables = dict(os.environ if self.variables is None else self.variables)
        for name, value in (("HAVERSACK_AGENT", self.agent), ("HAVERSACK_SESSION", self.session)):
            if value is not None:
                variables[name] = value
        return variables


def _installed_with_this_package() -> str | None:
    """Returns the program that was installed together with this package.

    The environment need not be activated, so its programs may not be on the PATH. These directories are tried:

    1. The `bin` beside the package, where `pip install --target` puts programs.
    2. The programs of this interpreter's environment.
    3. The programs that the user installed for themselves (`pip install --user`).

    A directory counts only if the package itself is installed in the same scheme. Otherwise a package in a checkout would start any program.
    """
    beside = Path(__file__).resolve().parent.parent
    user = sysconfig.get_preferred_scheme("user")
    schemes = [
        (beside, beside / "bin"),
        (Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("scripts"))),
        (Path(sysconfig.get_path("platlib")), Path(sysconfig.get_path("scripts"))),
        (Path(sysconfig.get_path("purelib", user)), Path(sysconfig.get_path("scripts", user))),
    ]
    for packages, programs in schemes:
        if packages.resolve() != beside:
            continue
        found = shutil.which("haversack", path=str(programs))
        if found is not None:
            return found
    return None
