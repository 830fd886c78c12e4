#!/usr/bin/env bash
# abi.sh [--update]: compares the libraries of make deb with the lists of packaging/abi; --update rewrites the lists.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
built=build/deb/holdfast-$version/build/deb
# make deb removes the packages before it compiles. If it fails, the libraries are those of an earlier tree.
compgen -G "build/deb/libholdfast0_$version*.deb" >/dev/null ||
  { echo "abi: there are no packages of $version; make deb builds them" >&2; exit 1; }
for which in c cpp; do
  [[ $which == c ]] && library=$built/libholdfast-c.so || library=$built/lib/libholdfast.so
  if [[ ${1:-} == --update ]]; then
    python3 -B packaging/abi/abi.py --update "$which" "$library"
  else
    python3 -B packaging/abi/abi.py "$which" "$library"
  fi
done
python3 -B packaging/abi/abi.py --drivers "$built/lib/libholdfast.so"
