#!/usr/bin/env node
// Starts the program for this system, for `npx haversack`. Hooks and MCP clients start the program itself: `haversack setup` gives them its path.
import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';

import { packagedProgram, platformPackage } from '../dist/program.js';

const program = process.env['HAVERSACK_PROGRAM'] || packagedProgram();
if (program === undefined) {
  console.error(`Error: the package ${platformPackage()} is not installed, so the program for this system is missing`);
  console.error('Hint: npm leaves optional packages out with --omit=optional. Install without it, or install haversack in another way and set HAVERSACK_PROGRAM');
  process.exit(1);
}
const { status, signal, error } = spawnSync(program, process.argv.slice(2), { stdio: 'inherit' });
if (error !== undefined) {
  console.error(`Error: ${program} did not start: ${error.message}`);
  process.exit(1);
}
process.exit(signal === null ? (status ?? 1) : 128 + (constants.signals[signal] ?? 0));
