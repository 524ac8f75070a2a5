/** What the model is told, to the letter. */

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ToolError } from '@anthropic-ai/sdk/resources/beta/messages';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { create, LISTING, Machine, replace, told, view } from './support.js';

const A = '/memories/lighthouse/ports.md';
const NONE = '/memories/none.md';
const EDITED = 'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n';
const CONTENT = `Here's the content of ${A} with line numbers:\n`;
const COMMANDS = 'the commands are view, create, str_replace, insert, delete and rename';
const ALL_LINES = `${CONTENT}     1\tstaging 5433\n     2\tlive 443\n     3\tstaging\n     4\t`;

const insert = (path: string, insert_line: number, insert_text: string) => ({ command: 'insert', path, insert_line, insert_text });
const rename = (old_path: string, new_path: string) => ({ command: 'rename', old_path, new_path });
const remove = (path: string) => ({ command: 'delete', path });

/** Commands in order, what each is answered, and whether that is an error. */
const CONVERSATION: [unknown, string, boolean][] = [
  [view('/memories'), LISTING, false],
  [create(A, 'staging 5433\nlive 443\nstaging\n'), `File created successfully at: ${A}`, false],
  [create(A, 'x'), `Error: File ${A} already exists`, true],
  [view(A), ALL_LINES, false],
  [{ ...view(A), view_range: [2, 2] }, `${CONTENT}     2\tlive 443`, false],
  [{ ...view(A), view_range: [2, -1] }, `${CONTENT}     2\tlive 443\n     3\tstaging\n     4\t`, false],
  [{ ...view(A), view_range: null }, ALL_LINES, false],
  [view(NONE), `The path ${NONE} does not exist. Please provide a valid path.`, true],
  [replace(A, '5433', '5434'), `${EDITED}     1\tstaging 5434\n     2\tlive 443\n     3\tstaging`, false],
  [replace(A, '9', '1'), `No replacement was performed, old_str \`9\` did not appear verbatim in ${A}.`, true],
  [
    replace(A, 'staging', 'x'),
    'No replacement was performed. Multiple occurrences of old_str `staging` in lines: 1, 3. Please ensure it is unique',
    true,
  ],
  [replace(NONE, 'a', 'b'), `Error: The path ${NONE} does not exist. Please provide a valid path.`, true],
  // The SDK's own tool breaks on this: without new_str, old_str is removed.
  [
    { command: 'str_replace', path: A, old_str: ' 5434' },
    `${EDITED}     1\tstaging\n     2\tlive 443\n     3\tstaging`,
    false,
  ],
  [insert(A, 0, '# Ports\n'), `The file ${A} has been edited.`, false],
  [
    insert(A, 9, 'x'),
    'Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 4]',
    true,
  ],
  [insert(NONE, 0, 'x'), `Error: The path ${NONE} does not exist`, true],
  [rename(A, '/memories/p.md'), `Successfully renamed ${A} to /memories/p.md`, false],
  [rename(A, '/memories/q.md'), `Error: The path ${A} does not exist`, true],
  [create('/memories/q.md', ''), 'File created successfully at: /memories/q.md', false],
  [rename('/memories/q.md', '/memories/p.md'), 'Error: The destination /memories/p.md already exists', true],
  [remove('/memories/q.md'), 'Successfully deleted /memories/q.md', false],
  [remove('/memories/q.md'), 'Error: The path /memories/q.md does not exist', true],
  [remove('/memories'), 'Cannot delete the /memories directory itself', true],
  [view('/etc/passwd'), 'Path must start with /memories, got: /etc/passwd', true],
  [view('/memories/../x'), 'Path /memories/../x would escape /memories directory', true],
  // A command that the SDK does not know, and input that is no command.
  [{ command: 'undo' }, `Error: Unknown command \`undo\`; ${COMMANDS}`, true],
  [{ command: 'toString' }, `Error: Unknown command \`toString\`; ${COMMANDS}`, true],
  [{ command: 'view' }, 'Error: The parameter `path` of `view` is missing', true],
  [{ command: 'create', path: 5 }, 'Error: The parameter `path` of `create` must be a string, not a number', true],
  ['view', 'Error: The input must be a JSON object, not a string', true],
  [null, 'Error: The input must be a JSON object, not null', true],
  [{ command: [] }, 'Error: `command` must be a string, not a list', true],
];

test('the answers are the documented ones', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  assert.equal(JSON.stringify(tool), '{"type":"memory_20250818","name":"memory"}');
  for (const [command, text, isError] of CONVERSATION) {
    assert.deepEqual(await told(tool, command), [text, isError], JSON.stringify(command));
  }
  assert.equal(machine.read('p.md'), '# Ports\nstaging\nlive 443\nstaging\n');
});

test('the SDK makes a tool of it, too', async () => {
  await using machine = new Machine();
  const tool = betaMemoryTool(machine.tool());
  const run = async (command: unknown) => tool.run(tool.parse(command));
  assert.equal(await run(view('/memories')), LISTING);
  await assert.rejects(async () => run(view(NONE)), ToolError);
});

test('what the model sent is passed on as it is', async () => {
  await using machine = new Machine();
  const tool = machine.tool({ program: machine.stub() });
  const path = '/memories/echo';
  const sent = [
    view(path),
    { ...view(path), view_range: null },
    { ...view(path), view_range: [1, 2, 3] },
    { ...view(path), view_range: 'all' },
    { command: 'str_replace', path, old_str: 'a' },
    { command: 'str_replace', path, old_str: 'a', new_str: null },
    { command: 'insert', path, insert_line: '1', insert_text: 2.5, more: { a: [true] } },
    { command: 'nothing we know', path },
    [1, 'two'],
  ];
  for (const command of sent) {
    const [passedOn] = JSON.parse(String((await told(tool, command))[0])) as [unknown];
    assert.deepEqual(passedOn, command);
  }
});

test('any text is kept', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  const texts = [
    'quotes " \' ` \\ \t and \r\n line ends\n',
    'Grüße, 日本, 👩‍👩‍👧, e\u0301, \u2028 \u2029 \u0085 \x7f\n',
    '',
    'no newline at the end',
    `${'x'.repeat(5 * 1024 * 1024)}\n`,
  ];
  for (const [number, text] of texts.entries()) {
    const name = `${number} – ü.md`;
    assert.equal((await told(tool, create(`/memories/${name}`, text)))[1], false);
    assert.ok(readFileSync(join(machine.home, 'memory', name)).equals(Buffer.from(text)), name);
  }
  const [half, isError] = await told(tool, create('/memories/half.md', '\ud800'));
  assert.ok(isError && String(half).startsWith('Error: Invalid JSON: '), String(half));
  assert.deepEqual(await told(tool, create('/memories/large.md', 'x'.repeat(17 * 1024 * 1024))), [
    'Error: The command is longer than 16777216 bytes and was not carried out',
    true,
  ]);
  const [shown] = await told(tool, view('/memories/1 – ü.md'));
  assert.ok(String(shown).includes('👩‍👩‍👧, e\u0301, \u2028 \u2029 \u0085 \x7f'), String(shown));
});

test('an image is an image', async () => {
  await using machine = new Machine();
  mkdirSync(join(machine.home, 'memory'), { recursive: true });
  const image = Buffer.from('\x89PNG\r\n\x1a\n\x00\xff', 'latin1');
  writeFileSync(join(machine.home, 'memory', 'map.png'), image);
  const source = { type: 'base64', media_type: 'image/png', data: image.toString('base64') };
  assert.deepEqual(await told(machine.tool(), view('/memories/map.png')), [[{ type: 'image', source }], false]);
});

test('everything is cleared', async () => {
  await using machine = new Machine();
  const tool = machine.tool();
  assert.equal(await tool.clearAllMemory(), 'All memory cleared', 'also when there is nothing');
  for (const name of ['a.md', '.hidden.md', 'deep/er/b.md', 'grüße 日本.md']) {
    await told(tool, create(`/memories/${name}`, 'x'));
  }
  assert.equal(await tool.clearAllMemory(), 'All memory cleared');
  assert.deepEqual(await told(tool, view('/memories')), [LISTING, false]);
  assert.deepEqual(readdirSync(join(machine.home, 'memory')), []);
  symlinkSync(machine.base, join(machine.home, 'memory', 'link'));
  await assert.rejects(tool.clearAllMemory(), /Memory was cleared except for what Haversack leaves alone: link/);
});
