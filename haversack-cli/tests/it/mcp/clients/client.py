"""The official Python client: does what a plan says, and prints what it got as JSON (see ../clients.rs)."""

import json
import sys
import warnings

import anyio
import httpx2
from mcp import Client, Implementation, MCPError, ResourceUpdatedNotification, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning

plan = json.loads(sys.argv[1])
is_newest = plan["revision"] >= "2026"

# The number of changes until the client is told, and the seconds to wait for each. A subscriber of the older revision is told of the
# first change. The newest revision confirms a subscription before it begins.
TRIES, PATIENCE = (30, 2) if is_newest else (1, 60)

# The test uses calls that the newest revision dropped.
warnings.simplefilter("ignore", MCPDeprecationWarning)


def connect(name, told=None):
    """Returns a client that is not connected yet; `told` gets the addresses of what changed."""

    async def handler(message):
        if told is not None and isinstance(message, ResourceUpdatedNotification):
            await told.send(str(message.params.uri))

    if "http" in plan:
        headers = {"Authorization": f"Bearer {plan['http']['token']}"}
        http = httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False)
        server = streamable_http_client(plan["http"]["url"], http_client=http)
    else:
        server = StdioServerParameters(command=plan["stdio"]["command"], args=["mcp"], env=plan["stdio"]["environment"])
    mode = "auto" if is_newest else "legacy"
    who = Implementation(name=name, version="1")
    return Client(server, mode=mode, client_info=who, message_handler=handler, read_timeout_seconds=60)


async def call(client, tool, arguments):
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is None, result
    return {"text": result.content[0].text, "isError": bool(result.is_error)}


async def refused(request):
    """Returns the code of an error, which must come."""
    try:
        answer = await request
    except MCPError as error:
        return {"code": error.code, "data": error.data}
    raise AssertionError(f"not refused: {answer}")


async def changed(other, updates):
    """Lets another client change a memory until somebody is told."""
    for number in range(TRIES):
        change = {"path": plan["changed"]["path"], "file_text": f"{number}"}
        await other.call_tool("delete", {"path": change["path"]})
        await other.call_tool("create", change)
        with anyio.move_on_after(PATIENCE):
            return await updates()
    raise AssertionError("never told")


async def subscribed(client, other, updates):
    uri = plan["changed"]["uri"]
    if not is_newest:
        await client.subscribe_resource(uri)
        told = await changed(other, updates)
        await client.unsubscribe_resource(uri)
        return told
    async with client.listen(resource_subscriptions=[uri]) as subscription:

        async def updates():
            async for event in subscription:
                return event.uri

        return await changed(other, updates)


async def edit(client, name):
    """Edits a file many times while others do so too."""
    for number in range(plan["edits"]["times"]):
        line = f"list\n{name} {number}"
        told = await call(client, "str_replace", {"path": plan["edits"]["path"], "old_str": "list", "new_str": line})
        assert not told["isError"], told


async def main():
    told, updates = anyio.create_memory_object_stream(100)
    async with connect("lamp-keeper", told) as one, connect("tide-watcher") as two:
        report = {
            "revision": one.protocol_version,
            "server": one.server_info.name,
            "instructions": one.instructions,
            "tools": [tool.name for tool in (await one.list_tools()).tools],
            "calls": [await call(one, tool, arguments) for tool, arguments in plan["calls"]],
            "unknownTool": await refused(one.call_tool("format_disk", {})),
            "resources": [str(resource.uri) for resource in (await one.list_resources()).resources],
            "templates": [
                template.uri_template for template in (await one.list_resource_templates()).resource_templates
            ],
            "read": (await one.read_resource(plan["read"])).contents[0].text,
            "unknownResource": await refused(one.read_resource(plan["read"] + ".none")),
            "prompts": [prompt.name for prompt in (await one.list_prompts()).prompts],
            "prompt": (await one.get_prompt("remember", {"arguments": "the lamp is white"})).messages[0].content.text,
            "unknownPrompt": await refused(one.get_prompt("forget")),
            "updated": await subscribed(one, two, updates.receive),
        }
        async with anyio.create_task_group() as group:
            group.start_soon(edit, one, "lamp-keeper")
            group.start_soon(edit, two, "tide-watcher")
    print(json.dumps(report))


anyio.run(main)
