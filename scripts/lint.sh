#!/usr/bin/env bash
# lint.sh [--fix | --quick] [FILE...]: clang-format and the house rules over everything, clang-tidy over src/ (or over the named files).
#   --fix    only rewrites the formatting
#   --quick  clang-tidy without the analyzer, over many sources as one: a tenth of the time, and most of what it finds
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(find include src tool bench examples tests -path tests/house/fixture -prune -o \
  \( -name '*.cpp' -o -name '*.hpp' \) -print 2>/dev/null | sort)
if [[ ${1:-} == --fix ]]; then
  exec clang-format-19 -i "${sources[@]}"
fi

quick=false
if [[ ${1:-} == --quick ]]; then quick=true; shift; fi

failed=()
echo "---- formatting (make format repairs it)"
clang-format-19 --dry-run --Werror "${sources[@]}" || failed+=(formatting)

echo "---- house rules"
python3 -B tests/house/check.py || failed+=("house rules")
python3 -B tests/house/test_house.py || failed+=("tests of the house rules")

echo "---- clang-tidy"
tree=build/lint
options=(--quiet --extra-arg=-Wno-unknown-warning-option)
as_one=()
if $quick; then
  tree=build/lint-quick
  options+=('--checks=-clang-analyzer-*,-bugprone-suspicious-include')
  as_one=(-DHOLDFAST_UNITY=12 -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF -DHOLDFAST_BUILD_BENCH=OFF
          -DHOLDFAST_BUILD_TOOL=OFF)
fi
# clang-tidy needs only the list of commands, and the one header that the build generates.
cmake -S . -B $tree -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_CXX_COMPILER_LAUNCHER= "${as_one[@]}" >/dev/null
protoc --proto_path=src/store --cpp_out=$tree/generated src/store/etcd/etcd.proto
checked=("$@")
if ((${#checked[@]} == 0)); then
  if $quick; then
    mapfile -t checked < <(sed -n 's/^ *"file": "\(.*\(Unity\/unity_[0-9]*_cxx\.cxx\|\/src\/.*\.cpp\)\)",\{0,1\}$/\1/p' \
      $tree/compile_commands.json | sort -u)
  else
    mapfile -t checked < <(find src -name '*.cpp' | sort)
  fi
fi
printf '%s\0' "${checked[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" clang-tidy-19 -p $tree "${options[@]}" ||
  failed+=(clang-tidy)

if ((${#failed[@]})); then
  printf -v list '%s, ' "${failed[@]}"
  echo "lint: failed: ${list%, }" >&2
  exit 1
fi
echo "lint: nothing found"
