/** A machine of its own for each test, a program that misbehaves on demand, and an API that answers from a script. */

import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ToolError } from '@anthropic-ai/sdk/resources/beta/messages';
import { HaversackMemoryTool, type HaversackMemoryToolOptions } from 'haversack';

export const PROGRAM = process.env['HAVERSACK_PROGRAM'] ?? '';

/** How long a test waits for something that another process does before it fails. */
const PATIENCE_MILLISECONDS = 60_000;

export const LISTING =
  "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n4.0K\t/memories";
export const UNKNOWN =
  'Error: It is unknown whether this command was carried out: the memory stopped before it answered. View what is there before you try again.';

export type Command = Record<string, unknown>;

export const view = (path: string): Command => ({ command: 'view', path });
export const create = (path: string, file_text: string): Command => ({ command: 'create', path, file_text });
export const replace = (path: string, old_str: string, new_str: string): Command => ({
  command: 'str_replace',
  path,
  old_str,
  new_str,
});

export async function waitUntil(what: string, holds: () => boolean): Promise<void> {
  const end = Date.now() + PATIENCE_MILLISECONDS;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`it did not happen: ${what}`);
    await setTimeout(5);
  }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // An orphan without a parent that collects it stays in the list of processes.
  return !isZombie(pid);
}

/** Returns whether a process has ended and its parent has not asked how, where that can be told. */
export function isZombie(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return existsSync('/proc/self/stat');
  }
}

/** Returns which process answers for a tool. */
export function pidOf(tool: HaversackMemoryTool): number {
  if (tool.pid === undefined) throw new Error('it has no process');
  return tool.pid;
}

/** Returns what the model would be told, and whether as an error. */
export async function told(tool: HaversackMemoryTool, command: unknown, signal?: AbortSignal): Promise<[unknown, boolean]> {
  try {
    const context = { signal } as unknown as Parameters<HaversackMemoryTool['run']>[1];
    return [await tool.run(tool.parse(command), context), false];
  } catch (error) {
    if (error instanceof ToolError) return [error.content, true];
    throw error;
  }
}

/** An empty home and a scrubbed environment. */
export class Machine {
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), 'haversack-')));
  readonly home = join(this.base, 'home');
  readonly environment: Record<string, string> = {
    PATH: '/usr/bin:/bin',
    HOME: this.base,
    TMPDIR: this.base,
    ...(process.env['LD_LIBRARY_PATH'] === undefined ? {} : { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }),
  };
  readonly #tools: HaversackMemoryTool[] = [];

  tool(options: HaversackMemoryToolOptions = {}): HaversackMemoryTool {
    const tool = new HaversackMemoryTool({
      home: this.home,
      program: PROGRAM,
      environment: this.environment,
      ...options,
    });
    this.#tools.push(tool);
    return tool;
  }

  read(name: string): string {
    return readFileSync(join(this.home, 'memory', name), 'utf8');
  }

  has(name: string): boolean {
    return existsSync(join(this.home, 'memory', name));
  }

  async haversack(argumentList: string[], variables: Record<string, string> = {}): Promise<string> {
    const options = { env: { ...this.environment, ...variables }, cwd: this.base };
    return (await promisify(execFile)(PROGRAM, ['--home', this.home, ...argumentList], options)).stdout;
  }

  /** Returns a program that passes everything on to the real one, and does what the path of a command says. */
  stub(): string {
    const path = join(this.base, 'stub');
    const script = fileURLToPath(new URL('stub.js', import.meta.url));
    writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${script}' '${PROGRAM}' "$@"\n`);
    chmodSync(path, 0o755);
    return path;
  }

  /** Returns what the stub was asked. */
  noted(): string[] {
    const path = join(this.base, 'stub.log');
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  }

  /** Waits until every program that a stub started has ended: it may still write in the home. */
  async #programsBehindStubsEnd(): Promise<void> {
    const path = join(this.base, 'stub.pids');
    const pids = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').map(Number) : [];
    for (const pid of pids) await waitUntil('the program behind the stub ends', () => !isRunning(pid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const tool of this.#tools) await tool.close();
    await this.#programsBehindStubsEnd();
    rmSync(this.base, { recursive: true, force: true });
  }
}

interface Block extends Record<string, unknown> {
  type: string;
}

interface Request {
  model: string;
  tools?: unknown;
  messages: { role: string; content: string | Block[] }[];
}

/** Stands in for the API: each request is answered with the next turn, and kept. */
export class ScriptedApi {
  readonly requests: Request[] = [];
  readonly #server: Server;

  private constructor(turns: Block[][]) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Request;
        const number = this.requests.push(body) - 1;
        const content = turns[number] ?? [says('(no more turns)')];
        const calls = content.some((block) => block.type === 'tool_use');
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify({
            id: `msg_${number}`,
            type: 'message',
            role: 'assistant',
            model: body.model,
            content,
            stop_reason: calls ? 'tool_use' : 'end_turn',
            stop_sequence: null,
            usage: { input_tokens: 1, output_tokens: 1 },
          }),
        );
      });
    });
  }

  static async start(turns: Block[][]): Promise<ScriptedApi> {
    const api = new ScriptedApi(turns);
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the results of tools that were sent back, in order; a client may send the whole conversation each time. */
  results(): Block[] {
    const results = new Map<unknown, Block>();
    for (const message of this.requests.flatMap(({ messages }) => messages)) {
      for (const block of typeof message.content === 'string' ? [] : message.content) {
        if (block.type === 'tool_result') results.set(block['tool_use_id'], block);
      }
    }
    return [...results.values()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const uses = (number: number, input: Command): Block => ({
  type: 'tool_use',
  id: `toolu_${number}`,
  name: 'memory',
  input,
});
export const says = (text: string): Block => ({ type: 'text', text });
