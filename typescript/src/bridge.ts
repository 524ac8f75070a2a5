/**
 * Calls, one at a time, to one process that is started when it is needed.
 *
 * A process that ended between two calls is replaced, once for each call. A call whose answer was lost is never repeated: it is unknown
 * if it was carried out, and the model is told so.
 */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ToolError } from '@anthropic-ai/sdk/resources/beta/messages';
import { NoAnswer, NotSent, Process, type Answer } from './process.js';
import type { Program } from './program.js';

/** How much of what the program said about its failure is passed on, in characters. */
const SHOWN_CHARACTERS = 1000;

/** How often memory is looked at again while it is cleared and others go on writing. */
const CLEARING_ROUNDS = 5;

/** How long a listing of the top of the memory may be. */
const LISTING_BYTES = 256 * 1024 * 1024;

/** What the process answers without doing anything. Asked first: a process that cannot start is told from one that died at work. */
const GREETING = '\n';

const UNKNOWN =
  'Error: It is unknown whether this command was carried out: the memory stopped before it answered. View what is there before you try again.';
const NOT_STARTED = 'Error: The command was not carried out: the memory did not start: ';
const ABORTED = 'Error: The command was not carried out: it was given up before its turn';

/** The process, and whoever waits to talk to it. */
export class Bridge {
  readonly #program: Program;
  #turn: Promise<unknown> = Promise.resolve();
  #process: Process | undefined;

  constructor(program: Program) {
    this.#program = program;
  }

  /** The process, if there is one. */
  get pid(): number | undefined {
    return this.#process?.hasEnded === false ? this.#process.pid : undefined;
  }

  /** Passes on a command as the model sent it. */
  ask(command: unknown, signal?: AbortSignal | null): Promise<Answer> {
    const line = `${JSON.stringify(command)}\n`;
    return this.#inTurn(async () => {
      if (signal?.aborted) throw new ToolError(ABORTED);
      // A late answer must not be taken for that of the next call.
      const giveUp = (): void => this.#process?.signalEnd();
      signal?.addEventListener('abort', giveUp);
      try {
        const answer = await this.#exchange(line, signal);
        // It may have answered just before it was ended.
        if (signal?.aborted) await this.#drop();
        return answer;
      } catch (error) {
        await this.#drop();
        throw error;
      } finally {
        signal?.removeEventListener('abort', giveUp);
      }
    });
  }

  /** Lets calls that were made finish, and ends the process. The next call starts another. */
  close(): Promise<void> {
    return this.#inTurn(async () => {
      const process = this.#process;
      this.#process = undefined;
      await process?.end();
    });
  }

  /** Deletes everything; what others write meanwhile may stay. */
  async clear(): Promise<string> {
    for (let round = 0; round < CLEARING_ROUNDS; round += 1) {
      const { names, odd } = await this.#listing();
      if (names.length === 0 && odd.length > 0) {
        throw new ToolError(`Error: Memory was cleared except for what Haversack leaves alone: ${odd.join(', ')}`);
      }
      if (names.length === 0) return 'All memory cleared';
      for (const name of names) {
        const answer = await this.ask({ command: 'delete', path: `/memories/${name}` });
        // Another process may have deleted it.
        if (answer.is_error && (await this.#listing()).names.includes(name)) throw new ToolError(answer.content);
      }
    }
    throw new ToolError('Error: Memory was not cleared: others go on writing to it');
  }

  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(action);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #exchange(line: string, signal?: AbortSignal | null): Promise<Answer> {
    let process = await this.#running();
    for (let isAgain = false; ; isAgain = true) {
      if (signal?.aborted) throw new ToolError(ABORTED);
      try {
        return await process.exchange(line);
      } catch (error) {
        await this.#drop();
        if (error instanceof NotSent && !isAgain) {
          process = await this.#running();
          continue;
        }
        if (error instanceof NotSent) throw new ToolError(NOT_STARTED + process.whyEnded().slice(0, SHOWN_CHARACTERS));
        if (!(error instanceof NoAnswer)) throw error;
        if (!signal?.aborted) console.warn(`haversack memory-tool did not answer a command: ${process.whyEnded()}`);
        throw new ToolError(UNKNOWN);
      }
    }
  }

  /** Returns a process that answers. */
  async #running(): Promise<Process> {
    if (this.#process?.hasEnded) await this.#drop();
    if (this.#process !== undefined) return this.#process;
    let process: Process | undefined;
    try {
      process = this.#process = new Process(this.#program);
      await process.exchange(GREETING);
      return process;
    } catch (error) {
      await this.#drop();
      const isOurs = error instanceof NotSent || error instanceof NoAnswer;
      const why = process && isOurs ? process.whyEnded() : String(error);
      throw new ToolError(NOT_STARTED + why.slice(0, SHOWN_CHARACTERS));
    }
  }

  async #drop(): Promise<void> {
    const process = this.#process;
    this.#process = undefined;
    await process?.kill();
  }

  /** Returns what is at the top of the memory, and what of it is not Haversack's. */
  async #listing(): Promise<{ names: string[]; odd: string[] }> {
    const options = { env: this.#program.environment(), maxBuffer: LISTING_BYTES };
    try {
      const { stdout } = await promisify(execFile)(this.#program.path, this.#program.arguments('ls', '--json'), options);
      const found = JSON.parse(stdout) as { entries: { path: string }[]; odd: { name: string }[] };
      return { names: found.entries.map(({ path }) => path), odd: found.odd.map(({ name }) => name) };
    } catch (error) {
      const { stderr } = error as { stderr?: string };
      throw new ToolError(`Error: Memory was not cleared: ${(stderr || String(error)).slice(0, SHOWN_CHARACTERS)}`);
    }
  }
}
