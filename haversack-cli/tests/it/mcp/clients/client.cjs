// The official TypeScript clients: do what a plan says, and print what they got as JSON (see ../clients.rs).

"use strict";

const plan = JSON.parse(process.argv[2]);
const isNewest = plan.revision >= "2026";

// How often the memory is changed until somebody is told, and how long is waited each time. Whoever subscribed in the older revision is told of
// the first change; the newest says that it listens before it begins to.
const [TRIES, PATIENCE_MS] = isNewest ? [30, 2000] : [1, 60_000];

/** Returns the parts of a package: the one of today, or the one that most clients were built with. */
function load() {
  if (plan.package === "@modelcontextprotocol/client") {
    const { Client, StreamableHTTPClientTransport } = require(plan.package);
    const { StdioClientTransport } = require(`${plan.package}/stdio`);
    return { Client, StdioClientTransport, StreamableHTTPClientTransport, updated: "notifications/resources/updated" };
  }
  const { Client } = require(`${plan.package}/client/index.js`);
  const { StdioClientTransport } = require(`${plan.package}/client/stdio.js`);
  const { StreamableHTTPClientTransport } = require(`${plan.package}/client/streamableHttp.js`);
  const { ResourceUpdatedNotificationSchema } = require(`${plan.package}/types.js`);
  return { Client, StdioClientTransport, StreamableHTTPClientTransport, updated: ResourceUpdatedNotificationSchema };
}

const parts = load();

/** Connects a client; `told` gets the addresses of what changed. */
async function connect(name, told) {
  const mode = isNewest ? { pin: plan.revision } : "legacy";
  const client = new parts.Client({ name, version: "1" }, { versionNegotiation: { mode } });
  client.setNotificationHandler(parts.updated, (message) => told(message.params.uri));
  const transport = plan.http
    ? new parts.StreamableHTTPClientTransport(new URL(plan.http.url), {
        requestInit: { headers: { Authorization: `Bearer ${plan.http.token}` } },
      })
    : new parts.StdioClientTransport({ command: plan.stdio.command, args: ["mcp"], env: plan.stdio.environment });
  // The first line tells only its transport which revision was agreed on.
  transport.setProtocolVersion ??= (version) => (transport.protocolVersion = version);
  await client.connect(transport);
  return { client, transport };
}

async function call(client, tool, input) {
  const result = await client.callTool({ name: tool, arguments: input });
  if (result.structuredContent !== undefined) throw new Error(`structured: ${JSON.stringify(result)}`);
  return { text: result.content[0].text, isError: result.isError === true };
}

/** Returns the code of an error, which must come. */
async function refused(request) {
  let answer;
  try {
    answer = await request;
  } catch (error) {
    if (typeof error.code !== "number") throw error;
    return { code: error.code, data: error.data ?? null };
  }
  throw new Error(`not refused: ${JSON.stringify(answer)}`);
}

/** Lets another client change a memory until this one is told. */
async function changed(client, other, updates) {
  const { uri, path } = plan.changed;
  const subscription = isNewest ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
  if (!isNewest) await client.subscribeResource({ uri });
  for (let number = 0; number < TRIES && updates.length === 0; number++) {
    await other.callTool({ name: "delete", arguments: { path } });
    await other.callTool({ name: "create", arguments: { path, file_text: `${number}` } });
    const end = Date.now() + PATIENCE_MS;
    while (updates.length === 0 && Date.now() < end) await new Promise((done) => setTimeout(done, 20));
  }
  if (isNewest) await subscription.close();
  else await client.unsubscribeResource({ uri });
  return updates[0] ?? null;
}

/** Edits a file many times while others do so too. */
async function edit(client, name) {
  for (let number = 0; number < plan.edits.times; number++) {
    const input = { path: plan.edits.path, old_str: "list", new_str: `list\n${name} ${number}` };
    const told = await call(client, "str_replace", input);
    if (told.isError) throw new Error(told.text);
  }
}

async function main() {
  const updates = [];
  const one = await connect("lamp-keeper", (uri) => updates.push(uri));
  const two = await connect("tide-watcher", () => {});
  const { client } = one;
  const report = {
    revision: client.getNegotiatedProtocolVersion?.() ?? one.transport.protocolVersion ?? null,
    server: client.getServerVersion().name,
    instructions: client.getInstructions(),
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    calls: [],
  };
  for (const [tool, input] of plan.calls) report.calls.push(await call(client, tool, input));
  report.unknownTool = await refused(client.callTool({ name: "format_disk", arguments: {} }));
  report.resources = (await client.listResources()).resources.map((resource) => resource.uri);
  report.templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
  report.read = (await client.readResource({ uri: plan.read })).contents[0].text;
  report.unknownResource = await refused(client.readResource({ uri: `${plan.read}.none` }));
  report.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  const prompt = await client.getPrompt({ name: "remember", arguments: { arguments: "the lamp is white" } });
  report.prompt = prompt.messages[0].content.text;
  report.unknownPrompt = await refused(client.getPrompt({ name: "forget" }));
  report.updated = await changed(client, two.client, updates);
  await Promise.all([edit(client, "lamp-keeper"), edit(two.client, "tide-watcher")]);
  if (plan.http && !isNewest) await one.transport.terminateSession();
  await client.close();
  await two.client.close();
  console.log(JSON.stringify(report));
  // Connections that are kept for later would keep it here.
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
