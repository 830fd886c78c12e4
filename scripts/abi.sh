#!/usr/bin/env bash
# abi.sh [--update]: compares the libraries of make deb with the lists of packaging/abi; --update rewrites the lists.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt)
built=build/deb/holdfast-$version/build/deb
for which in c cpp; do
  [[ $which == c ]] && library=$built/libholdfast-c.so || library=$built/lib/libholdfast.so
  if [[ ${1:-} == --update ]]; then
    python3 -B packaging/abi/abi.py --update "$which" "$library"
  else
    python3 -B packaging/abi/abi.py "$which" "$library"
  fi
done
python3 -B packaging/abi/abi.py --drivers "$built/lib/libholdfast.so"
