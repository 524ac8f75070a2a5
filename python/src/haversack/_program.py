"""Which program is started, and with what."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

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
        name = os.fspath(program) if program is not None else known.get(PROGRAM_VARIABLE) or "haversack"
        path = shutil.which(name, path=known.get("PATH", os.defpath))
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
