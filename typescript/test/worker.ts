/** A program that uses a tool and ends without closing it: by itself, killed, or after a hundred edits of one file. */

import { once } from 'node:events';
import { HaversackMemoryTool } from 'haversack';

const [program = '', home = '', how = '', name = ''] = process.argv.slice(2);
const tool = new HaversackMemoryTool({ program, home });
await tool.view({ command: 'view', path: how === 'edit' ? '/memories/notes.md' : '/memories' });
process.stdout.write(`${tool.pid}`);
if (how === 'killed') process.kill(process.pid, 'SIGKILL');
if (how === 'edit') {
  await once(process.stdin, 'data');
  for (let number = 0; number < 100; number += 1) {
    const new_str = `${name} ${number}\nend`;
    await tool.str_replace({ command: 'str_replace', path: '/memories/notes.md', old_str: 'end', new_str });
  }
}
