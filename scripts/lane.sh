#!/usr/bin/env bash
# lane.sh LANE [--only ROOM...] [CTEST OPTION...]: builds one lane (a preset: gcc, clang, asan, tsan) and runs its tests.
#   --only       builds only the test programs of these folders of tests/
#   CTEST OPTION chooses the entries of CTest to run
# TEST_JOBS: how many entries run at once.
# HOLDFAST_DELAYS: a seed; random calls of the tests, and of what they start, take up to 150 ms longer (tests/harness/preload).
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
[[ -z ${HOLDFAST_DELAYS:-} ]] || scripts/build.sh "$lane" holdfast_random_delays

echo "---- lane $lane: test"
results=$PWD/build/$lane/tests/results
rm -rf "$results"
mkdir -p "$results"
# A test that Ctrl-C ends cannot remove its files, so all of them are in one folder that this script removes. (Servers that do not run as
# root must be able to reach their files below it.) It is in memory, if there is much room and programs can run from there: on a disk,
# creating the files of the servers takes several times as much processor time as starting the servers.
TMPDIR=$(mktemp --directory --tmpdir holdfast-XXXXXX)
room=$(df --output=avail /dev/shm 2>/dev/null | tail -1) || room=0
if ((room > 6000000)) && memory=$(mktemp --directory /dev/shm/holdfast-XXXXXX); then
  if cp /bin/true "$memory/runs" && "$memory/runs"; then
    rmdir "$TMPDIR"
    rm "$memory/runs"
    TMPDIR=$memory
  else
    rm -r "$memory"
  fi
fi
export TMPDIR
chmod 711 "$TMPDIR"
trap 'rm -rf "$TMPDIR" 2>/dev/null || true' EXIT
# Many tests mostly wait, so more entries run at once than there are processors: six for each processor. On two processors five of these
# twelve only wait (those with WAITS in tests/CMakeLists.txt: each takes one of CTest's slots "waiting"). The others use the servers, or
# compute; those that compute are nice, so that they starve no server. Then the processors are hardly ever idle. A sanitizer makes the
# tests compute more: with as many entries, requests of crowds would outlast command_timeout, and servers of three members would be
# starved. The same would happen where the system itself is slow: starting a program usually takes 1 ms, on some virtual machines 3 ms
# and more.
processors=$(nproc)
entries=$((6 * processors)) waiting=$((5 * processors / 2))
[[ $lane != *san ]] || entries=$((4 * processors)) waiting=$((2 * processors))
started=${EPOCHREALTIME/[.,]/}
for ((i = 0; i < 100; i++)); do /bin/true; done
(((${EPOCHREALTIME/[.,]/} - started) / 100 < 3000)) || entries=$((2 * processors)) waiting=$((2 * processors))
[[ " $* " == *" nightly "* ]] || set -- --label-exclude nightly "$@"
printf '{"version": {"major": 1, "minor": 0}, "local": [{"waiting": [{"id": "0", "slots": %d}]}]}' "$waiting" >"$results/slots.json"
status=0
[[ -z ${HOLDFAST_DELAYS:-} ]] || export LD_PRELOAD=$PWD/build/$lane/tests/libholdfast_random_delays.so
ctest --preset "$lane" --no-label-summary --parallel "${TEST_JOBS:-$entries}" \
  --resource-spec-file "$results/slots.json" --output-junit "$results/ctest.junit" "$@" || status=$?
unset LD_PRELOAD
python3 -B scripts/summary.py "build/$lane" || status=1
exit "$status"
