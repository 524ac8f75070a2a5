cd /given
python3 -m http.server --bind 127.0.0.1 8000 >/tmp/server.txt 2>&1 &
server=$!
for _ in $(seq 100); do curl -s -o /tmp/index.html http://127.0.0.1:8000/ && break; sleep 0.1; done
export HAVERSACK_DOWNLOAD_URL=http://127.0.0.1:8000
sh /given/haversack-installer.sh
export PATH=/home/me/.local/bin:$PATH
haversack=haversack
. /given/use.sh
# The same again is an upgrade, and an archive with another hash is refused.
sh /given/haversack-installer.sh
before=$(sha256sum /home/me/.local/bin/haversack)
mkdir /tmp/forged
for archive in *.tar.gz; do echo forged >"/tmp/forged/$archive"; done
if HAVERSACK_DOWNLOAD_URL=file:///tmp/forged sh /given/haversack-installer.sh; then echo 'a forged archive was installed'; exit 1; fi
test "$before" = "$(sha256sum /home/me/.local/bin/haversack)"
sh /given/haversack-installer.sh --uninstall
kill $server
rm -rf /home/me/.local/share/haversack
(cd /home/me && rmdir -p .local/share 2>/dev/null) || true
