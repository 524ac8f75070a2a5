/** The tool as the Anthropic SDK knows it. */

import type { MemoryToolHandlers } from '@anthropic-ai/sdk/helpers/beta/memory';
import type { BetaRunnableTool, BetaToolRunContext } from '@anthropic-ai/sdk/lib/tools/BetaRunnableTool';
import type {
  BetaCacheControlEphemeral,
  BetaMemoryTool20250818,
  BetaMemoryTool20250818Command,
  BetaMemoryTool20250818CreateCommand,
  BetaMemoryTool20250818DeleteCommand,
  BetaMemoryTool20250818InsertCommand,
  BetaMemoryTool20250818RenameCommand,
  BetaMemoryTool20250818StrReplaceCommand,
  BetaMemoryTool20250818ViewCommand,
  BetaToolResultContentBlockParam,
} from '@anthropic-ai/sdk/resources/beta';
import { ToolError } from '@anthropic-ai/sdk/resources/beta/messages';
import { Bridge } from './bridge.js';
import { Program, type ProgramOptions } from './program.js';

/** What is said of a tool when it is made. */
export interface HaversackMemoryToolOptions extends ProgramOptions {
  /** Where the API may cut the prompt for its cache. */
  cacheControl?: BetaCacheControlEphemeral | undefined;
}

type Result = string | BetaToolResultContentBlockParam[];
type Signal = AbortSignal | null | undefined;

const NAMES: ReadonlySet<unknown> = new Set(['view', 'create', 'str_replace', 'insert', 'delete', 'rename']);

/** A tool that nobody can call any more needs no process. */
const forgotten = new FinalizationRegistry<Bridge>((bridge) => void bridge.close());

/**
 * Claude's memory in a Haversack home; goes into the `tools` of `client.beta.messages.toolRunner`.
 *
 * The commands go to one `haversack memory-tool` process, started with the first of them; calls made at the same time take turns.
 * `close`, the end of an `await using` block, or the end of the program end it; a call after `close` starts another.
 *
 * A call that is aborted while the process is at work on it ends the process, so that its answer is not taken for that of the next call.
 */
export class HaversackMemoryTool
  implements MemoryToolHandlers, BetaMemoryTool20250818, Omit<BetaRunnableTool<BetaMemoryTool20250818Command>, keyof BetaMemoryTool20250818>
{
  readonly type = 'memory_20250818';
  readonly name = 'memory';
  declare readonly cache_control?: BetaCacheControlEphemeral;
  readonly #bridge: Bridge;

  /**
   * Finds the program; nothing is started yet.
   *
   * @throws {ProgramNotFoundError} if there is no such program
   */
  constructor(options: HaversackMemoryToolOptions = {}) {
    const { cacheControl, ...program } = options;
    if (cacheControl !== undefined) this.cache_control = cacheControl;
    this.#bridge = new Bridge(new Program(program));
    forgotten.register(this, this.#bridge);
  }

  /** Which process answers, if there is one. */
  get pid(): number | undefined {
    return this.#bridge.pid;
  }

  /** Returns what the model sent, as it is. */
  parse(content: unknown): BetaMemoryTool20250818Command {
    return content as BetaMemoryTool20250818Command;
  }

  /** Answers what the model sent. */
  async run(command: BetaMemoryTool20250818Command, context?: BetaToolRunContext): Promise<Result> {
    // Input that is no command goes to the program unchanged, which answers with the right error.
    const name: unknown = (command as { command?: unknown } | null)?.command;
    if (!NAMES.has(name)) return this.#do(command, context?.signal);
    const handlers = this as Record<string, unknown> as Record<string, (command: unknown, signal: Signal) => Promise<Result>>;
    return handlers[command.command]!(command, context?.signal);
  }

  view(command: BetaMemoryTool20250818ViewCommand, signal?: Signal): Promise<Result> {
    return this.#do(command, signal);
  }

  create(command: BetaMemoryTool20250818CreateCommand, signal?: Signal): Promise<Result> {
    return this.#do(command, signal);
  }

  str_replace(command: BetaMemoryTool20250818StrReplaceCommand, signal?: Signal): Promise<Result> {
    return this.#do(command, signal);
  }

  insert(command: BetaMemoryTool20250818InsertCommand, signal?: Signal): Promise<Result> {
    return this.#do(command, signal);
  }

  delete(command: BetaMemoryTool20250818DeleteCommand, signal?: Signal): Promise<Result> {
    return this.#do(command, signal);
  }

  rename(command: BetaMemoryTool20250818RenameCommand, signal?: Signal): Promise<Result> {
    return this.#do(command, signal);
  }

  /** Deletes everything in the memory. What was synced before is in the history: `haversack restore --deleted` brings it back. */
  clearAllMemory(): Promise<string> {
    return this.#bridge.clear();
  }

  /** Ends the process, after calls that were made before. */
  close(): Promise<void> {
    return this.#bridge.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #do(command: unknown, signal: Signal): Promise<Result> {
    const answer = await this.#bridge.ask(command, signal);
    if (answer.is_error) throw new ToolError(answer.content);
    return answer.content;
  }
}
