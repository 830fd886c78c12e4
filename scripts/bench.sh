#!/usr/bin/env bash
# bench.sh: measures every workload beside its floors, and writes one JSON object a line into bench/results/<store>.json. Then it rewrites
# docs/bench.md and its plot. It starts the servers that it needs.
# STORES="sqlite redis": some of the stores below, or URLs; by default all of them. SECONDS_EACH and REPEAT: the program's --seconds and
# --repeat, by default 1 and 5.
# WORKLOADS="W1,W5": some of the workloads, as tables on the terminal. Nothing is written, because a part would replace a whole result.
# GROWTH=1: the cost of an operation while a number grows, at most to MOST, into bench/results/growth_<store>.json.
# QUICK=1: three workloads in short rounds, on the terminal, too.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${PROGRAM:-build/release/bin/holdfast-bench}
work=$(mktemp -d)
servers=()
folders=()
trap '[[ ${#servers[@]} == 0 ]] || { kill "${servers[@]}"; wait "${servers[@]}" || true; }; rm -rf "$work" "${folders[@]}"' EXIT
start_redis() {
  [[ ! -S $work/redis.sock ]] || return 0
  redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >"$work/redis.log" &
  servers+=($!)
  process_of[redis]=$!
  until redis-cli -s "$work/redis.sock" ping >/dev/null 2>&1; do
    kill -0 "${servers[-1]}" || { cat "$work/redis.log" >&2; exit 1; }
  done
}
# port_of STORE: sets `port` to the port of the store's server if this run has started one. Otherwise sets it to a free port, and fails.
# process_of has the server's process.
declare -A ports=() process_of=()
port_of() {
  if [[ -n ${ports[$1]:-} ]]; then port=${ports[$1]}; return 0; fi
  port=$(free_port)
  ports[$1]=$port
  return 1
}
start_memcached() {
  ! port_of memcached || return 0
  memcached -u nobody -l 127.0.0.1 -p "$port" >"$work/memcached.log" 2>&1 &
  servers+=($!)
  process_of[memcached]=$!
  until (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "${servers[-1]}" || { cat "$work/memcached.log" >&2; exit 1; }
  done
}
# start_as USER LOG PROGRAM...: starts the program in the background, as that user if this is root: these servers refuse to run as root.
start_as() {
  local user=$1 log=$2
  shift 2
  if [[ $(id -u) == 0 ]]; then set -- setpriv --reuid="$user" --regid="$user" --clear-groups "$@"; fi
  (cd / && exec "$@") >"$log" 2>&1 &
  servers+=($!)
}
run_as() {
  start_as "$@"
  wait "${servers[-1]}" || { cat "$2" >&2; exit 1; }
  unset 'servers[-1]'
}
folder_of() {
  chmod 755 "$work"
  mkdir "$work/$1"
  [[ $(id -u) != 0 ]] || chown "$1" "$work/$1"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
until_said() {
  until grep -q "$1" "$2"; do
    kill -0 "${servers[-1]}" || { cat "$2" >&2; exit 1; }
  done
}
# The servers have their default settings, except the port, room for the floors (a connection a thread), and how a commit waits for the
# disk: COMMIT=off, the default, measures the clients, and COMMIT=on the disk. postgres_durable is a database where it is on, so that one
# run shows both.
start_postgres() {
  local bin data=$work/postgres/data
  ! port_of postgres || return 0
  bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | tail -1)
  folder_of postgres
  run_as postgres "$work/initdb.log" "$bin/initdb" -D "$data" -A trust -E UTF8 --locale=C -U postgres
  start_as postgres "$work/postgres.log" "$bin/postgres" -D "$data" -p "$port" -k "" -c listen_addresses=127.0.0.1 \
    -c max_connections=300 -c synchronous_commit="${COMMIT:-off}"
  process_of[postgres]=${servers[-1]}
  until_said 'ready to accept' "$work/postgres.log"
  "$bin/psql" -qX -h 127.0.0.1 -p "$port" -U postgres -c 'create database durable' \
    -c 'alter database durable set synchronous_commit = on'
}
start_mariadb() {
  ! port_of mariadb || return 0
  folder_of mysql
  run_as mysql "$work/install.log" mariadb-install-db --no-defaults --datadir="$work/mysql/data" --skip-test-db \
    --auth-root-authentication-method=normal
  printf '%s\n' "create user admin@'%';" "grant all on *.* to admin@'%';" >"$work/init.sql"
  start_as mysql "$work/mariadb.log" /usr/sbin/mariadbd --no-defaults --datadir="$work/mysql/data" --port="$port" \
    --socket="$work/mysql/socket" --bind-address=127.0.0.1 --skip-name-resolve --max-connections=300 --init-file="$work/init.sql" \
    --innodb-flush-log-at-trx-commit="$([[ ${COMMIT:-off} == on ]] && echo 1 || echo 2)"
  process_of[mariadb]=${servers[-1]}
  until_said 'ready for connections' "$work/mariadb.log"
}
# Three servers of each, with their default settings. Their data is in memory if possible, because the clients are measured, not the disk.
folder_in_memory() {
  if [[ -w /dev/shm ]]; then mktemp -d /dev/shm/holdfast-bench-XXXXXX; else mktemp -d; fi
}
start_etcd() {
  local i peers=() all="" folder
  folder=$(folder_in_memory)
  folders+=("$folder")
  hosts=""
  for i in 0 1 2; do
    peers+=("http://127.0.0.1:$(free_port)")
    all+=${all:+,}$i=${peers[i]}
  done
  for i in 0 1 2; do
    port=$(free_port)
    hosts+=${hosts:+,}127.0.0.1:$port
    etcd --name=$i --data-dir="$folder/$i" --listen-client-urls="http://127.0.0.1:$port" \
      --advertise-client-urls="http://127.0.0.1:$port" --listen-peer-urls="${peers[i]}" \
      --initial-advertise-peer-urls="${peers[i]}" --initial-cluster="$all" --log-level=error >"$work/etcd$i.log" 2>&1 &
    servers+=($!)
  done
  until ETCDCTL_API=3 etcdctl --endpoints="$hosts" endpoint health >/dev/null 2>&1; do
    kill -0 "${servers[-1]}" || { cat "$work"/etcd*.log >&2; exit 1; }
  done
}
start_zookeeper() {
  local i all="" folder jars=/usr/share/java
  folder=$(folder_in_memory)
  folders+=("$folder")
  hosts=""
  for i in 1 2 3; do all+="server.$i=127.0.0.1:$(free_port):$(free_port)"$'\n'; done
  for i in 1 2 3; do
    port=$(free_port)
    hosts+=${hosts:+,}127.0.0.1:$port
    mkdir "$folder/$i"
    echo "$i" >"$folder/$i/myid"
    printf 'tickTime=2000\ninitLimit=10\nsyncLimit=5\nadmin.enableServer=false\n4lw.commands.whitelist=*\n%s' \
      "dataDir=$folder/$i"$'\n'"clientPort=$port"$'\n'"$all" >"$folder/$i.cfg"
    java -Xmx192m -cp "$jars/zookeeper.jar:$jars/zookeeper-jute.jar:$jars/slf4j-nop.jar" \
      org.apache.zookeeper.server.quorum.QuorumPeerMain "$folder/$i.cfg" >"$work/zookeeper$i.log" 2>&1 &
    servers+=($!)
  done
  until python3 -c 'import socket, sys; s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"srvr")
sys.exit(b"Mode:" not in s.recv(9999))' "$port" 2>/dev/null; do
    kill -0 "${servers[-1]}" || { cat "$work"/zookeeper*.log >&2; exit 1; }
  done
  # A Java server compiles its code while it works. So its first seconds are slow, and would be counted for the subject that is measured
  # first.
  "$program" --store "zookeeper://$hosts/bench" --workload W1,W4 --subject holdfast,fair_mutex --seconds "${WARM_SECONDS:-8}" \
    --repeat 1 >/dev/null
}
every="sqlite memory redis redis_redlock redis_redisson redis_setnx memcached postgres postgres_durable postgres_session mariadb
mariadb_session zookeeper etcd"
[[ -z ${GROWTH:-} ]] || STORES=${STORES:-sqlite memory redis memcached postgres mariadb zookeeper etcd}
[[ -z ${QUICK:-} ]] || export WORKLOADS=${WORKLOADS:-W1,W4,W5} SECONDS_EACH=${SECONDS_EACH:-0.25} REPEAT=${REPEAT:-3}
read -ra stores <<<"$(echo ${STORES:-$every})"
on_terminal=
[[ -n ${GROWTH:-} ]] || on_terminal=${WORKLOADS:-}
[[ -n $on_terminal ]] || mkdir -p bench/results
number=0
for store in "${stores[@]}"; do
  workloads=${WORKLOADS:-}
  own=$store
  case $store in
    sqlite) url=sqlite:$work/bench.db ;;
    memory) url=memory: ;;
    redis)  start_redis; url=redis+unix://$work/redis.sock ;;
    redis_redlock | redis_redisson | redis_setnx) start_redis; url=redis+unix://$work/redis.sock?dialect=${store#redis_} ;;
    memcached) start_memcached; url=memcached://127.0.0.1:$port ;;
    postgres) start_postgres; url=postgres://postgres@127.0.0.1:$port/postgres ;;
    postgres_durable)
      start_postgres
      url=postgres://postgres@127.0.0.1:$port/durable
      workloads=${WORKLOADS:-W1,W4,W5}
      ;;
    mariadb)  start_mariadb; url=mariadb://admin@127.0.0.1:$port/bench ;;
    postgres_session) start_postgres; url="postgres://postgres@127.0.0.1:$port/postgres?mode=session" ;;
    mariadb_session)  start_mariadb; url="mariadb://admin@127.0.0.1:$port/bench?mode=session" ;;
    etcd)      start_etcd; url=etcd://$hosts/bench ;;
    zookeeper) start_zookeeper; url=zookeeper://$hosts/bench ;;
    *)      url=$store; store=${store%%:*}; own= ;;
  esac
  arguments=(--store "$url" --seconds "${SECONDS_EACH:-1}" --repeat "${REPEAT:-5}")
  [[ -z $workloads ]] || arguments+=(--workload "$workloads")
  server=${own:+${process_of[${own%%_*}]:-}}
  [[ -z $server ]] || arguments+=(--server "$server")
  echo "---- $store ($((++number)) of ${#stores[@]}, after $SECONDS s)"
  if [[ -n $on_terminal ]]; then
    "$program" "${arguments[@]}"
    continue
  fi
  arguments+=(--json)
  if [[ -n ${GROWTH:-} ]]; then
    "$program" --store "$url" --json --growth --most "${MOST:-100000}" | tee "$work/$store.json"
    mv "$work/$store.json" "bench/results/growth_$store.json"
    continue
  fi
  # The file is replaced as a whole: an interrupted result must not replace a good one.
  "$program" "${arguments[@]}" | tee "$work/$store.json"
  if [[ $store == redis ]]; then
    "$program" "${arguments[@]}" --limits | tee -a "$work/$store.json"
  fi
  case $store in
    zookeeper|etcd) python3 -B bench/peers.py "$store" "$hosts" "$work/$store.json" "$program" ;;
  esac
  mv "$work/$store.json" "bench/results/$store.json"
done
status=0
# The page of holdfast serve, once every store has been measured.
if [[ -z $on_terminal${GROWTH:-}${STORES:-} ]]; then
  if command -v chromium >/dev/null; then
    if python3 -B tests/browser/measure.py "${program%-bench}" --json "$work/page.json"; then
      mv "$work/page.json" bench/results/page.json
    else
      status=1  # the stores' results are written all the same
    fi
  else
    echo "no browser, so the page is not measured: scripts/install-deps.sh browser"
  fi
fi
[[ -n $on_terminal ]] || python3 -B bench/report.py ${GROWTH:+--growth}
[[ $status == 0 ]] || { echo "the page of holdfast serve was not measured" >&2; exit 1; }
