export npm_config_cache=/tmp/npm npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
main=$(ls /given/haversack-[0-9]*.tgz)
program=$(ls /given/haversack-linux-*.tgz)
mkdir /tmp/project /tmp/alone
cd /tmp/project
npm init -y >/tmp/init.txt
npm install --offline --loglevel=error "$program" "$main"
haversack='npx --offline haversack'
. /given/use.sh
node --input-type=module -e '
    import { packagedProgram } from "/tmp/project/node_modules/haversack/dist/program.js";
    const expected = `/tmp/project/node_modules/@haversack/${process.platform}-${process.arch}/bin/haversack`;
    if (packagedProgram() !== expected) { throw new Error(`${packagedProgram()} instead of ${expected}`); }
'
# The shim passes on what the program says and how it ended.
if npx --offline haversack view missing.md 2>/tmp/why.txt; then exit 1; fi
grep -q missing.md /tmp/why.txt
npm uninstall --loglevel=error haversack "@haversack/linux-$(node -p process.arch)"
test -z "$(find node_modules -type f -path '*haversack*')"
# An installation for all projects brings the manual pages.
npm install --global --prefix /tmp/global --offline --loglevel=error "$program" "$main"
grep -q haversack /tmp/global/share/man/man1/haversack-sync.1
npm uninstall --global --prefix /tmp/global --loglevel=error haversack "@haversack/linux-$(node -p process.arch)"
test -z "$(find /tmp/global -type f -path '*haversack*')"
# The main package alone says what is missing.
cd /tmp/alone
npm init -y >/tmp/init.txt
npm install --offline --loglevel=error --omit=optional "$main"
if npx --offline haversack version 2>/tmp/why.txt; then exit 1; fi
grep -q 'is not installed, so the program for this system is missing' /tmp/why.txt
rm -rf /home/me/.npm /home/me/.local /home/me/.config /home/me/.cache
