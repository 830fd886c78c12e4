#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configures build/PRESET, and builds everything or the named targets.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
# An existing build tree keeps the generator with which it was made.
if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then
  export CMAKE_GENERATOR=Ninja
fi
cmake --preset "$preset"
targets=()
for target in "$@"; do targets+=(--target "$target"); done
cmake --build "build/$preset" --parallel "${JOBS:-$(nproc)}" "${targets[@]}"
