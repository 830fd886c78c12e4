#!/usr/bin/env bash
# bench.sh: every workload against its floor, one JSON object a line, into bench/results/<store>.json.
# STORES="sqlite memory" and SECONDS_EACH=5 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/bin/holdfast-bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p bench/results
for store in ${STORES:-sqlite memory}; do
  case $store in
    sqlite) url=sqlite:$work/bench.db ;;
    memory) url=memory: ;;
    *)      url=$store; store=${store%%:*} ;;
  esac
  echo "---- $url"
  # Written whole or not at all: a result that was interrupted must not replace a good one.
  "$program" --store "$url" --workload "${WORKLOADS:-W1,W2,W3,W4,W5,W6,W7}" --seconds "${SECONDS_EACH:-5}" --json |
    tee "$work/$store.json"
  mv "$work/$store.json" "bench/results/$store.json"
done
