#!/bin/sh
# Runs haversack for a hook, or as MCP server (mcp). It always succeeds: a problem with the memory must not stop an agent.
# Where the settings have haversack's hooks too, they do it alone, and this does nothing (--plugin).
event=$1
found=$(command -v haversack 2>/dev/null)
# A hook may run with a PATH that is not the user's.
for directory in "$HOME/.local/bin" "${CARGO_HOME:-$HOME/.cargo}/bin" /usr/local/bin /opt/homebrew/bin; do
    [ -n "$found" ] && break
    [ -x "$directory/haversack" ] && found=$directory/haversack
done
if [ "$event" = mcp ]; then
    [ -n "$found" ] && exec "$found" mcp --plugin
    echo 'haversack: the program is not installed. The README of the plugin says how' >&2
    exit 1
fi
if [ -z "$found" ]; then
    cat >/dev/null
    if [ "$event" = SessionStart ]; then
        echo '{"systemMessage":"haversack: the program is not installed, so memory stays on this machine. The README of the plugin says how"}'
    fi
    exit 0
fi
"$found" hook --plugin "$event"
exit 0
