/** The guide's examples, compiled and run as they are written. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { create, LISTING, Machine, PROGRAM, says, ScriptedApi, uses } from './support.js';

const NOTE = '/memories/lighthouse.md';
const CREATED = { type: 'tool_result', tool_use_id: 'toolu_1', content: `File created successfully at: ${NOTE}` };

/** For each example: what the model says, what it is told, what is printed. */
const EXAMPLES = [
  { turns: [[uses(1, create(NOTE, 'staging listens on 5433\n'))], [says('I will.')]], results: [CREATED], printed: 'I will.\n' },
  { turns: [], results: [], printed: `${LISTING}\n` },
];

/** The package, as it was copied or as it is in the project. */
const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));
const GUIDE = process.env['GUIDE'] ?? join(PACKAGE, '../docs/guide/typescript.md');
const TSC = process.env['TSC'] ?? join(PACKAGE, 'node_modules/.bin/tsc');

test('every example does what it says', async () => {
  await using machine = new Machine();
  const guide = readFileSync(GUIDE, 'utf8');
  const examples = [...guide.matchAll(/^```typescript\n(.*?)^```$/gms)].map(([, code]) => code ?? '');
  assert.equal(examples.length, EXAMPLES.length);
  // In the package, where they find it and the SDK.
  const directory = join(PACKAGE, 'build/guide');
  mkdirSync(directory, { recursive: true });
  for (const [number, code] of examples.entries()) writeFileSync(join(directory, `${number}.ts`), code);
  const compilerOptions = { rootDir: '.', outDir: 'out', declaration: false, declarationMap: false };
  const settings = { extends: '../../tsconfig.json', compilerOptions, include: ['*.ts'] };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(settings));
  await promisify(execFile)(TSC, ['--project', directory]);
  for (const [number, { turns, results, printed }] of EXAMPLES.entries()) {
    await using api = await ScriptedApi.start(turns);
    const env = {
      ...machine.environment,
      ANTHROPIC_BASE_URL: api.url,
      ANTHROPIC_API_KEY: 'none',
      HAVERSACK_PROGRAM: PROGRAM,
    };
    const script = join(directory, 'out', `${number}.js`);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { env, cwd: machine.base });
    assert.deepEqual([stdout, stderr], [printed, '']);
    assert.deepEqual(api.results(), results);
  }
  assert.ok(existsSync(join(machine.base, 'scout-home/memory/lighthouse.md')));
});
