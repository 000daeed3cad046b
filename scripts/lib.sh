# Shared by the scripts: sourced, not run.

step() { printf '\n== %s\n' "$*"; }

scratch=$(mktemp -d)
postgres_data=""
server_pids=()

clean_up() {
  if [ -n "$postgres_data" ]; then as_postgres "$postgres_bin/pg_ctl" -D "$postgres_data" -m immediate -s stop || true; fi
  if [ ${#server_pids[@]} -gt 0 ]; then
    kill "${server_pids[@]}" 2>/dev/null || true
    # One that waits for another that is gone never ends by itself.
    for _ in $(seq 50); do
      kill -0 "${server_pids[@]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "${server_pids[@]}" 2>/dev/null || true
    wait "${server_pids[@]}" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
trap clean_up EXIT

# PostgreSQL refuses to run as root.
as_postgres() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; else "$@"; fi
}

find_postgres() {
  postgres_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
  if [ -z "$postgres_bin" ] && command -v pg_ctl >/dev/null; then postgres_bin=$(dirname "$(command -v pg_ctl)"); fi
  [ -n "$postgres_bin" ]
}

# Programs that judge what the tests write: xmllint, openssl, script.
install_tools() {
  if command -v xmllint >/dev/null && command -v openssl >/dev/null && command -v script >/dev/null; then return; fi
  if [ "$(id -u)" != 0 ]; then echo "xmllint, openssl and script are needed; install them, or run this as root" >&2; exit 1; fi
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q libxml2-utils openssl bsdutils
}

# Starts a private server and exports ACCESSION_TEST_POSTGRES.
start_postgres() {
  if ! find_postgres; then
    if [ "$(id -u)" != 0 ]; then echo "PostgreSQL is not installed; install it, or run this as root" >&2; exit 1; fi
    apt-get update -q
    # A server of our own is enough; the packaged one need not start.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q postgresql
    find_postgres
  fi
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  postgres_data="$scratch/postgres"
  mkdir -p "$postgres_data"
  chmod 755 "$scratch"
  if [ "$(id -u)" = 0 ]; then chown postgres "$postgres_data"; fi
  chmod 700 "$postgres_data"
  as_postgres "$postgres_bin/initdb" -D "$postgres_data" -A trust -U postgres --no-sync -E UTF8 --locale=C >/dev/null
  as_postgres "$postgres_bin/pg_ctl" -D "$postgres_data" -s -w -l "$postgres_data/log" \
    -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$postgres_data -c max_connections=300" start
  export ACCESSION_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres"
  export ACCESSION_TEST_POSTGRES_BIN="$postgres_bin"
}
