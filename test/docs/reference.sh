#!/usr/bin/env bash
# Writes doc/reference.md. Called by "make reference" after the build; uses a private copy of PostgreSQL and a private cluster.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
pg_locate || { echo "PostgreSQL is not installed; run make deps" >&2; exit 1; }
private_dir reference
pg_copy "$private/pg" && make -s -C "$top" install DESTDIR="$private/pg" >/dev/null || exit 1
cp "$top/test/docs/reference.sql" "$private/" && chmod a+r "$private/reference.sql"
cluster_init "$private/c" && cluster_start "$private/c" || exit 1
cluster_psql "$private/c" -c 'CREATE EXTENSION qlog' &&
  cluster_psql "$private/c" -f "$private/reference.sql" >"$private/reference.md" &&
  cp "$private/reference.md" "$top/doc/reference.md"
status=$?
cluster_stop "$private/c" immediate
exit $status
