#!/usr/bin/env bash
# Starts a Citus cluster for trials on one machine: a coordinator and workers, each a separate PostgreSQL server.
#
#   deploy/citus.sh FOLDER [WORKERS]       WORKERS: 2 or more; the coordinator listens on $PORT (18700), workers above it
#
# You must install PostgreSQL with Citus first. PGBIN is the folder of PostgreSQL's programs; without it the script uses
# the newest version with Citus below /usr/lib/postgresql. All files are in FOLDER; node 0 is the coordinator.
# When all nodes answer, the script prints one line of JSON with the CUOTA_DATABASE_URL. Then run `cuota migrate --citus`
# and `cuota serve` with this URL. Ctrl-C or SIGTERM ends all processes that the script started. If you kill a node
# (kill -9 -- -$(cat FOLDER/node1/pid)), the script starts it again after $REST (10) seconds, like a machine that reboots.
# With CPU=60 (as root), each node gets at most 60 % of one core, so that a node that recovers cannot take more from the others.
#
# Use it only for trials: the nodes listen on 127.0.0.1 and accept every local connection without a password. In production
# each node is a machine, and the roles of the service and of the owner can log in from every node to every node.
set -euo pipefail

(($# >= 1)) || { sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2; }
PORT=${PORT:-18700} WORKERS=${2:-2} REST=${REST:-10} CPU=${CPU:-}

extension() { echo "$("$1/pg_config" --sharedir 2>/dev/null || echo "/usr/share/postgresql/$(basename "$(dirname "$1")")")/extension/citus.control"; }

if [[ -z ${PGBIN:-} ]]; then
  for bin in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV); do
    [[ -e $(extension "$bin") ]] && { PGBIN=$bin; break; }
  done
fi
[[ -n ${PGBIN:-} ]] || { echo "No PostgreSQL with Citus is installed below /usr/lib/postgresql. Install Citus's package for your PostgreSQL (for example postgresql-16-citus-13.0), or set PGBIN to the folder of its programs." >&2; exit 3; }
[[ -x $PGBIN/postgres ]] || { echo "PGBIN=$PGBIN has no program named postgres. Set PGBIN to the folder of PostgreSQL's programs." >&2; exit 3; }
[[ -e $(extension "$PGBIN") ]] || { echo "The PostgreSQL of PGBIN=$PGBIN has no Citus: $(extension "$PGBIN") is missing. Install Citus's package for this PostgreSQL." >&2; exit 3; }
mkdir -p "$1"; chmod 0711 "$1"
FOLDER=$(cd "$1" && pwd)

# PostgreSQL does not run as root. If root starts this script, all programs run as `postgres`, or else as `nobody`.
as_owner() {
  local who=() user=nobody
  if [[ $(id -u) == 0 ]]; then
    id postgres >/dev/null 2>&1 && user=postgres
    who=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
  fi
  "${who[@]}" env -i HOME="$FOLDER" PATH="$PGBIN:/usr/bin:/bin" LC_ALL=C ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} "$@"
}
ask() { psql -qAtX "postgresql://cuota@127.0.0.1:$1/$2" -c "$3"; }
# After a node died, its process id may soon belong to another process, so the command line must name the node's folder.
alive() { grep -qszxF -e "$FOLDER/node$1/pg" -e "$FOLDER/node$1" "/proc/$(cat "$FOLDER/node$1/pid" 2>/dev/null)/cmdline"; }

create() {
  mkdir -p "$FOLDER/node$1"
  if [[ $(id -u) == 0 ]]; then chown "$(id -u postgres 2>/dev/null || id -u nobody)" "$FOLDER/node$1"; fi
  as_owner initdb -k -D "$FOLDER/node$1/pg" -U cuota --auth=trust --locale=C.UTF-8 >"$FOLDER/node$1.log" 2>&1
  cat >>"$FOLDER/node$1/pg/postgresql.conf" <<CONF
port = $((PORT + $1))
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_preload_libraries = 'citus'
max_connections = 200
max_prepared_transactions = 200
max_worker_processes = 64
wal_level = logical
jit = off
citus.node_conninfo = 'sslmode=prefer keepalives_idle=2 keepalives_interval=2 keepalives_count=3 tcp_user_timeout=10000'
CONF
}

# Put this process and its children into the node's control group, whose processor time is limited (cgroups version 1 or 2).
limit() {
  local group=/sys/fs/cgroup/cpu/cuota-$PORT-node$1
  if [[ -d /sys/fs/cgroup/cpu ]]; then
    mkdir -p "$group"; echo 10000 >"$group/cpu.cfs_period_us"; echo "${CPU}00" >"$group/cpu.cfs_quota_us"
  else
    group=/sys/fs/cgroup/cuota-$PORT-node$1
    mkdir -p "$group"; echo "${CPU}00 10000" >"$group/cpu.max"
  fi
  echo "$BASHPID" >"$group/cgroup.procs"
}

# Start a node in its own session, so that one kill ends all its processes; `pid` is also the number of its process group.
start() {
  rm -f "$FOLDER/node$1/pid"
  { [[ -z $CPU ]] || limit "$1"; as_owner setsid sh -c 'echo $$ >"$1/pid"; exec postgres -D "$1/pg"' - "$FOLDER/node$1"; } >>"$FOLDER/node$1.log" 2>&1 </dev/null &
  until [[ -s $FOLDER/node$1/pid ]]; do sleep 0.05; done
}
answers() {
  SECONDS=0
  until ask $((PORT + $1)) postgres 'SELECT 1' >/dev/null 2>&1; do
    alive "$1" && ((SECONDS < 60)) || { tail -n 5 "$FOLDER/node$1.log" >&2; echo "Node $1 did not start." >&2; exit 1; }
    sleep 0.2
  done
}

stop() {
  trap '' INT TERM EXIT
  local node
  for node in $(seq "$WORKERS" -1 0); do alive "$node" && kill -INT "$(cat "$FOLDER/node$node/pid")"; done
  for _ in $(seq 100); do
    for node in $(seq 0 "$WORKERS"); do alive "$node" && { sleep 0.1; continue 2; }; done
    break
  done
  rmdir /sys/fs/cgroup/{cpu/,}cuota-"$PORT"-node* 2>/dev/null || true
  exit "${1:-0}"
}
trap stop INT TERM
trap 'stop $?' EXIT

for node in $(seq 0 "$WORKERS"); do
  alive "$node" && { echo "$FOLDER/node$node is running already." >&2; exit 1; }
  [[ -d $FOLDER/node$node/pg ]] || create "$node"
  start "$node"
done
for node in $(seq 0 "$WORKERS"); do
  answers "$node"
  [[ -n $(ask $((PORT + node)) postgres "SELECT 1 FROM pg_database WHERE datname = 'cuota'") ]] ||
    { ask $((PORT + node)) postgres 'CREATE DATABASE cuota'; ask $((PORT + node)) cuota 'CREATE EXTENSION citus'; }
done
ask "$PORT" cuota "SELECT citus_set_coordinator_host('127.0.0.1', $PORT)" >/dev/null
NODES="\"127.0.0.1:$PORT\""
for node in $(seq "$WORKERS"); do
  ask "$PORT" cuota "SELECT citus_add_node('127.0.0.1', $((PORT + node)))" >/dev/null
  NODES+=", \"127.0.0.1:$((PORT + node))\""
done
echo "{\"ready\": true, \"url\": \"postgresql://cuota@127.0.0.1:$PORT/cuota\", \"nodes\": [$NODES], \"folder\": \"$FOLDER\"}"

# Start a dead node again, like a machine that reboots.
pause() { sleep "$1" & wait $!; }
while pause 1; do
  for node in $(seq 0 "$WORKERS"); do
    alive "$node" || { pause "$REST"; rm -f "$FOLDER/node$node/pg/postmaster.pid"; start "$node"; }
  done
done
