/** The example, and two agents, against the real SDK and an API that answers from a script. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { create, LISTING, Machine, PROGRAM, replace, says, ScriptedApi, told, uses, view } from './support.js';

const PORTS = '/memories/lighthouse/ports.md';
const EDITED = 'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n';

/** What the model says in each turn. Two calls in one turn, errors among them. */
const TURNS = [
  [says('I look at what I know.'), uses(1, view('/memories'))],
  [uses(2, create(PORTS, 'staging 5433\n'))],
  [uses(3, replace(PORTS, '5433', '5434')), uses(4, replace(PORTS, '5433', '5435'))],
  [uses(5, { command: 'str_replace', path: PORTS, old_str: 'staging ' })],
  [uses(6, { command: 'forget', path: PORTS }), uses(7, view('/memories/map.png'))],
  [says('Staging listens on 5434.')],
];

const result = (number: number, content: unknown, isError = false) => ({
  type: 'tool_result',
  tool_use_id: `toolu_${number}`,
  content,
  ...(isError ? { is_error: true } : {}),
});

const RESULTS = [
  result(1, `${LISTING}\n8B\t/memories/map.png`),
  result(2, `File created successfully at: ${PORTS}`),
  result(3, `${EDITED}     1\tstaging 5434\n     2\t`),
  result(4, `No replacement was performed, old_str \`5433\` did not appear verbatim in ${PORTS}.`, true),
  result(5, `${EDITED}     1\t5434\n     2\t`),
  result(
    6,
    'Error: Unknown command `forget`; the commands are view, create, str_replace, insert, delete and rename',
    true,
  ),
  result(7, [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }]),
];

function withMap(machine: Machine): void {
  mkdirSync(join(machine.home, 'memory'), { recursive: true });
  writeFileSync(join(machine.home, 'memory', 'map.png'), Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'));
}

function assertAllOfIt(machine: Machine, api: ScriptedApi): void {
  assert.equal(api.requests.length, TURNS.length);
  assert.deepEqual(api.requests[0]?.tools, [{ type: 'memory_20250818', name: 'memory' }]);
  assert.deepEqual(api.results(), RESULTS);
  assert.equal(machine.read('lighthouse/ports.md'), '5434\n');
}

test('the example', async () => {
  await using machine = new Machine();
  await using api = await ScriptedApi.start(TURNS);
  withMap(machine);
  const env = {
    ...machine.environment,
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'none',
    HAVERSACK_HOME: machine.home,
    HAVERSACK_PROGRAM: PROGRAM,
  };
  const example = fileURLToPath(new URL('../examples/agent.js', import.meta.url));
  const question = [example, 'Where', 'does staging listen?'];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, question, { env, cwd: machine.base });
  assert.equal(stdout, 'I look at what I know.\nStaging listens on 5434.\n');
  assert.equal(stderr.trimEnd().split('\n').length, 7, stderr);
  assert.deepEqual(api.requests[0]?.messages, [{ role: 'user', content: 'Where does staging listen?' }]);
  assertAllOfIt(machine, api);
});

test('what else is said of the tool is sent', async () => {
  await using machine = new Machine();
  await using api = await ScriptedApi.start([[says('Yes.')]]);
  const client = new Anthropic({ baseURL: api.url, apiKey: 'none' });
  const memory = machine.tool({ cacheControl: { type: 'ephemeral' } });
  await client.beta.messages.toolRunner({
    model: 'claude-sonnet-5-5',
    max_tokens: 1024,
    tools: [memory],
    messages: [{ role: 'user', content: 'Well?' }],
  });
  const tool = { type: 'memory_20250818', name: 'memory', cache_control: { type: 'ephemeral' } };
  assert.deepEqual(api.requests[0]?.tools, [tool]);
});

test('two agents are told apart', async () => {
  await using machine = new Machine();
  await machine.haversack(['remote', 'add', `file://${machine.base}/remote`, '--device', 'laptop']);
  const agents = { scout: 's-1', keeper: 'k-7' };
  for (const [agent, session] of Object.entries(agents)) {
    await using memory = machine.tool({ agent, session });
    await told(memory, create(`/memories/${agent}.md`, `${agent} was here\n`));
  }
  await machine.haversack(['sync']);
  interface Log {
    changes: { agent: string; session: string; files: { path: string }[] }[];
  }
  const { changes } = JSON.parse(await machine.haversack(['log', '--json'])) as Log;
  const found = changes.flatMap(({ agent, session, files }) => files.map(({ path }) => [path, agent, session]));
  assert.deepEqual(
    found.sort(),
    Object.entries(agents)
      .map(([agent, session]) => [`${agent}.md`, agent, session])
      .sort(),
  );
});
