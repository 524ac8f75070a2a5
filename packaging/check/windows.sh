# Runs the Windows program under wine. What wine lacks, and what Windows does otherwise, is in docs/releasing.md.
export WINEPREFIX=/tmp/wine WINEDEBUG=-all WINEARCH=win64 USER=me
wine64=$(command -v wine)
run() { "$wine64" /given/haversack.exe "$@" 2>/tmp/stderr.txt || { status=$?; cat /tmp/stderr.txt; return $status; }; }
"$wine64" wineboot --init >/tmp/boot.txt 2>&1 || true
run version
run demo >/tmp/demo.txt || { cat /tmp/demo.txt; exit 1; }
grep -q 'laptop = desktop' /tmp/demo.txt || { cat /tmp/demo.txt; exit 1; }
echo 'demo: passed'
run --home 'C:\laptop' create diary.md 'first day'
run --home 'C:\laptop' str-replace diary.md first 1st
run --home 'C:\laptop' view diary.md | grep -q '1st day'
run --home 'C:\laptop' rename diary.md notes/diary.md
run --home 'C:\laptop' ls -R | grep -q notes/diary.md
echo 'verbs: passed'
# Half past eleven in the evening of UTC is the next day in Lisbon's summer.
run --home 'C:\clock' --now 2026-07-01T23:30:00Z --time-zone Europe/Lisbon event --sender Ada --direction inbound 'the crane is back'
run --home 'C:\clock' ls -R | grep -q 2026-07-02
echo 'time zones: passed'
run --home 'C:\laptop' remote add file:///C:/shared --device laptop
run --home 'C:\laptop' sync
run --home 'C:\desktop' join file:///C:/shared --device desktop --yes
run --home 'C:\desktop' append notes/diary.md ' and more'
run --home 'C:\desktop' sync
run --home 'C:\laptop' sync
run --home 'C:\laptop' view notes/diary.md | grep -q 'and more'
run --home 'C:\laptop' log | grep -q desktop
echo 'sync between two homes: passed'
printf '%s\n' '{"command":"view","path":"/memories"}' '{"command":"create","path":"/memories/tool.md","file_text":"x"}' |
    run --home 'C:\laptop' memory-tool >/tmp/tool.txt
grep -q diary.md /tmp/tool.txt || grep -q notes /tmp/tool.txt || { cat /tmp/tool.txt; exit 1; }
echo 'memory-tool: passed'
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"check","version":"1"}}}' \
    '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}' | run --home 'C:\laptop' mcp >/tmp/mcp.txt
grep -q '"id":2' /tmp/mcp.txt || { cat /tmp/mcp.txt; exit 1; }
echo 'mcp: passed'
# Another program holds the file open, shares it for reading only, and so forbids its replacement.
run --home 'C:\laptop' create held.md 'before'
run --home 'C:\laptop' sync
run --home 'C:\desktop' sync
run --home 'C:\desktop' str-replace held.md before after
run --home 'C:\desktop' sync
"$wine64" cmd /c 'ping -n 60 127.0.0.1 < C:\laptop\memory\held.md > nul' >/dev/null 2>&1 &
holder=$!
# To append nothing needs the same permission as to replace the file.
is_held() { "$wine64" cmd /c 'type nul >> C:\laptop\memory\held.md' 2>&1 | grep -q 'Sharing violation'; }
for _ in $(seq 50); do is_held && break; sleep 0.1; done
is_held
# The sync takes in everything else, names the file, and leaves it as it was.
"$wine64" /given/haversack.exe --home 'C:\laptop' sync >/tmp/held.txt 2>&1
is_held
grep -q 'held.md could not be written here' /tmp/held.txt || { cat /tmp/held.txt; exit 1; }
grep -q before /tmp/wine/drive_c/laptop/memory/held.md
kill $holder 2>/dev/null || true
"$wine64" taskkill /f /im ping.exe >/dev/null 2>&1 || true
wait $holder 2>/dev/null || true
run --home 'C:\laptop' sync
run --home 'C:\laptop' view held.md | grep -q after
echo 'a file held open: passed'
# The start of a session brings what the other machine sent, and a write of the agent leaves through the background process.
hook() { printf '{"session_id":"s","transcript_path":"","cwd":"C:\\\\work","hook_event_name":"%s","source":"startup"%s}' "$1" "$2" | run --home 'C:\laptop' hook "$1"; }
# Hooks sync for projects: for checkouts with a remote.
mkdir -p /tmp/wine/drive_c/work/.git/refs/heads /tmp/wine/drive_c/work/.git/objects
echo 'ref: refs/heads/main' >/tmp/wine/drive_c/work/.git/HEAD
printf '[remote "origin"]\n\turl = https://example.com/lighthouse.git\n' >/tmp/wine/drive_c/work/.git/config
run --home 'C:\desktop' append notes/diary.md ' from the desktop'
run --home 'C:\desktop' sync
hook SessionStart '' >/tmp/hook.txt
run --home 'C:\laptop' view notes/diary.md | grep -q 'from the desktop' || { cat /tmp/hook.txt; find /tmp/wine/drive_c/laptop -name '*.log' -exec cat {} +; exit 1; }
run --home 'C:\laptop' append notes/diary.md ' from the laptop'
hook SessionEnd ',"reason":"exit"'
for _ in $(seq 50); do
    run --home 'C:\desktop' sync
    run --home 'C:\desktop' view notes/diary.md >/tmp/desktop.txt
    grep -q 'from the laptop' /tmp/desktop.txt && break
    sleep 0.2
done
grep -q 'from the laptop' /tmp/desktop.txt
echo 'hooks: passed'
run --home 'C:\laptop' doctor >/tmp/doctor.txt || true
wineserver -k 2>/dev/null || true
