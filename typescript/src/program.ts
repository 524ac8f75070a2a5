/** Which program is started, and with what. */

import { accessSync, constants, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join, resolve } from 'node:path';

/** Says where the program is, if nobody else does. */
const PROGRAM_VARIABLE = 'HAVERSACK_PROGRAM';

/** The program `haversack` is not where it was looked for. */
export class ProgramNotFoundError extends Error {
  override readonly name = 'ProgramNotFoundError';
}

/** What a program is told when it starts. */
export interface ProgramOptions {
  /** The directory that holds everything; without it, that of the command line. */
  home?: string | undefined;
  /** Where `haversack` is; without it, what the variable HAVERSACK_PROGRAM says, the one that was installed with this package, or the one on the PATH. */
  program?: string | undefined;
  /** Which agent is at work, for the history. */
  agent?: string | undefined;
  /** Which session of the agent is at work, for the history. */
  session?: string | undefined;
  /** Variables for the process, instead of those of this one. */
  environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/** The program and everything it is told when it starts. */
export class Program {
  readonly path: string;
  readonly #options: ProgramOptions;

  /** Looks for the program at once, so that a mistake shows where it was made. */
  constructor(options: ProgramOptions) {
    const known = options.environment ?? process.env;
    const named = options.program ?? (known[PROGRAM_VARIABLE] || undefined);
    const name = named ?? 'haversack';
    const path = (named === undefined ? packagedProgram() : undefined) ?? find(name, known['PATH'] ?? '');
    if (path === undefined) {
      const where = isPath(name) ? `there is no program at ${name}` : `there is no \`${name}\` on the PATH`;
      throw new ProgramNotFoundError(
        `${where}: install Haversack, or say where its program is, with the option program or the variable ${PROGRAM_VARIABLE}`,
      );
    }
    this.path = path;
    // In full: this process may go to another directory before the program starts.
    const home = options.home === undefined ? undefined : resolve(options.home);
    const environment = options.environment && { ...options.environment };
    this.#options = { ...options, home, environment };
  }

  /** Returns what the program is started with for a command. */
  arguments(...command: string[]): string[] {
    const { home } = this.#options;
    return home === undefined ? command : ['--home', home, ...command];
  }

  /** Returns the variables that it is started with. */
  environment(): Record<string, string | undefined> {
    const { environment, agent, session } = this.#options;
    return {
      ...(environment ?? process.env),
      ...(agent === undefined ? {} : { HAVERSACK_AGENT: agent }),
      ...(session === undefined ? {} : { HAVERSACK_SESSION: session }),
    };
  }
}

/** Returns the name of the package that holds the program for this system. */
export function platformPackage(): string {
  return `@haversack/${process.platform}-${process.arch}`;
}

/** Returns the program that was installed with this package; undefined if npm installed none for this system. */
export function packagedProgram(): string | undefined {
  try {
    const description = createRequire(import.meta.url).resolve(`${platformPackage()}/package.json`);
    const program = join(dirname(description), 'bin', process.platform === 'win32' ? 'haversack.exe' : 'haversack');
    return isProgram(program) ? program : undefined;
  } catch {
    return undefined;
  }
}

function isPath(name: string): boolean {
  return name.includes('/') || (process.platform === 'win32' && name.includes('\\'));
}

function find(name: string, path: string): string | undefined {
  const places = isPath(name) ? [''] : path.split(delimiter).filter((directory) => directory !== '');
  const endings = process.platform === 'win32' ? ['', '.exe'] : [''];
  const candidates = places.flatMap((place) => endings.map((ending) => resolve(join(place, name + ending))));
  return candidates.find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
