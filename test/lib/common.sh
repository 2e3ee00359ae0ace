# Shell helpers for everything that runs servers and programs on behalf of the tests: a private
# directory, an unprivileged user, a private PostgreSQL cluster on a unix socket. To be sourced by
# bash scripts that have set -u; works as root and as an ordinary user.
#
# PostgreSQL refuses to run as root, and the user it runs as may be unable to read the source tree
# (a checkout below root's home). So nothing that runs as that user reads the tree: programs and
# inputs are copied into the private directory first.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
pg_config=${PG_CONFIG:-pg_config}

# Tests see a fixed locale and time zone and none of the caller's PG* variables.
clean_env=(LC_ALL=C.UTF-8 TZ=UTC PGTZ=UTC)

# Prints the name of the user that servers run as.
test_user() {
  if [ "$(id -u)" -ne 0 ]; then
    id -un
  elif id postgres >/dev/null 2>&1; then
    echo postgres
  else
    echo nobody
  fi
}

# private_dir NAME: sets $private to a new directory of the test user and removes it at exit.
# The path is short, because unix sockets live in it.
private_dir() {
  private=$(mktemp -d "/tmp/qlog-$1.XXXXXX")
  chmod 755 "$private"
  [ "$(id -u)" -ne 0 ] || chown "$(test_user)": "$private"
  trap private_dir_cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

private_dir_cleanup() {
  local status=$?
  trap - EXIT
  cd /
  kill_below "$private" >/dev/null
  rm -rf "$private"
  exit "$status"
}

# as_user [-C DIR] COMMAND ARGS: runs it as the test user, in DIR or else in the private directory
# (which is also TMPDIR), with a clean environment. Assignments may precede the command.
as_user() {
  local dir=$private
  if [ "$1" = -C ]; then
    dir=$2
    shift 2
  fi
  local run=(env -i PATH="${pg_bindir:+$pg_bindir:}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    HOME="$private" TMPDIR="$private" "${clean_env[@]}" "$@")
  if [ "$(id -u)" -eq 0 ]; then
    (cd "$dir" && exec setpriv --reuid "$(test_user)" --regid "$(id -g "$(test_user)")" \
      --init-groups -- "${run[@]}")
  else
    (cd "$dir" && exec "${run[@]}")
  fi
}

# Prints the processes whose current directory is below DIR; a server's is its data directory.
# Zombies have none, so servers that were killed and not yet reaped do not appear.
processes_below() {
  local link dir
  for link in /proc/[0-9]*/cwd; do
    dir=$(readlink "$link" 2>/dev/null) || continue
    case "$dir/" in
      "$1"/?*) link=${link#/proc/} && echo "${link%/cwd}" ;;
    esac
  done
}

# Kills what still runs below DIR and prints the process ids it had to kill.
kill_below() {
  local pids round
  for round in 1 2 3 4 5; do
    pids=$(processes_below "$1")
    [ -n "$pids" ] || return 0
    echo $pids
    kill -CONT $pids 2>/dev/null
    kill -KILL $pids 2>/dev/null
    sleep 0.2
  done
}

# Waits until DIR has no process left, at most SECONDS; false when the time is over.
wait_none_below() {
  local left=$(($2 * 5))
  while [ -n "$(processes_below "$1")" ]; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    sleep 0.2
  done
}

# ---------------------------------------------------------------------------------------------
# A private cluster
# ---------------------------------------------------------------------------------------------

# pg_locate: sets pg_bindir, pg_pkglibdir, pgxs_test (where pg_regress and the Perl modules are).
pg_locate() {
  pg_bindir=$("$pg_config" --bindir) && pg_pkglibdir=$("$pg_config" --pkglibdir) &&
    pgxs_test=$(cd "$(dirname "$("$pg_config" --pgxs)")/../test" && pwd)
}

# pg_copy DIR: makes a copy of the PostgreSQL installation in DIR, without qlog, and points
# $pg_bindir and $pg_pkglibdir to it; "make install DESTDIR=DIR" completes it. PostgreSQL finds its
# files relative to its programs, so only those are real copies, the rest are links. What runs from
# it is not disturbed by an installation into the system meanwhile, and needs no privilege.
pg_copy() {
  local share entry
  share=$("$pg_config" --sharedir)
  mkdir -p "$1$pg_bindir" "$1$pg_pkglibdir" "$1$share/extension" || return
  cp -L "$pg_bindir"/* "$1$pg_bindir/" || return
  for entry in "$pg_pkglibdir"/* "$share"/* "$share"/extension/*; do
    case "${entry##*/}" in qlog.* | qlog--* | extension | bitcode) continue ;; esac
    ln -s "$entry" "$1$entry" || return
  done
  rm -f "$1$pg_bindir/qlog_dump"
  pg_bindir=$1$pg_bindir
  pg_pkglibdir=$1$pg_pkglibdir
}

# cluster_init DIR [LINE...]: makes a cluster with qlog preloaded, listening on no port and in DIR
# only. The lines go to postgresql.conf.
cluster_init() {
  local dir=$1
  shift
  as_user mkdir -p "$dir" || return
  as_user initdb -D "$dir/data" -A trust -N -U postgres --encoding=UTF8 --locale=C.UTF-8 \
    >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log"; return 1; }
  {
    echo "shared_preload_libraries = 'qlog'"
    echo "qlog.disk_high_pct = 100"
    echo "qlog.disk_reserve = 1MB"
    echo "listen_addresses = ''"
    echo "unix_socket_directories = '$dir'"
    echo "log_line_prefix = '%m [%p] %q%a '"
    echo "max_prepared_transactions = 10"
    [ $# -eq 0 ] || printf '%s\n' "$@"
  } >>"$dir/data/postgresql.conf"
}

# The outcome is in DIR/server.log; a server killed before may have left a pid file that names a
# zombie, which would pass for a running server.
cluster_start() {
  rm -f "$1/data/postmaster.pid" "$1"/.s.PGSQL.*
  as_user pg_ctl -D "$1/data" -l "$1/server.log" -w -t 120 start >/dev/null
}

# cluster_stop DIR [MODE]
cluster_stop() {
  as_user pg_ctl -D "$1/data" -m "${2:-fast}" -w -t 60 stop >/dev/null
}

# cluster_psql DIR ARGS: psql as superuser in database postgres.
cluster_psql() {
  local dir=$1
  shift
  as_user psql -X -q -h "$dir" -U postgres -d postgres -v ON_ERROR_STOP=1 "$@"
}
