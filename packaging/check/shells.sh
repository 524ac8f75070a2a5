dpkg -i /given/*.deb >/tmp/dpkg.txt
# Debian's minimal system leaves manual pages out by a setting of dpkg, so they are read from the package.
dpkg-deb -x /given/*.deb /tmp/unpacked
MANPATH=/tmp/unpacked/usr/share/man man --warnings -P cat haversack-sync >/tmp/man.txt
grep -q -e '--allow-deletes' /tmp/man.txt
echo 'man: passed'
cd /home/me
haversack create notes/lamp.md text
haversack create notes/lens.md text
cat >/tmp/bash.sh <<'SHELL'
. /usr/share/bash-completion/bash_completion
_completion_loader haversack 2>/dev/null || _comp_load haversack
COMP_LINE='haversack view notes/l' COMP_POINT=22 COMP_WORDS=(haversack view notes/l) COMP_CWORD=2 COMP_TYPE=9
function=$(complete -p haversack | sed 's/.*-F \([^ ]*\).*/\1/')
"$function" haversack notes/l view
printf '%s\n' "${COMPREPLY[@]}"
SHELL
printf 'notes/lamp.md\nnotes/lens.md\n' >/tmp/expected.txt
bash --norc /tmp/bash.sh >/tmp/bash.txt
diff /tmp/expected.txt /tmp/bash.txt
echo 'bash: passed'
fish -c "complete --do-complete 'haversack view notes/l'" >/tmp/fish.txt
diff /tmp/expected.txt /tmp/fish.txt
echo 'fish: passed'
cat >/tmp/zsh.zsh <<'SHELL'
zmodload zsh/zpty
zpty terminal 'TERM=dumb zsh -f -i'
zpty -w terminal 'fpath=(/usr/share/zsh/vendor-completions $fpath); autoload -Uz compinit; compinit -u -D; PS1=READY%% ; print LOADED-$((1+1))'
seen=''
for _ in {1..200}; do
    while zpty -r -t terminal part; do seen+=$part; done
    [[ $seen == *LOADED-2* ]] && break
    sleep 0.1
done
seen=''
zpty -w -n terminal $'haversack view notes/le\t'
for _ in {1..200}; do
    while zpty -r -t terminal part; do seen+=$part; done
    [[ $seen == *notes/lens.md* ]] && { print found; exit 0 }
    sleep 0.1
done
print -r -- "$seen"
exit 1
SHELL
zsh -f /tmp/zsh.zsh
echo 'zsh: passed'
echo 'powershell: skipped, Debian has none'
