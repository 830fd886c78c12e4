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
seen=build/$lane/test.log
if ctest --preset "$lane" --no-label-summary --parallel "${JOBS:-$(nproc)}" 2>&1 | tee "$seen"; then exit; fi

echo "---- lane $lane: what the failed tests said"
while IFS=: read -r _ test; do
  awk -v head=" Testing: $test" '
    substr($0, length($0) - length(head) + 1) == head { said = 1 }
    said { print }
    /^<end of output>/ { said = 0 }' "build/$lane/Testing/Temporary/LastTest.log" | tail -n 40
done <"build/$lane/Testing/Temporary/LastTestsFailed.log"
sed -n '/tests passed, /,$p' "$seen"
exit 1
