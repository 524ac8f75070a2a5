/**
 * An agent that remembers. Ask it something, and in another run something about it:
 *
 * node agent.js "Staging listens on 5433. Remember that."
 * node agent.js "Where does staging listen?"
 */

import Anthropic from '@anthropic-ai/sdk';
import { HaversackMemoryTool } from 'haversack';

const client = new Anthropic();
await using memory = new HaversackMemoryTool({ agent: 'example' });
const runner = client.beta.messages.toolRunner({
  model: 'claude-sonnet-5-5',
  max_tokens: 4096,
  tools: [memory],
  messages: [{ role: 'user', content: process.argv.slice(2).join(' ') || 'What do you remember?' }],
});
for await (const message of runner) {
  for (const block of message.content) {
    if (block.type === 'text') console.log(block.text);
    if (block.type === 'tool_use') console.error(`[${block.name}] ${JSON.stringify(block.input)}`);
  }
}
