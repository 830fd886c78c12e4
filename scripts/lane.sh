#!/usr/bin/env bash
# lane.sh LANE: builds one lane (a preset: gcc, clang, asan, tsan) and runs its tests.
set -euo pipefail
cd "$(dirname "$0")/.."
lane=$1
echo "---- lane $lane: build"
if [[ $lane == gcc ]]; then
  # Each public header must compile by itself.
  scripts/build.sh "$lane" all all_verify_interface_header_sets
else
  scripts/build.sh "$lane"
fi
echo "---- lane $lane: test"
ctest --preset "$lane" --no-label-summary --parallel "${JOBS:-$(nproc)}"
