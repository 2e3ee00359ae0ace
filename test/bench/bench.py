#!/usr/bin/env python3
"""Ratios of qlog against hand-written peers, measured in turns in one run on one cluster.

Every case has two sides, A (qlog) and B (the peer or ceiling).  Each repetition runs A and B one after the other,
in alternating order; the figure is the median over the repetitions of A's rate divided by B's, with the smallest
and largest.  Nothing is asserted: the targets are printed beside the figures.

Peers: skl = a hand-written table queue with one index (lease by UPDATE ... SKIP LOCKED, then DELETE).
"""
import json
import os
import statistics
import subprocess
import sys
import time

import curves
import reclaim
import retention
import scale
from measure import REPS, RESULTS, SECS, WORK, array, compare, doc, fill, pgbench, psql, restart, script


def setup_peer():
    psql("""
        DROP TABLE IF EXISTS skq, biz, outbox;
        CREATE TABLE skq (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, vt timestamptz NOT NULL DEFAULT now(),
            read_ct int NOT NULL DEFAULT 0, enqueued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            payload jsonb NOT NULL);
        CREATE TABLE biz (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text NOT NULL);
        CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload jsonb NOT NULL);
        CREATE EXTENSION IF NOT EXISTS qlog;
        SELECT queue_drop(q, true) FROM unnest('{bench,bench_pop}'::text[]) q;
        SELECT queue_create('bench');
        CHECKPOINT;""")


def case_push():
    """autocommit push against one-row INSERT"""
    qlog = script("push", "SELECT queue_push('bench', '%s');\n" % doc(1))
    peer = script("insert", "INSERT INTO skq(payload) VALUES ('%s') RETURNING id;\n" % doc(1))
    for clients, target in ((1, ">= 1.0"), (16, ">= 1.15"), (64, ">= 1.15")):
        compare("push, %d clients" % clients, target, lambda: pgbench(qlog, clients),
                lambda: pgbench(peer, clients))


def case_batch():
    """queue_push_batch against parsing the array and checking each element as JSON"""
    for n in (100, 1000):
        qlog = script("batch%d" % n, "SELECT count(*) FROM queue_push_batch('bench', '%s');\n" % array(n))
        ceiling = script("parse%d" % n, "SELECT count(x::json) FROM unnest('%s'::text[]) x;\n" % array(n))
        compare("push_batch(%d), 4 clients" % n, ">= 0.6", lambda: pgbench(qlog, 4, "extended", per=n),
                lambda: pgbench(ceiling, 4, "extended", per=n), "peer = ceiling")


def case_pop():
    """pop(100) + ack against lease-style read + delete"""
    qlog = script("pop", """SELECT count(*) AS n, coalesce(max(lease_id), 0) AS lease, string_agg(payload::text, '') AS body
    FROM queue_pop('bench_pop', 100) \\gset
SELECT queue_ack(:lease);
""")
    peer = script("skpop", """WITH c AS (SELECT id FROM skq WHERE vt <= clock_timestamp() ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED), u AS (UPDATE skq q SET vt = clock_timestamp() + interval '30 s', read_ct = read_ct + 1 FROM c WHERE q.id = c.id RETURNING q.id, q.payload) SELECT count(*) AS n, coalesce(array_agg(id),'{}') AS ids, string_agg(payload::text,'') AS body FROM u \\gset
DELETE FROM skq WHERE id = ANY (:ids::bigint[]);
""")

    # 4 clients x 800 transactions x 100 messages out of 400,000: the backlog never runs out, so none is empty.
    def fill_qlog():
        psql("SELECT queue_drop('bench_pop', true); SELECT queue_create('bench_pop');")
        fill("bench_pop", 400000)
        psql("SELECT pg_sleep(0.3)")
        rate = pgbench(qlog, 4, "extended", per=100, each=800)
        if psql("SELECT acked FROM qlog_stat_queues WHERE queue = 'bench_pop'") != "320000":
            sys.exit("not every transaction took 100 messages")
        return rate

    def fill_peer():
        psql("TRUNCATE skq; INSERT INTO skq(payload) SELECT '%s'::jsonb FROM generate_series(1, 400000);"
             "VACUUM ANALYZE skq; CHECKPOINT;" % doc(1))
        rate = pgbench(peer, 4, "extended", per=100, each=800)
        if psql("SELECT count(*) FROM skq") != "80000":
            sys.exit("not every transaction took 100 rows")
        return rate

    compare("pop(100) + ack, 4 clients", ">= 3", fill_qlog, fill_peer)


def case_joint():
    """INSERT of a row + push against the same with a second INSERT into an outbox table"""
    qlog = script("joint", "BEGIN;\nINSERT INTO biz(v) VALUES ('x');\nSELECT queue_push('bench', '%s');\nCOMMIT;\n" % doc(1))
    peer = script("outbox", "BEGIN;\nINSERT INTO biz(v) VALUES ('x');\nINSERT INTO outbox(payload) VALUES ('%s') "
                  "RETURNING id;\nCOMMIT;\n" % doc(1))
    for clients in (1, 16, 64):
        compare("row + push, %d clients" % clients, ">= 0.9", lambda: pgbench(qlog, clients),
                lambda: pgbench(peer, clients))


def timed(text):
    begin = time.time()
    psql(text)
    return time.time() - begin


def fill_partitions(parts, total):
    """`total` messages of autocommitted batches over partitions p1 .. p<parts>; partitions per second made on the way."""
    begin, made = time.time(), None
    for first in range(0, total, 4000):
        n = min(4000, total - first)
        psql("SELECT count(*) FROM queue_push_batch('grid', (SELECT array_agg('%s'::text) FROM generate_series(1, %d)),"
             "(SELECT array_agg('p' || 1 + i %% %d) FROM generate_series(%d, %d) i));" % (
                 doc(1), n, parts, first, first + n - 1))
        if made is None and first + n >= parts:
            made = parts / (time.time() - begin)
    return made


def checkpoint_of(changes):
    """Milliseconds of the checkpoint after this many random partitions have changed."""
    def state():
        return psql("SELECT checkpoints, durable_seq - checkpoint_seq, (SELECT last_pass_time FROM qlog_stat_workers "
                    "WHERE role = 'checkpointer') FROM qlog_stat_log").split("|")
    while state()[1] != "0":
        time.sleep(0.1)
    before = state()[0]
    psql(changes)
    while state()[0] == before or state()[1] != "0":
        time.sleep(0.1)
    return float(state()[2])


def latency(path, clients):
    """Rate, and the 99th percentile and maximum of the latency in ms."""
    prefix = os.path.join(WORK, "latency")
    for name in os.listdir(WORK):
        if name.startswith("latency"):
            os.unlink(os.path.join(WORK, name))
    rate = pgbench(path, clients, "simple", more=["-l", "--log-prefix=" + prefix])
    us = []
    for name in os.listdir(WORK):
        if name.startswith("latency"):
            with open(os.path.join(WORK, name)) as f:
                us += [int(line.split()[2]) for line in f]
    us.sort()
    return rate, us[len(us) * 99 // 100] / 1000, us[-1] / 1000


def case_grid():
    """1 / 10^3 / 10^6 partitions: push, pop, checkpoint, restart, memory"""
    for parts in (1, 1000, 1000000):
        psql("SELECT queue_drop('grid', true); SELECT queue_create('grid');")
        before = int(psql("SELECT state_memory_used FROM qlog_stat_log"))
        made = fill_partitions(parts, max(parts, 50000))
        memory = int(psql("SELECT state_memory_used FROM qlog_stat_log")) - before
        push = script("gridpush", "\\set p random(1, %d)\nSELECT queue_push('grid', '%s', 'p' || :p);\n" % (parts, doc(1)))
        pop = script("gridpop", "SELECT lease_id AS lease FROM queue_pop('grid') \\gset\nSELECT queue_ack(:lease);\n")
        pushes = [latency(push, 4) for _ in range(REPS)]
        pops = [pgbench(pop, 1, "simple", each=5000) for _ in range(REPS)]
        acked = psql("SELECT acked FROM qlog_stat_queues WHERE queue = 'grid'")
        if acked != str(5000 * REPS):
            sys.exit("%s messages acknowledged instead of %d" % (acked, 5000 * REPS))
        checkpoint = checkpoint_of(
            "SELECT count(*) FROM queue_push_batch('grid', (SELECT array_agg('{}'::text) FROM generate_series(1, 4000)),"
            "(SELECT array_agg('p' || 1 + (i::bigint * 7919) %% %d) FROM generate_series(1, 4000) i));" % parts)
        down, up, own = restart()
        row = {"case": "grid", "partitions": parts, "made_per_s": round(made), "state_memory": memory,
               "push": round(statistics.median(p[0] for p in pushes)),
               "push_p99_ms": statistics.median(p[1] for p in pushes), "push_max_ms": max(p[2] for p in pushes),
               "pop_ack": round(statistics.median(pops)), "checkpoint_ms": checkpoint,
               "restart_s": round(up, 2), "own": own}
        RESULTS.append(row)
        print("partitions %8d: made %7.0f/s, %4d MB, push %6.0f/s p99 %6.2f ms max %7.1f ms, pop(1)+ack %6.0f/s, "
              "checkpoint of 4,000 changes %6.1f ms, serving %5.2f s after kill -9, own part%s" % (
                  parts, made, memory >> 20, row["push"], row["push_p99_ms"], row["push_max_ms"], row["pop_ack"],
                  checkpoint, up, own), flush=True)
        psql("SELECT queue_drop('grid', true);")


def case_restart():
    """restart after kill -9 with 1,000,000 waiting messages"""
    psql("SELECT queue_drop('bench_pop', true); SELECT queue_create('bench_pop');")
    fill("bench_pop", 1000000)
    down, up, own = restart()
    first = timed("SELECT count(*) FROM queue_pop('bench_pop', 100)")
    RESULTS.append({"case": "restart", "serving_s": round(up, 2), "first_pop_s": round(first, 3), "own": own})
    print("restart with 1,000,000 waiting: serving %.2f s after the start (own part%s), first pop(100) %.3f s" % (
        up, own, first), flush=True)


def usage(pids):
    """CPU seconds and context switches of processes so far."""
    ns, switches = 0, 0
    for pid in pids:
        with open("/proc/%s/schedstat" % pid) as f:
            ns += int(f.read().split()[0])
        with open("/proc/%s/status" % pid) as f:
            switches += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
    return ns / 1e9, switches


def wait_until(query, expected):
    while psql(query) != expected:
        time.sleep(0.02)


def waiting_run(kind, text, waiters, messages=500):
    """Latency from the call of a push to the end of the pop that it wakes, and what waiting costs."""
    psql("SELECT queue_drop('bench_wait', true); SELECT queue_create('bench_wait');"
         "DROP TABLE IF EXISTS seen; CREATE TABLE seen (ms float8);")
    stat = "SELECT %s FROM qlog_stat_queues WHERE queue = 'bench_wait'"
    env = dict(os.environ, PGOPTIONS="-c qlog.max_pop_wait=1h", PGAPPNAME="waiter")
    consumers = subprocess.Popen(["pgbench", "-n", "-M", "prepared", "-c", str(waiters), "-j", "2", "-T", "3600",
                                  "-f", script("wait_" + kind, text)], env=env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
    wait_until(stat % "waiting", str(waiters))
    pids = psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'waiter'").split()
    assert len(pids) == waiters
    time.sleep(0.5)
    before = usage(pids)
    time.sleep(3)
    idle = usage(pids)
    push = script("wait_push", "SELECT queue_push('bench_wait', json_build_object('t', clock_timestamp()));\n")
    subprocess.run(["pgbench", "-n", "-M", "prepared", "-c", "1", "-t", str(messages), "--rate", "200", "-f", push],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(stat % "acked", str(messages))
    busy = usage(pids)
    p50, p99 = psql("SELECT string_agg(round(p::numeric, 3)::text, ' ') FROM (SELECT unnest(percentile_cont(ARRAY[0.5, 0.99]) "
                    "WITHIN GROUP (ORDER BY ms)) AS p FROM seen) AS s").split()
    woken = int(psql(stat % "wakeups"))
    consumers.terminate()
    consumers.wait()
    wait_until(stat % "waiting", "0")
    row = {"case": "wait", "kind": kind, "waiters": waiters, "p50_ms": float(p50), "p99_ms": float(p99),
           "idle_cpu_s": round(idle[0] - before[0], 3), "idle_switches": idle[1] - before[1],
           "wakeups_per_message": round(woken / messages, 3),
           "switches_per_message": round((busy[1] - idle[1]) / messages, 2),
           "cpu_ms_per_message": round((busy[0] - idle[0]) * 1000 / messages, 3)}
    RESULTS.append(row)
    print("%-10s %4d waiters: push to pop p50 %6.3f ms, p99 %7.3f ms; idle 3 s: %.3f s CPU, %d context switches; "
          "a message: %.3f wake-ups, %.2f context switches, %.3f ms CPU" % (
              kind, waiters, row["p50_ms"], row["p99_ms"], row["idle_cpu_s"], row["idle_switches"],
              row["wakeups_per_message"], row["switches_per_message"], row["cpu_ms_per_message"]), flush=True)


def case_wait():
    """latency, CPU, wake-ups and context switches with 1 and 100 waiters"""
    note = "INSERT INTO seen SELECT 1000 * extract(epoch FROM clock_timestamp() - (payload->>'t')::timestamptz) FROM "
    pop = note + "queue_pop('bench_wait', wait => '1 h', auto_ack => true);\n"
    call = "CALL queue_wait('bench_wait', '1 h');\n" + note + "queue_pop('bench_wait', auto_ack => true);\n"
    for waiters in (1, 100):
        waiting_run("queue_pop", pop, waiters)
        waiting_run("queue_wait", call, waiters)


CASES = {"push": case_push, "batch": case_batch, "pop": case_pop, "joint": case_joint, "curves": curves.case_curves,
         "restart": case_restart, "grid": case_grid, "wait": case_wait,
         "reclaim": reclaim.case_reclaim, "retention": retention.case_retention,
         "idle": scale.case_idle, "history": scale.case_history}


def main():
    wanted = sys.argv[1:] or list(CASES)
    if "--list" in wanted:
        for name, function in CASES.items():
            print("%-10s %s" % (name, function.__doc__))
        return
    print("%d CPUs, fsync %s, synchronous_commit %s, PostgreSQL %s; %g s a run, %d repetitions" % (
        os.cpu_count(), psql("SHOW fsync"), psql("SHOW synchronous_commit"), psql("SHOW server_version"), SECS, REPS),
        flush=True)
    for name in wanted:
        setup_peer()
        CASES[name]()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "results.json"), "w") as f:
        json.dump(RESULTS, f, indent=1)


main()
