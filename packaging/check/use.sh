# Uses an installed haversack as two machines of one user. $haversack starts it.
$haversack version
$haversack demo >/tmp/demo.txt || { cat /tmp/demo.txt; exit 1; }
grep -q 'laptop = desktop' /tmp/demo.txt || { cat /tmp/demo.txt; exit 1; }
mkdir -p /home/me/.claude /tmp/disk
$haversack init /tmp/disk/shared --device laptop --yes
grep -q '/home/me/.local/share/haversack/bin/.*/haversack' /home/me/.claude/settings.json || { echo 'hooks do not run the program of the home'; cat /home/me/.claude/settings.json; exit 1; }
$haversack create diary.md 'first day
'
$haversack sync
$haversack --home /tmp/desktop join file:///tmp/disk/shared --device desktop --yes
$haversack --home /tmp/desktop append diary.md 'second day
'
$haversack append diary.md 'day on the laptop
'
$haversack sync
$haversack --home /tmp/desktop sync
$haversack sync
$haversack view diary.md >/tmp/laptop.txt
$haversack --home /tmp/desktop view diary.md >/tmp/desktop.txt
cmp /tmp/laptop.txt /tmp/desktop.txt
for line in 'first day' 'second day' 'day on the laptop'; do grep -qx "$line" /tmp/laptop.txt; done
$haversack doctor --json >/tmp/doctor.json || true
$haversack uninstall
if grep -q haversack /home/me/.claude/settings.json 2>/dev/null; then echo 'uninstall left hooks'; exit 1; fi
# What is left now is the memory, which is the user's.
rm -rf /home/me/.local/share/haversack /home/me/.claude
(cd /home/me && rmdir -p .local/share 2>/dev/null) || true
