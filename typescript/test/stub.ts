/**
 * Passes lines on to the real program, and does what the path of a command says.
 *
 * `hang`: answers nothing. `die-before`: ends instead of passing it on. `die-after`: ends instead of passing the answer on. `echo`:
 * answers with what came in. `nonsense`: answers with what is no answer. Each command is noted in the file `stub.log` in HOME.
 *
 * The id of the real program is noted in `stub.pids` in HOME. The program outlives a stub that dies, so a test waits for it before it removes HOME.
 */

import { spawn } from 'node:child_process';
import { appendFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [program = '', ...rest] = process.argv.slice(2);
const real = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
real.stdin.on('error', () => {});
appendFileSync(join(process.env['HOME'] ?? '', 'stub.pids'), `${real.pid}\n`);
const answers = createInterface({ input: real.stdout })[Symbol.asyncIterator]();

function tell(text: string): void {
  writeSync(1, `${text}\n`);
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = (line === '' ? {} : JSON.parse(line)) as { path?: unknown };
  const what = typeof command.path === 'string' ? (command.path.split('/').at(-1) ?? '') : '';
  appendFileSync(join(process.env['HOME'] ?? '', 'stub.log'), `${what}\n`);
  if (what.startsWith('hang')) continue;
  if (what.startsWith('die-before')) process.exit(7);
  if (what.startsWith('echo') || Array.isArray(command)) {
    const variables = Object.entries(process.env).filter(([name]) => name.startsWith('HAVERSACK_'));
    tell(JSON.stringify({ content: JSON.stringify([command, Object.fromEntries(variables)]), is_error: false }));
  } else if (what.startsWith('nonsense')) {
    tell('what?');
  } else {
    real.stdin.write(`${line}\n`);
    const answer = await answers.next();
    if (what.startsWith('die-after')) process.exit(7);
    tell(String(answer.value));
  }
}
real.stdin.end();
