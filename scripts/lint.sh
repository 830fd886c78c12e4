#!/usr/bin/env bash
# lint.sh [--fix] [FILE...]: clang-format and the house rules over everything, clang-tidy over src/ (or over the named files).
# With --fix only rewrites the formatting.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(find include src tool bench examples tests -path tests/house/fixture -prune -o \
  \( -name '*.cpp' -o -name '*.hpp' \) -print 2>/dev/null | sort)
if [[ ${1:-} == --fix ]]; then
  exec clang-format-19 -i "${sources[@]}"
fi

failed=()
echo "---- formatting (make format repairs it)"
clang-format-19 --dry-run --Werror "${sources[@]}" || failed+=(formatting)

echo "---- house rules"
python3 -B tests/house/check.py || failed+=("house rules")
python3 -B tests/house/test_house.py || failed+=("tests of the house rules")

echo "---- clang-tidy"
# Only the list of commands is needed, and the one header that the build makes.
cmake -S . -B build/lint -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_CXX_COMPILER_LAUNCHER= >/dev/null
protoc --proto_path=src/store --cpp_out=build/lint/generated src/store/etcd/etcd.proto
checked=("$@")
if ((${#checked[@]} == 0)); then
  mapfile -t checked < <(find src -name '*.cpp' | sort)
fi
printf '%s\0' "${checked[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" clang-tidy-19 -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option ||
  failed+=(clang-tidy)

if ((${#failed[@]})); then
  printf -v list '%s, ' "${failed[@]}"
  echo "lint: failed: ${list%, }" >&2
  exit 1
fi
echo "lint: nothing found"
