/** The process behind a tool: started late, replaced when it died, never out of step. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, mock, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { HaversackMemoryTool, ProgramNotFoundError } from 'haversack';
import { create, isRunning, isZombie, LISTING, Machine, pidOf, PROGRAM, replace, told, UNKNOWN, view, waitUntil } from './support.js';

const NOTES = '/memories/notes.md';
const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));

let warned: string[] = [];
beforeEach(() => {
  warned = [];
  // The message of a process that dies on purpose is not needed here.
  mock.method(console, 'warn', (text: string) => warned.push(text));
});

test('it starts with the first call and stays', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  assert.equal(tool.pid, undefined);
  await told(tool, view('/memories'));
  const pid = pidOf(tool);
  await told(tool, create(NOTES, 'a'));
  assert.equal(pidOf(tool), pid);
  await tool.close();
  assert.ok(!isRunning(pid));
  await tool.close();
  assert.equal((await told(tool, view(NOTES)))[1], false);
  assert.notEqual(pidOf(tool), pid);
});

test('it ends with the block', async () => {
  await using machine = new Machine();
  let pid = 0;
  await assert.rejects(async () => {
    await using tool = machine.tool();
    await told(tool, view('/memories'));
    pid = pidOf(tool);
    throw new Error('on purpose');
  }, /on purpose/);
  assert.ok(!isRunning(pid));
});

test('it ends with the tool', async () => {
  await using machine = new Machine();
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const use = async (): Promise<number> => {
    const options = { home: machine.home, program: PROGRAM, environment: machine.environment };
    const tool = new HaversackMemoryTool(options);
    await told(tool, view('/memories'));
    return pidOf(tool);
  };
  const pid = await use();
  await waitUntil('the process ends', () => {
    collect();
    return !isRunning(pid);
  });
});

test('it ends with the program that forgot it, and does not keep it from ending', async () => {
  await using machine = new Machine();
  for (const how of ['left', 'killed']) {
    const options = { env: machine.environment, encoding: 'utf8' } as const;
    const done = spawnSync(process.execPath, [WORKER, PROGRAM, machine.home, how], options);
    assert.equal(done.stderr, '');
    assert.equal(done.signal, how === 'killed' ? 'SIGKILL' : null);
    await waitUntil('the process ends', () => !isRunning(Number(done.stdout)));
  }
});

test('a missing program is told at once', async () => {
  await using machine = new Machine();
  const cure = 'install Haversack, or say where its program is, with the option program or the variable HAVERSACK_PROGRAM';
  for (const [program, where] of [
    ['/none/haversack', 'there is no program at /none/haversack'],
    ['no-such-program', 'there is no `no-such-program` on the PATH'],
    [undefined, 'there is no `haversack` on the PATH'],
    [machine.base, `there is no program at ${machine.base}`],
  ] as const) {
    assert.throws(() => machine.tool({ program }), new ProgramNotFoundError(`${where}: ${cure}`));
  }
});

test('the program is found', async () => {
  await using machine = new Machine();
  for (const variables of [{ PATH: dirname(PROGRAM) }, { HAVERSACK_PROGRAM: PROGRAM }]) {
    const tool = machine.tool({ program: undefined, environment: { ...machine.environment, ...variables } });
    assert.deepEqual(await told(tool, view('/memories')), [LISTING, false]);
  }
  assert.deepEqual(warned, [], 'it has nothing to complain of');
});

test('a program that went away is told', async () => {
  await using machine = new Machine();
  const program = join(machine.base, 'haversack');
  symlinkSync(PROGRAM, program);
  const tool = machine.tool({ program });
  unlinkSync(program);
  const [text, isError] = await told(tool, view('/memories'));
  assert.ok(isError);
  assert.match(String(text), /^Error: The command was not carried out: the memory did not start: .*ENOENT/);
  symlinkSync(PROGRAM, program);
  assert.deepEqual(await told(tool, view('/memories')), [LISTING, false]);
});

test('why it did not start is told', async () => {
  await using machine = new Machine();
  mkdirSync(machine.home);
  writeFileSync(join(machine.home, 'config.toml'), '[memory-tool]\nview-character = 1\n');
  const [why] = await told(machine.tool(), view('/memories'));
  assert.match(String(why), /was not carried out: the memory did not start: exit status 1\n(.*\n)*.*view-characters/);
  const [other] = await told(machine.tool({ program: 'cat' }), view('/memories'));
  assert.match(String(other), /was not carried out: the memory did not start/);
});

test('agent and session reach it', async () => {
  await using machine = new Machine();
  const program = machine.stub();
  const environment = { ...machine.environment, HAVERSACK_AGENT: 'of the shell' };
  const variables = async (tool: HaversackMemoryTool): Promise<unknown> =>
    (JSON.parse(String((await told(tool, view('/memories/echo')))[0])) as unknown[])[1];
  assert.deepEqual(await variables(machine.tool({ program, environment, agent: 'scout', session: 's-1' })), {
    HAVERSACK_AGENT: 'scout',
    HAVERSACK_SESSION: 's-1',
  });
  assert.deepEqual(await variables(machine.tool({ program, environment })), { HAVERSACK_AGENT: 'of the shell' });
});

test('death between calls', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  await told(tool, create(NOTES, '0\n'));
  for (let number = 0; number < 20; number += 1) {
    const pid = pidOf(tool);
    process.kill(pid, 'SIGKILL');
    if (number % 2 === 0 || !existsSync('/proc/self/stat')) {
      await waitUntil('it is gone', () => tool.pid === undefined);
    } else {
      // It is gone, and this program has had no time to notice.
      const waiting = new Int32Array(new SharedArrayBuffer(4));
      const end = Date.now() + 60_000;
      while (!isZombie(pid) && Date.now() < end) Atomics.wait(waiting, 0, 0, 1);
      assert.equal(pidOf(tool), pid);
    }
    const edited = await told(tool, replace(NOTES, `${number}\n`, `${number + 1}\n`));
    assert.equal(edited[1], false, String(edited[0]));
    assert.notEqual(pidOf(tool), pid);
  }
  assert.equal(machine.read('notes.md'), '20\n');
});

test('death in the middle of a call', async () => {
  await using machine = new Machine();
  const tool = machine.tool({ program: machine.stub() });
  for (const [name, isKept] of [
    ['die-before.md', false],
    ['die-after.md', true],
  ] as const) {
    assert.deepEqual(await told(tool, create(`/memories/${name}`, 'once\n')), [UNKNOWN, true]);
    assert.equal(machine.has(name), isKept);
    assert.equal(machine.noted().filter((noted) => noted === name).length, 1, 'it is not repeated');
    const other = `/memories/${isKept}.md`;
    assert.deepEqual(await told(tool, create(other, '')), [`File created successfully at: ${other}`, false]);
  }
  assert.deepEqual(await told(tool, create('/memories/nonsense.md', 'x')), [UNKNOWN, true]);
  assert.equal((await told(tool, view('/memories')))[1], false);
});

test('killed while it works', async () => {
  await using machine = new Machine();
  const tool = machine.tool({ program: machine.stub() });
  const hanging = told(tool, create('/memories/hang', 'x'));
  await waitUntil('it is at work', () => machine.noted().includes('hang'));
  process.kill(pidOf(tool), 'SIGKILL');
  assert.deepEqual(await hanging, [UNKNOWN, true]);
  assert.deepEqual(await told(tool, view('/memories')), [LISTING, false]);
});

test('an aborted call does not answer the next', async () => {
  await using machine = new Machine();
  const tool = machine.tool({ program: machine.stub() });
  await told(tool, create(NOTES, 'a\n'));
  const pid = pidOf(tool);
  const [forHanging, forNever] = [new AbortController(), new AbortController()];
  const hanging = told(tool, view('/memories/hang'), forHanging.signal);
  await waitUntil('it is at work', () => machine.noted().includes('hang'));
  const waiting = told(tool, view(NOTES));
  const never = told(tool, create('/memories/never.md', ''), forNever.signal);
  forNever.abort();
  await setTimeout(20);
  assert.ok(isRunning(pid), "a call that only waited ends nobody else's");
  forHanging.abort();
  assert.deepEqual(await hanging, [UNKNOWN, true]);
  assert.ok(String((await waiting)[0]).endsWith('     1\ta\n     2\t'));
  assert.deepEqual(await never, ['Error: The command was not carried out: it was given up before its turn', true]);
  assert.ok(!machine.has('never.md'));
  assert.notEqual(pidOf(tool), pid);
  assert.ok(!isRunning(pid));
});

test('aborted at any moment', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  await told(tool, create(NOTES, '0\n'));
  for (let number = 0; number < 60; number += 1) {
    const path = `/memories/${number}.md`;
    const controller = new AbortController();
    const call = told(tool, create(path, ''), controller.signal);
    await setTimeout((number % 20) / 2);
    controller.abort();
    const [text, isError] = await call;
    assert.ok(isError || text === `File created successfully at: ${path}`, String(text));
    const edited = await told(tool, replace(NOTES, `${number}\n`, `${number + 1}\n`));
    assert.equal(edited[1], false, String(edited[0]));
  }
  assert.equal(machine.read('notes.md'), '60\n');
});

test('many calls at once on one tool', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  await told(tool, create(NOTES, 'end\n'));
  const pid = pidOf(tool);
  const work = async (name: number): Promise<void> => {
    for (let number = 0; number < 10; number += 1) {
      const path = `/memories/${name}-${number}.md`;
      const edited = await told(tool, replace(NOTES, 'end', `${name} ${number}\nend`));
      assert.equal(edited[1], false);
      const text = `${name} ${number}`;
      assert.deepEqual(await told(tool, create(path, text)), [`File created successfully at: ${path}`, false]);
      assert.ok(String((await told(tool, view(path)))[0]).endsWith(`     1\t${text}`));
    }
  };
  await Promise.all(Array.from({ length: 16 }, (_, name) => work(name)));
  assert.equal(pidOf(tool), pid, 'one process did it all');
  const lines = machine.read('notes.md').trimEnd().split('\n');
  assert.equal(new Set(lines).size, 161);
  assert.equal(lines.length, 161);
});

test('two programs keep every edit', async () => {
  await using machine = new Machine();
  await told(machine.tool(), create(NOTES, 'end\n'));
  const started = ['left', 'right'].map((name) => {
    const stdio = ['pipe', 'pipe', 'inherit'] as const;
    return spawn(process.execPath, [WORKER, PROGRAM, machine.home, 'edit', name], { env: machine.environment, stdio: [...stdio] });
  });
  await Promise.all(started.map(({ stdout }) => new Promise((resolve) => stdout!.once('data', resolve))));
  const ended = started.map((worker) => new Promise((resolve) => worker.once('close', resolve)));
  for (const { stdin } of started) stdin!.end('go\n');
  assert.deepEqual(await Promise.all(ended), [0, 0]);
  const lines = machine.read('notes.md').trimEnd().split('\n');
  for (const name of ['left', 'right']) {
    const own = lines.filter((line) => line.startsWith(name));
    assert.deepEqual(
      own,
      Array.from({ length: 100 }, (_, number) => `${name} ${number}`),
    );
  }
  assert.equal(lines.length, 201);
});
