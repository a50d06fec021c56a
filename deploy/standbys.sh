#!/usr/bin/env bash
# Starts PostgreSQL with synchronous standbys and automatic failover (pg_auto_failover) for trials, all on this machine.
#
#   deploy/standbys.sh FOLDER [NODES]      NODES: 2 (one standby) or more; the ports begin at $PORT (18600)
#
# For Debian 12. As root or with sudo, it installs postgresql-15, pg-auto-failover-cli and postgresql-15-auto-failover.
# All files are in FOLDER; each node has a folder FOLDER/nodeN with its server, its log and `keeper.pid`.
# When the standby is in sync, the script prints one line of JSON with the CUOTA_DATABASE_URL. Ctrl-C or SIGTERM ends
# all processes that it started. If you kill a node (kill -9 -- -$(cat FOLDER/node1/keeper.pid)), it is started again after
# $REST (15) seconds, like a machine that reboots; by then the standby has become the primary.
#
# Use it only for trials: the nodes listen on 127.0.0.1 and accept every local connection without a password. In production
# each node is a machine, with --auth scram-sha-256 and --ssl-ca-file, and the monitor runs on one more machine.
set -euo pipefail

(($# >= 1)) || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$1"; chmod 0711 "$1"
FOLDER=$(cd "$1" && pwd) NODES=${2:-2} PORT=${PORT:-18600} REST=${REST:-15}
PG=/usr/lib/postgresql/15/bin

install() {
  [[ -x $PG/postgres && -e /usr/share/postgresql/15/extension/pgautofailover.control ]] && command -v pg_autoctl >/dev/null && return
  if [[ $(id -u) == 0 ]]; then S=(); elif sudo -n true 2>/dev/null; then S=(sudo -n); else
    echo "Needs: apt-get install postgresql-15 pg-auto-failover-cli postgresql-15-auto-failover" >&2; exit 3; fi
  # Keep Debian from starting its own server on the usual port.
  "${S[@]}" mkdir -p /etc/postgresql-common
  [[ -e /etc/postgresql-common/createcluster.conf ]] || echo 'create_main_cluster = false' | "${S[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
  "${S[@]}" apt-get -qq update >&2
  DEBIAN_FRONTEND=noninteractive "${S[@]}" apt-get -qq -o Dpkg::Options::=--force-confold install -y --no-install-recommends \
    postgresql-15 pg-auto-failover-cli postgresql-15-auto-failover >&2 ||
    { echo "Debian's packages could not be installed." >&2; exit 3; }
}

# PostgreSQL does not run as root. If root starts this script, all programs run as `postgres`. They get only the
# environment variables below, and none of the caller's.
as_owner() {
  local who=()
  [[ $(id -u) == 0 ]] && who=(setpriv --reuid postgres --regid postgres --init-groups)
  "${who[@]}" env -i HOME="$FOLDER/home" XDG_RUNTIME_DIR="$FOLDER/home" XDG_CONFIG_HOME="$FOLDER/home" \
    XDG_DATA_HOME="$FOLDER/home" PATH="$PG:/usr/bin:/bin" LANG=C.UTF-8 PGHOST=127.0.0.1 PGCONNECT_TIMEOUT=2 "$@"
}
monitor() { as_owner psql -qAt "postgresql://autoctl_node@127.0.0.1:$PORT/pg_auto_failover" -c "$1"; }
log() { echo "$FOLDER/$1/log"; }

# Start a node in the background, in its own session; `keeper.pid` is also the number of its process group.
keep() {
  rm -f "$FOLDER/$1/keeper.pid"
  as_owner setsid sh -c 'echo $$ >"$1/keeper.pid"; exec pg_autoctl run --pgdata "$1/pg"' - "$FOLDER/$1" \
    >>"$(log "$1")" 2>&1 </dev/null &
  until [[ -s $FOLDER/$1/keeper.pid ]]; do sleep 0.05; done
}
# After a node died, its process id may soon belong to another process, so the command line must name the node's folder.
alive() { grep -qszxF -e "$FOLDER/$1/pg" -e "$FOLDER/$1" "/proc/$(cat "$FOLDER/$1/keeper.pid" 2>/dev/null)/cmdline"; }

create() {
  local name=$1; shift
  mkdir -p "$FOLDER/$name"
  [[ $(id -u) == 0 ]] && chown postgres "$FOLDER/$name"
  as_owner pg_autoctl create "$@" --pgdata "$FOLDER/$name/pg" --pgctl "$FOLDER/bin/pg_ctl" --hostname 127.0.0.1 \
    --auth trust --no-ssl >>"$(log "$name")" 2>&1 || { tail -20 "$(log "$name")" >&2; exit 1; }
  { echo "unix_socket_directories = '$FOLDER/$name'"; [[ $name == monitor ]] || echo "$SETTINGS"; } >>"$FOLDER/$name/pg/postgresql.conf"
}

# The monitor declares a node dead after some seconds without contact. A primary without contact to the monitor and the
# standby stops within 5 s, before another node becomes the primary after 8 s.
MONITOR_SETTINGS="pgautofailover.health_check_period = 1000
pgautofailover.health_check_timeout = 2000
pgautofailover.health_check_max_retries = 2
pgautofailover.health_check_retry_delay = 500
pgautofailover.node_considered_unhealthy_timeout = 6000
pgautofailover.primary_demote_timeout = 8000
pgautofailover.startup_grace_period = 3000"
SETTINGS="max_connections = 200
max_wal_size = 1GB
wal_receiver_status_interval = 1s
wal_receiver_timeout = 5s
wal_sender_timeout = 5s"

stop() {
  trap '' INT TERM EXIT
  local name id
  for name in $(cd "$FOLDER" && ls -d node* monitor 2>/dev/null); do
    alive "$name" && kill -TERM "$(cat "$FOLDER/$name/keeper.pid")"
  done
  for _ in $(seq 100); do
    for name in $(cd "$FOLDER" && ls -d node* monitor 2>/dev/null); do alive "$name" && { sleep 0.1; continue 2; }; done
    break
  done
  for name in $(cd "$FOLDER" && ls -d node* monitor 2>/dev/null); do
    id=$(cat "$FOLDER/$name/keeper.pid" 2>/dev/null) && kill -KILL -- "-$id" 2>/dev/null
  done
  exit "${1:-0}"
}

# pg_autoctl 2.0 always starts its monitor on all addresses. This wrapper makes it listen on 127.0.0.1 only.
own_programs() {
  mkdir -p "$FOLDER/bin"
  ln -sf "$PG"/* "$FOLDER/bin"
  rm "$FOLDER/bin/postgres"
  printf '#!/bin/bash\nexec %s/postgres "${@/#\\*/127.0.0.1}"\n' "$PG" >"$FOLDER/bin/postgres"
  chmod 0755 "$FOLDER/bin/postgres"
}

in_step() {
  [[ $(monitor "SELECT count(*) FROM pgautofailover.node WHERE reportedstate IN ('primary', 'secondary') AND goalstate = reportedstate" 2>/dev/null) == "$NODES" ]]
}

install
own_programs
mkdir -p "$FOLDER/home"
[[ $(id -u) == 0 ]] && chown postgres "$FOLDER/home"
trap stop INT TERM
trap 'stop $?' EXIT

if [[ ! -d $FOLDER/monitor/pg ]]; then
  create monitor monitor --pgport "$PORT"
  echo "$MONITOR_SETTINGS" >>"$FOLDER/monitor/pg/postgresql.conf"
fi
keep monitor
until monitor 'SELECT 1' >/dev/null 2>&1; do sleep 0.2; alive monitor || { tail "$(log monitor)" >&2; exit 1; }; done
HOSTS=
for number in $(seq "$NODES"); do
  name=node$number
  if [[ ! -d $FOLDER/$name/pg ]]; then
    create "$name" postgres --pgport $((PORT + number)) --listen 127.0.0.1 --dbname cuota --username cuota --name "$name" \
      --monitor "postgresql://autoctl_node@127.0.0.1:$PORT/pg_auto_failover"
    as_owner pg_autoctl config set --pgdata "$FOLDER/$name/pg" timeout.network_partition_timeout 5 >/dev/null 2>&1
  fi
  keep "$name"
  HOSTS+=${HOSTS:+,}127.0.0.1:$((PORT + number))
done
SECONDS=0
until in_step; do ((SECONDS < 90)) || { tail -5 "$FOLDER"/*/log >&2; echo "The standby did not catch up with the primary." >&2; exit 1; }; sleep 0.3; done
URL="postgresql://cuota@$HOSTS/cuota?target_session_attrs=read-write"
# The role that runs the migrations must be able to create the role of the service.
as_owner psql -qAt "$URL" -c "ALTER ROLE cuota CREATEROLE; ALTER DATABASE cuota OWNER TO cuota" >/dev/null 2>&1 ||
  as_owner psql -qAt "postgresql://postgres@$HOSTS/cuota?target_session_attrs=read-write" \
    -c "ALTER ROLE cuota CREATEROLE" -c "ALTER DATABASE cuota OWNER TO cuota" >/dev/null
echo "{\"ready\": true, \"url\": \"$URL\", \"monitor\": \"postgresql://autoctl_node@127.0.0.1:$PORT/pg_auto_failover\", \"folder\": \"$FOLDER\"}"

# Start a dead node again, like a machine that reboots.
pause() { sleep "$1" & wait $!; }
while pause 1; do
  for name in monitor $(seq -f 'node%.0f' "$NODES"); do
    alive "$name" || { pause "$REST"; keep "$name"; }
  done
done
