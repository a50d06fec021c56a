#!/usr/bin/env bash
# Several web machines on one PostgreSQL, on this one machine, for trial: each `cuota serve` stands for a machine.
#
#   deploy/several-web.sh FOLDER [WEB] [WORK]     WEB (2) times `cuota serve`, WORK (1) times `cuota work`
#
# Uses CUOTA_DATABASE_URL where it is set; otherwise starts a PostgreSQL in FOLDER, from the programs that Cuota brings.
# Ports from $PORT (18500) up: the database first, then the web machines. Everything lies under FOLDER.
# It prints one line of JSON when all answer. Ctrl-C or SIGTERM ends everything it started.
#
# What the machines share, and all they share: CUOTA_DATABASE_URL, CUOTA_SECRET_KEY, CUOTA_PUBLIC_URL (the address of
# the balancer in front), and every other setting. Needs: make run's .venv, or PYTHON with Cuota in it.
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

# A secret made once, readable by its owner only.
kept() { [[ -s $FOLDER/$1 ]] || (umask 077; openssl rand "${@:2}" >"$FOLDER/$1"); cat "$FOLDER/$1"; }

# PostgreSQL will not run as root: as root it runs as `postgres` or else `nobody`.
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
  # A folder each: nothing of a machine's disk is shared.
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
# Whoever dies is said, and the rest goes on: what a balancer in front would see.
wait -n "${STARTED[@]}" && echo "one of the machines has ended" >&2 || echo "one of the machines has ended badly" >&2
wait
