/** A running `haversack memory-tool`: a line of JSON goes in, a line of JSON comes out. */

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { BetaToolResultContentBlockParam } from '@anthropic-ai/sdk/resources/beta';
import type { Program } from './program.js';

/** How many of the last lines that it wrote to stderr are kept, to say why it ended. */
const KEPT_LINES = 20;

/** How long a process has to end by itself after its input did. */
const ENDING_MILLISECONDS = 10_000;

const NEWLINE = 0x0a;

/** The process did not get the whole line: the command was not carried out. */
export class NotSent extends Error {}

/** The process got the line and did not answer it as it should. */
export class NoAnswer extends Error {}

/** What the model is told. */
export interface Answer {
  content: string | BetaToolResultContentBlockParam[];
  is_error: boolean;
}

/** A line that was sent and waits for its answer. */
interface Waiting {
  isSent: boolean;
  answered: (line: Buffer) => void;
  failed: (why: Error) => void;
}

/** A process that was started. One call talks to it at a time. */
export class Process {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<void>;
  readonly #said: string[] = [];
  #received: Buffer[] = [];
  #waiting: Waiting | undefined;
  #why: string | undefined;

  constructor(program: Program) {
    // A session of its own: Ctrl-C at the terminal must not end it in the middle of a write. The end of its input does end it.
    const child = spawn(program.path, program.arguments('memory-tool'), {
      env: program.environment(),
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      windowsHide: true,
    });
    child.on('error', (error) => {
      this.#why ??= error.message;
    });
    // If the system has no more pipes, there is nothing to listen to.
    if ((child.stdin as unknown) === undefined) throw new NotSent();
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.#why ??= signal === null ? `exit status ${code}` : `killed by ${signal}`;
        this.#fail();
        resolve();
      });
    });
    // The write itself reports the error to its caller.
    child.stdin.on('error', () => {});
    child.stdout.on('error', () => {});
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#listen();
    this.rest();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#why !== undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Sends a line and waits for its answer. */
  async exchange(line: string): Promise<Answer> {
    this.#work();
    try {
      return parse(
        await new Promise<Buffer>((answered, failed) => {
          const waiting: Waiting = { isSent: false, answered, failed };
          this.#waiting = waiting;
          this.#child.stdin.write(line, (error) => {
            waiting.isSent = true;
            // Its last bytes at least did not arrive, and half a command is none.
            if (error) failed(new NotSent());
            else if (this.#why !== undefined) this.#fail();
          });
        }),
      );
    } finally {
      this.#waiting = undefined;
      this.rest();
    }
  }

  /** Ends its input, waits until it has ended, and ends it if it does not. */
  async end(): Promise<void> {
    this.#work();
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), ENDING_MILLISECONDS);
    await this.#ended;
    clearTimeout(timer);
  }

  /** Ends it at once. What it was writing is there whole or not at all. */
  async kill(): Promise<void> {
    this.#work();
    this.signalEnd();
    await this.#ended;
  }

  /** Lets it end now; whoever waits for its answer notices. */
  signalEnd(): void {
    this.#child.kill('SIGKILL');
  }

  /** Returns how it ended and what it said last. Only after it has ended. */
  whyEnded(): string {
    return [this.#why, ...this.#said].join('\n');
  }

  /** Lets the program that uses it end: the end of its input ends it, too. */
  rest(): void {
    this.#child.unref();
    for (const pipe of this.#pipes()) pipe.unref?.();
  }

  /** Keeps the program that uses it from ending. */
  #work(): void {
    this.#child.ref();
    for (const pipe of this.#pipes()) pipe.ref?.();
  }

  /** The pipes are sockets, whatever their types say. */
  #pipes(): { ref?(): void; unref?(): void }[] {
    const { stdin, stdout, stderr } = this.#child;
    return [stdin, stdout, stderr] as unknown as { ref?(): void; unref?(): void }[];
  }

  #take(chunk: Buffer): void {
    this.#received.push(chunk);
    if (!chunk.includes(NEWLINE)) return;
    const received = Buffer.concat(this.#received);
    const end = received.indexOf(NEWLINE);
    this.#received = [received.subarray(end + 1)];
    this.#waiting?.answered(received.subarray(0, end));
  }

  /** Tells whoever waits that there will be no answer, once it is known whether the line was sent. */
  #fail(): void {
    if (this.#waiting?.isSent) this.#waiting.failed(new NoAnswer());
  }

  #listen(): void {
    let rest = '';
    this.#child.stderr.setEncoding('utf8');
    this.#child.stderr.on('error', () => {});
    this.#child.stderr.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#hear(line);
    });
    this.#child.stderr.on('end', () => {
      if (rest !== '') this.#hear(rest);
    });
  }

  #hear(line: string): void {
    this.#said.push(line);
    if (this.#said.length > KEPT_LINES) this.#said.shift();
    console.warn(`haversack memory-tool: ${line}`);
  }
}

function parse(line: Buffer): Answer {
  let answer: Partial<Answer> | null;
  try {
    answer = JSON.parse(line.toString('utf8')) as Partial<Answer> | null;
  } catch {
    throw new NoAnswer();
  }
  const content = answer?.content;
  const is_error = answer?.is_error;
  if ((typeof content !== 'string' && !Array.isArray(content)) || typeof is_error !== 'boolean') throw new NoAnswer();
  return { content, is_error };
}
