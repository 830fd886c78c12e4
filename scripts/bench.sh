#!/usr/bin/env bash
# bench.sh: every workload against its floors, one JSON object a line, into bench/results/<store>.json; then docs/bench.md and
# its plot are written anew. By default STORES="sqlite memory redis" (names or URLs;
# redis is a server of this run's own) and SECONDS_EACH is holdfast-bench's own.
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/release/bin/holdfast-bench
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$work"' EXIT
start_redis() {
  redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >"$work/redis.log" &
  server=$!
  until redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1; do
    kill -0 "$server" || { cat "$work/redis.log" >&2; exit 1; }
  done
}
mkdir -p bench/results
for store in ${STORES:-sqlite memory redis}; do
  case $store in
    sqlite) url=sqlite:$work/bench.db ;;
    memory) url=memory: ;;
    redis)  start_redis; url=redis+unix://$work/redis.sock ;;
    *)      url=$store; store=${store%%:*} ;;
  esac
  arguments=(--store "$url" --json)
  [[ -z ${WORKLOADS:-} ]] || arguments+=(--workload "$WORKLOADS")
  [[ -z ${SECONDS_EACH:-} ]] || arguments+=(--seconds "$SECONDS_EACH")
  echo "---- $store"
  # Written whole or not at all: a result that was interrupted must not replace a good one.
  "$program" "${arguments[@]}" | tee "$work/$store.json"
  mv "$work/$store.json" "bench/results/$store.json"
done
python3 bench/report.py
