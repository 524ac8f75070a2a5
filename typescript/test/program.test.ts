/** Which program is started: the one that npm installed with the package comes before the PATH. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The compiled package. */
const DIST = dirname(fileURLToPath(import.meta.resolve('haversack')));

/** Makes a program in a directory. */
function program(directory: string): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, process.platform === 'win32' ? 'haversack.exe' : 'haversack');
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 });
  return path;
}

/** Installs the package into a project of its own. */
function project(context: TestContext): string {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'haversack-')));
  context.after(() => rmSync(base, { recursive: true }));
  const installed = join(base, 'node_modules', 'haversack');
  cpSync(DIST, join(installed, 'dist'), { recursive: true });
  writeFileSync(join(installed, 'package.json'), '{"type": "module"}');
  return base;
}

/** Returns the program that a fresh process finds in a project; its PATH leads to another one. */
function found(base: string, variables: Record<string, string> = {}): string {
  const script = `import { Program } from ${JSON.stringify(join(base, 'node_modules/haversack/dist/program.js'))}; console.log(new Program({}).path);`;
  const environment = { PATH: dirname(program(join(base, 'path'))), ...variables };
  return execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: environment, encoding: 'utf8' }).trim();
}

function platform(base: string): string {
  return join(base, 'node_modules', '@haversack', `${process.platform}-${process.arch}`);
}

test('program of the platform package comes before the PATH', (context) => {
  const base = project(context);
  const packaged = program(join(platform(base), 'bin'));
  writeFileSync(join(platform(base), 'package.json'), '{}');
  assert.equal(found(base), packaged);
});

test('package without a program for this system uses the PATH', (context) => {
  const base = project(context);
  assert.equal(dirname(found(base)), join(base, 'path'));
});

test('named program comes before the one of the platform package', (context) => {
  const base = project(context);
  program(join(platform(base), 'bin'));
  writeFileSync(join(platform(base), 'package.json'), '{}');
  const named = program(join(base, 'named'));
  assert.equal(found(base, { HAVERSACK_PROGRAM: named }), named);
});
