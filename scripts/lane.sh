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
# Many tests mostly wait, so more entries run at once than there are processors: four for each processor. On two processors four of these
# eight only wait (those with WAITS in tests/CMakeLists.txt: each takes one of CTest's slots "waiting"), and four compute. More would be no
# faster (docs/adr/0176-eight-entries-at-once.md). If more entries computed, up to thirty threads would want to run, and requests of crowds
# would outlast command_timeout: with five for each processor, servers of three members were starved for 20 s on a slow machine. The same
# would happen where the system itself is slow: starting a program usually takes 1 ms, on some virtual machines 3 ms and more.
per_processor=4
started=${EPOCHREALTIME/[.,]/}
for ((i = 0; i < 100; i++)); do /bin/true; done
(((${EPOCHREALTIME/[.,]/} - started) / 100 < 3000)) || per_processor=2
[[ " $* " == *" nightly "* ]] || set -- --label-exclude nightly "$@"
printf '{"version": {"major": 1, "minor": 0}, "local": [{"waiting": [{"id": "0", "slots": %d}]}]}' $((2 * $(nproc))) >"$results/slots.json"
status=0
[[ -z ${HOLDFAST_DELAYS:-} ]] || export LD_PRELOAD=$PWD/build/$lane/tests/libholdfast_random_delays.so
ctest --preset "$lane" --no-label-summary --parallel "${TEST_JOBS:-$((per_processor * $(nproc)))}" \
  --resource-spec-file "$results/slots.json" --output-junit "$results/ctest.junit" "$@" || status=$?
unset LD_PRELOAD
python3 -B scripts/summary.py "build/$lane" || status=1
exit "$status"
