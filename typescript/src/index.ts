/** Anthropic's memory tool on plain files that Haversack keeps and carries. */

export { ProgramNotFoundError } from './program.js';
export { HaversackMemoryTool, type HaversackMemoryToolOptions } from './tool.js';
