#!/usr/bin/env bash
# lane.sh LANE [--only ROOM...] [CTEST OPTION...]: builds one lane (a preset: gcc, clang, asan, tsan) and runs its tests.
#   --only   builds only the test programs of these rooms
#   options  of ctest say which of its entries to run
# TEST_JOBS is how many of them run at once.
set -euo pipefail
cd "$(dirname "$0")/.."
lane=$1
shift
targets=()
if [[ ${1:-} == --only ]]; then
  shift
  while [[ ${1:-} =~ ^[a-z] ]]; do targets+=("test_$1"); shift; done
fi
echo "---- lane $lane: build"
scripts/build.sh "$lane" "${targets[@]}"

echo "---- lane $lane: test"
results=$PWD/build/$lane/tests/results
rm -rf "$results"
mkdir -p "$results"
# What is ended by Ctrl-C cannot clear up. (Servers that do not run as root must get through to theirs.)
TMPDIR=$(mktemp --directory --tmpdir holdfast-XXXXXX)
export TMPDIR
chmod 711 "$TMPDIR"
trap 'rm -rf "$TMPDIR" 2>/dev/null || true' EXIT
# Tests wait, too, so more of them run at once than there are processors; with five for each, four of ten entries only wait (those with
# WAITS in tests/CMakeLists.txt: each takes one of CTest's slots "waiting"). With six that compute for each, two processors are never
# idle, up to thirty threads want to run, and requests of crowds outlast command_timeout. So would they where the system itself is slow,
# as on some virtual machines: starting a program takes 1 ms, there 3 and more. Under a sanitizer everything computes for longer.
per_processor=5
[[ $lane != asan && $lane != tsan ]] || per_processor=4
started=${EPOCHREALTIME/[.,]/}
for ((i = 0; i < 100; i++)); do /bin/true; done
(((${EPOCHREALTIME/[.,]/} - started) / 100 < 3000)) || per_processor=2
[[ " $* " == *" nightly "* ]] || set -- --label-exclude nightly "$@"
printf '{"version": {"major": 1, "minor": 0}, "local": [{"waiting": [{"id": "0", "slots": %d}]}]}' $((2 * $(nproc))) >"$results/slots.json"
status=0
ctest --preset "$lane" --no-label-summary --parallel "${TEST_JOBS:-$((per_processor * $(nproc)))}" \
  --resource-spec-file "$results/slots.json" --output-junit "$results/ctest.junit" "$@" || status=$?
python3 -B scripts/summary.py "build/$lane" || status=1
exit "$status"
