#!/usr/bin/env bash
# deb.sh: builds the Debian packages of the working tree into build/deb. Fails if lintian finds an error in them.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
out=$PWD/build/deb
tree=$out/holdfast-$version
mkdir -p "$tree"
# Copies the files of the repository and nothing else. Objects that were compiled there before are kept.
git ls-files --cached --others --exclude-standard -z | LC_ALL=C sort --zero-terminated >"$out/files"
rsync --archive --from0 --files-from="$out/files" --ignore-missing-args . "$tree/"
(cd "$tree" && find . -path ./build -prune -o ! -type d -printf '%P\0') | LC_ALL=C sort --zero-terminated |
  LC_ALL=C comm --zero-terminated -23 - "$out/files" | (cd "$tree" && xargs --null --no-run-if-empty rm -f)
rm -rf "$tree/debian"
cp -r packaging/debian "$tree/debian"
rm -f "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
cd "$tree"
# debhelper gives the build a HOME of its own, in which ccache would find no cache.
CCACHE_DIR=${CCACHE_DIR:-$HOME/.cache/ccache} CCACHE_BASEDIR=$tree \
  dpkg-buildpackage --build=binary --no-sign --no-pre-clean "--jobs=${JOBS:-$(nproc)}"
lintian --fail-on error "$out"/*.changes
