#!/usr/bin/env bash
# Starts several web machines and one PostgreSQL for trials, all on this machine: each `cuota serve` represents a machine.
#
#   deploy/several-web.sh FOLDER [WEB] [WORK]     starts `cuota serve` WEB (2) times, `cuota work` WORK (1) times
#
# Uses CUOTA_DATABASE_URL if it is set; otherwise starts a PostgreSQL in FOLDER, with the programs that Cuota includes.
# The database listens on $PORT (18500), the web machines on the next ports. All files are in FOLDER.
# When all answer, the script prints one line of JSON. Ctrl-C or SIGTERM ends all processes that the script started.
#
# The machines share only their settings: CUOTA_DATABASE_URL, CUOTA_SECRET_KEY, CUOTA_PUBLIC_URL (the address of
# the load balancer), and all others. The script needs the .venv of `make run`, or a PYTHON with Cuota installed.
set -euo pipefail

(($# >= 1)) || { sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 2; }
HERE=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"; chmod 0711 "$1"
FOLDER=$(cd "$1" && pwd) WEB=${2:-2} WORK=${3:-1} PORT=${PORT:-18500}
PYTHON=${PYTHON:-$HERE/.venv/bin/python}
STARTED=() DATABASE=

stop() {
  trap '' INT TERM EXIT
  local id
  for id in "${STARTED[@]}"; do kill -TERM "$id" 2>/dev/null || true; done
  for id in "${STARTED[@]}"; do wait "$id" 2>/dev/null || true; done
  [[ -z $DATABASE ]] || { kill -INT "$DATABASE" 2>/dev/null && wait "$DATABASE"; } || true
  exit "${1:-0}"
}
trap stop INT TERM
trap 'stop $?' EXIT

# Print a secret that is generated once. Only its owner can read the file.
kept() { [[ -s $FOLDER/$1 ]] || (umask 077; openssl rand "${@:2}" >"$FOLDER/$1"); cat "$FOLDER/$1"; }

# PostgreSQL does not run as root. If root starts this script, PostgreSQL runs as `postgres`, or else as `nobody`.
database() {
  local who=() password programs
  programs=$("$PYTHON" -c 'from pathlib import Path; from cuota.db.embedded.folders import prepare
from cuota.db.embedded.programs import binaries_for; import sys
print(binaries_for(prepare(Path(sys.argv[1])).account))' "$FOLDER/none")
  password=$(kept password -hex 16)
  mkdir -p "$FOLDER/database"
  cp "$FOLDER/password" "$FOLDER/database/password"
  if [[ $(id -u) == 0 ]]; then
    local user=nobody; id postgres >/dev/null 2>&1 && user=postgres
    chown "$user" "$FOLDER/database" "$FOLDER/database/password"
    who=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
  fi
  if [[ ! -e $FOLDER/database/pg/PG_VERSION ]]; then
    "${who[@]}" "$programs/initdb" -k -D "$FOLDER/database/pg" -U cuota --auth=scram-sha-256 --locale=C.UTF-8 \
      --pwfile="$FOLDER/database/password" >"$FOLDER/database.log" 2>&1
  fi
  "${who[@]}" "$programs/postgres" -D "$FOLDER/database/pg" -p "$PORT" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= >>"$FOLDER/database.log" 2>&1 </dev/null &
  DATABASE=$!
  CUOTA_DATABASE_URL="postgresql://cuota:$password@127.0.0.1:$PORT/postgres"
}

[[ -n ${CUOTA_DATABASE_URL:-} ]] || database
export CUOTA_DATABASE_URL
export CUOTA_SECRET_KEY=${CUOTA_SECRET_KEY:-$(kept secret.key -base64 32)}
export CUOTA_PUBLIC_URL=${CUOTA_PUBLIC_URL:-http://127.0.0.1:$((PORT + 1))}
URLS=
for number in $(seq "$WEB"); do
  # Each machine has its own folder, because real machines share no disk.
  CUOTA_DATA_DIR="$FOLDER/web$number" "$PYTHON" -m cuota serve --port $((PORT + number)) \
    >"$FOLDER/web$number.out" 2>"$FOLDER/web$number.log" </dev/null &
  STARTED+=($!)
  URLS+=${URLS:+, }"\"http://127.0.0.1:$((PORT + number))\""
done
for number in $(seq "$WORK"); do
  CUOTA_DATA_DIR="$FOLDER/work$number" "$PYTHON" -m cuota work \
    >"$FOLDER/work$number.out" 2>"$FOLDER/work$number.log" </dev/null &
  STARTED+=($!)
done
for number in $(seq "$WEB"); do
  until grep -q '"ready": true' "$FOLDER/web$number.out"; do
    kill -0 "${STARTED[$((number - 1))]}" 2>/dev/null || { tail -n 5 "$FOLDER/web$number.log" >&2; exit 1; }
    sleep 0.1
  done
done
echo "{\"ready\": true, \"urls\": [$URLS], \"pids\": [$(IFS=,; echo "${STARTED[*]}")], \"folder\": \"$FOLDER\"}"
# If one process ends, report it and let the others run, as a load balancer would see it.
wait -n "${STARTED[@]}" && echo "one of the machines has ended" >&2 || echo "one of the machines has ended with an error" >&2
wait
