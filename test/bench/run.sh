#!/usr/bin/env bash
# Measurements side by side: qlog and hand-written peers on the same private cluster in the same run, so that
# only ratios count.  Usage: test/bench/run.sh [CASE...]   (no CASE: all; see bench.py --list)
# Builds this tree and installs it into a private copy of PostgreSQL: what is installed neither matters nor is
# disturbed.  On a shared machine run it as root under "nice -n -15".
# Environment: SECS (per run, default 3), REPS (default 5), BENCH_DIR (keep results there), HISTORY_GB (of the case history, 1,10).
set -u
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib/common.sh
pg_locate || { echo "PostgreSQL is not installed; run make deps" >&2; exit 1; }
private_dir bench
pg_copy "$private/pg" && unset MAKEFLAGS MAKELEVEL MFLAGS &&
  make -s -j2 -C "$top" PG_CONFIG="$pg_config" all install DESTDIR="$private/pg" >"$private/build.log" 2>&1 ||
  { tail -20 "$private/build.log" >&2; exit 1; }
cp ./*.py "$private/"
chmod 755 "$private"/*.py
mapfile -t conf <<'CONF'
max_connections = 200
shared_buffers = 1GB
max_wal_size = 8GB
checkpoint_timeout = 30min
autovacuum_naptime = 10s
jit = off
qlog.state_memory = 1GB
qlog.index_memory = 256MB
qlog.max_leases_per_cursor = 200000
CONF
cluster_init "$private/c" "${conf[@]}" || exit 1
cluster_start "$private/c" || { tail -20 "$private/c/server.log"; exit 1; }
as_user PGHOST="$private/c" PGUSER=postgres PGDATABASE=postgres PGDATA="$private/c/data" \
  SECS="${SECS:-3}" REPS="${REPS:-5}" HISTORY_GB="${HISTORY_GB:-1,10}" python3 "$private/bench.py" "$@"
status=$?
[ -z "${BENCH_DIR:-}" ] || cp "$private"/results.json "$BENCH_DIR"/
cluster_stop "$private/c"
exit $status
