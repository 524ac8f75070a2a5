#!/bin/sh
# Installs haversack @VERSION@ for this user, or removes it again: sh haversack-installer.sh [--uninstall]
#
# Variables: HAVERSACK_INSTALL_DIR (default ~/.local/bin), HAVERSACK_DOWNLOAD_URL (where the archives are).
set -eu

version='@VERSION@'
base=${HAVERSACK_DOWNLOAD_URL:-@URL@}
programs=${HAVERSACK_INSTALL_DIR:-$HOME/.local/bin}
shared=${XDG_DATA_HOME:-$HOME/.local/share}
bash_completions=$shared/bash-completion/completions/haversack
zsh_completions=$shared/zsh/site-functions/_haversack
fish_completions=${XDG_CONFIG_HOME:-$HOME/.config}/fish/completions/haversack.fish
man=$shared/man/man1

fail() {
    echo "Error: $1" >&2
    echo "Hint: $2" >&2
    exit 1
}

checksum() {
    case $1 in
@CHECKSUMS@
        *) ;;
    esac
}

target() {
    system=$(uname -s) processor=$(uname -m)
    case $processor in
        arm64) processor=aarch64 ;;
        amd64) processor=x86_64 ;;
    esac
    case $system in
        Linux) echo "$processor-unknown-linux-musl" ;;
        Darwin) echo "$processor-apple-darwin" ;;
        *) echo "$processor-$system" ;;
    esac
}

download() {
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --output "$2" "$1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1"
    else
        fail 'neither curl nor wget is installed' 'install one of them and run this again'
    fi
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

uninstall() {
    if [ -x "$programs/haversack" ]; then
        "$programs/haversack" uninstall
    fi
    rm -f "$programs/haversack" "$bash_completions" "$zsh_completions" "$fish_completions"
    rm -f "$man"/haversack.1 "$man"/haversack-*.1
    # Directories that hold nothing else go too.
    for directory in "$programs" "$(dirname "$bash_completions")" "$(dirname "$zsh_completions")" "$(dirname "$fish_completions")" "$man"; do
        while [ "$directory" != "$HOME" ] && [ "$directory" != / ] && rmdir "$directory" 2>/dev/null; do
            directory=$(dirname "$directory")
        done
    done
    echo "Removed the program haversack from $programs. Your memory files stay where they are." >&2
}

install_it() {
    triple=$(target)
    expected=$(checksum "$triple")
    if [ -z "$expected" ]; then
        fail "there is no program for $triple" 'other ways to install: pip install haversack, npm install haversack, cargo install'
    fi
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    name=haversack-$version-$triple
    download "$base/$name.tar.gz" "$scratch/archive" || fail "$base/$name.tar.gz could not be downloaded" 'is the network reachable?'
    found=$(sha256 "$scratch/archive")
    if [ "$found" != "$expected" ]; then
        fail "the archive is not the one that was released: its SHA-256 is $found" 'nothing was installed; download it again'
    fi
    tar -xzf "$scratch/archive" -C "$scratch"
    mkdir -p "$programs" "$(dirname "$bash_completions")" "$(dirname "$zsh_completions")" "$(dirname "$fish_completions")" "$man"
    # The new program is complete before it gets the name: a hook may start it at this moment.
    cp "$scratch/$name/haversack" "$programs/.haversack.new"
    chmod 755 "$programs/.haversack.new"
    mv -f "$programs/.haversack.new" "$programs/haversack"
    cp "$scratch/$name/completions/haversack.bash" "$bash_completions"
    cp "$scratch/$name/completions/_haversack" "$zsh_completions"
    cp "$scratch/$name/completions/haversack.fish" "$fish_completions"
    cp "$scratch/$name"/man/*.1 "$man"
    echo "Installed haversack $version in $programs." >&2
    case ":$PATH:" in
        *":$programs:"*) echo 'See it work: haversack demo' >&2 ;;
        *) echo "Add $programs to your PATH, then: haversack demo" >&2 ;;
    esac
}

case ${1-} in
    '') install_it ;;
    --uninstall) uninstall ;;
    *) fail "there is no option $1" 'the only option is --uninstall' ;;
esac
