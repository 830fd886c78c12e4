#!/usr/bin/env bash
# test-package.sh: unpacks the tarball of make package in a new folder, and runs it there, with the drivers beside its library.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp --directory --tmpdir holdfast-package-XXXXXX)
trap 'rm -rf "$place"' EXIT
tar -xzf build/package/holdfast-*.tar.gz -C "$place" --strip-components=1
fail() { echo "test-package: $*" >&2; exit 1; }
holdfast=$place/bin/holdfast
[[ $("$holdfast" version) == *"memory sqlite redis postgres mariadb zookeeper etcd memcached"* ]] || fail "it does not find its drivers"
[[ $("$holdfast" run --store "sqlite:$place/locks.db" nightly -- echo done) == done ]] || fail "it does not run a command"
library=$(ldd "$holdfast" | sed -n 's/.*libholdfast\.so[^ ]* => \([^ ]*\).*/\1/p')
[[ $(realpath "$library") == "$place"/lib*/libholdfast.so.* ]] || fail "it uses another libholdfast than its own"
for page in $("$holdfast" manual) holdfast-faultproxy; do
  [[ -s $place/share/man/man1/$page.1 ]] || fail "there is no man page $page: was it built without scdoc?"
done
for file in bash-completion/completions/holdfast zsh/site-functions/_holdfast fish/vendor_completions.d/holdfast.fish; do
  [[ -s $place/share/$file ]] || fail "there is no completion $file"
done
for file in LICENSE NOTICES; do
  [[ -s $place/share/doc/holdfast/$file ]] || fail "who gets the tarball must get $file with it"
done
python3 -B tests/package/run_time.py "$place" || fail "docs/install.md does not list what it needs"
echo "test-package: runs from $place"
