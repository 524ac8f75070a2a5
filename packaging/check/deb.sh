dpkg -i /given/*.deb
test -f /usr/share/man/man1/haversack.1.gz || test -f /usr/share/bash-completion/completions/haversack
haversack=haversack
test -s /usr/share/haversack/completions/haversack.ps1
. /given/use.sh
dpkg -P haversack
test ! -e /usr/bin/haversack
