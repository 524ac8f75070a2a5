# Runs the program of another processor under qemu. A command that starts a second process (demo, setup) cannot be checked this way: the
# kernel does not start a program of another processor.
run() { /given/qemu-*-static /given/haversack "$@"; }
run version --verbose
run --home /tmp/laptop create diary.md 'first day
'
run --home /tmp/laptop str-replace diary.md first 1st
run --home /tmp/laptop rename diary.md notes/diary.md
run --home /tmp/laptop view notes/diary.md | grep -q '1st day'
echo 'verbs: passed'
run --home /tmp/laptop remote add file:///tmp/shared --device laptop
run --home /tmp/laptop sync
run --home /tmp/desktop join file:///tmp/shared --device desktop --yes
run --home /tmp/desktop append notes/diary.md 'day on the desktop
'
run --home /tmp/laptop append notes/diary.md 'day on the laptop
'
run --home /tmp/laptop sync
run --home /tmp/desktop sync
run --home /tmp/laptop sync
run --home /tmp/laptop view notes/diary.md >/tmp/laptop.txt
run --home /tmp/desktop view notes/diary.md >/tmp/desktop.txt
cmp /tmp/laptop.txt /tmp/desktop.txt
for line in '1st day' 'day on the desktop' 'day on the laptop'; do grep -qx "$line" /tmp/laptop.txt; done
echo 'sync of two homes: passed'
run --home /tmp/laptop recall desktop | grep -q notes/diary.md
echo 'recall: passed'
printf '%s\n' '{"command":"view","path":"/memories/notes/diary.md"}' | run --home /tmp/laptop memory-tool | grep -q '1st day'
echo 'memory-tool: passed'
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"check","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | run --home /tmp/laptop mcp >/tmp/mcp.txt
grep -q '"id":2' /tmp/mcp.txt || { cat /tmp/mcp.txt; exit 1; }
echo 'mcp: passed'
rm -rf /home/me/.local /home/me/.cache
