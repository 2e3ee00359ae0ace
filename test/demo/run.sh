#!/usr/bin/env bash
# The tour on real input: every package record of this Debian system goes through a queue, sent by several producers
# and received by several consumers, each record together with a table row in one transaction. In the middle the
# server is killed with kill -9. At the end the tables prove that every record arrived exactly once and in order.
# Called by `make demo`, after build and install. Leaves nothing behind.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../lib/common.sh
producers=4 consumers=4 limit=${DEMO_RECORDS:-6000}

say() { printf '\n== %s\n' "$*"; }
sql() { cluster_psql "$private/c" -At -c "$1" 2>/dev/null; }
show() { cluster_psql "$private/c" -c "$1"; }

# Calls a procedure again and again until it ends well: a killed server ends the session, not the work.
worker() {
  until cluster_psql "$private/c" -c "$1" >>"$private/workers.log" 2>&1; do
    [ ! -e "$private/stop" ] || return 1
    sleep 0.3
  done
}

kill_server() {
  local postmaster children
  postmaster=$(head -1 "$private/c/data/postmaster.pid")
  children=$(ps -o pid= --ppid "$postmaster")
  kill -KILL $postmaster $children 2>/dev/null
  wait_none_below "$private/c" 10
}

progress() {
  local counts
  counts=$(sql "SELECT (SELECT count(*) FROM sent) || ' ' || (SELECT count(*) FROM received)") || return 1
  [ -n "$counts" ] || return 1
  set -- $counts
  sent=$1 received=$2
  printf '   %5.1f s   sent %6d of %d   received %6d\n' "$(awk "BEGIN { print $(date +%s.%N) - $begin }")" "$sent" "$total" "$received"
}

pg_locate || { echo "PostgreSQL is not installed; run make deps" >&2; exit 1; }
private_dir demo
trap 'touch "$private/stop"; private_dir_cleanup' EXIT

say "A private server with qlog preloaded (PostgreSQL $("$pg_bindir/postgres" -V | sed 's/^[^0-9]*//;s/ .*//'), unix socket only)"
cluster_init "$private/c" "fsync = on" || exit 1
cluster_start "$private/c" || { tail -20 "$private/c/server.log"; exit 1; }
cp schema.sql proof.sql faults.sql "$private/"
cluster_psql "$private/c" -f "$private/schema.sql" || exit 1

say "Input: package records of this system, as JSON, partition = section"
perl packages.pl "$limit" >"$private/packages.tsv" || exit 1
chmod 644 "$private/packages.tsv"
cluster_psql "$private/c" -c "\\copy packages(section, document) from '$private/packages.tsv'" || exit 1
total=$(sql "SELECT count(*) FROM packages")
show "SELECT section, count(*) AS records, pg_size_pretty(sum(length(document))) AS size FROM packages GROUP BY section ORDER BY 2 DESC LIMIT 6"

say "$producers producers push, each record in one transaction with a table row; $consumers consumers pop, write and ack in one transaction"
begin=$(date +%s.%N) sent=0 received=0 workers=()
for i in $(seq 0 $((producers - 1))); do worker "CALL produce($i, $producers)" & workers+=($!); done
for i in $(seq 1 $consumers); do worker "CALL consume($i)" & workers+=($!); done

killed=no
for tick in $(seq 1 600); do
  sleep 0.5
  progress || continue
  if [ $killed = no ] && [ "$received" -ge $((total / 3)) ]; then
    killed=yes
    say "kill -9 of the server and all its processes, with $((sent - received)) records in flight"
    kill_server
    cluster_start "$private/c" || { tail -20 "$private/c/server.log"; exit 1; }
    sql "SELECT count(*) FROM qlog_queues" >/dev/null # waits until the queues are recovered
    echo "   restarted; the clients connect again and go on"
    grep -h 'qlog: ready' "$private/c/server.log" | tail -1 | sed 's/^.*LOG: */   /'
  fi
  [ "$received" -lt "$total" ] || break
done
wait "${workers[@]}"
seconds=$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $begin }")

say "Proof, from the tables"
cluster_psql "$private/c" -f "$private/proof.sql"
faults=$(cluster_psql "$private/c" -At -f "$private/faults.sql")

say "Views"
show "SELECT * FROM qlog_queues" -x
show "SELECT queue, ready, leased, pushed, popped, acked, expired FROM qlog_stat_queues"
show "SELECT entries, pg_size_pretty(bytes) AS bytes, fsyncs, round(group_size_avg::numeric, 1) AS group_size_avg, durable_seq, checkpoint_seq FROM qlog_stat_log"
show "SELECT role, state, restarts FROM qlog_stat_workers"

say "On disk"
show "SELECT queue, count(*) AS files, pg_size_pretty(sum(bytes)) AS bytes FROM qlog_files GROUP BY queue ORDER BY 1"
echo "   $total records sent and received in $seconds s, the kill and restart included: $(awk "BEGIN { printf \"%d\", $total / $seconds }") a second"
log=$(find "$private/c/data/qlog/qlog" -name r00000001.qlog -not -path '*/q0/*' | head -1)
say "The first bytes of ${log#"$private/c/data/"}, and what they say"
od -A x -t x1z -N 96 "$log"
as_user qlog_dump --limit 4 "$log"

cluster_stop "$private/c"
if [ "$faults" = 0 ] && [ $killed = yes ]; then
  say "Every record arrived exactly once and in order within its section, over a kill -9."
else
  say "FAULTS: ${faults:-unknown} (server killed: $killed)"
  exit 1
fi
