"""Many idle queues, and long histories: what they cost a server that has something else to do."""
import os
import statistics
import subprocess
import time

from measure import REPS, RESULTS, psql, restart, script

SIZES = [float(s) for s in os.environ.get("HISTORY_GB", "1,10").split(",")]
TAIL = 50000  # messages behind the mark
LOOK = 30  # seconds


def cpu(pids):
    total = 0
    for pid in pids:
        with open("/proc/%s/schedstat" % pid) as f:
            total += int(f.read().split()[0])
    return total / 1e9


def per_minute():
    """CPU seconds a minute of qlog's workers, by role, of those that have used any."""
    roles = dict(line.split("|") for line in psql("SELECT role, pid FROM qlog_stat_workers WHERE pid <> 0").splitlines())
    before = {role: cpu([pid]) for role, pid in roles.items()}
    time.sleep(LOOK)
    used = {role: (cpu([pid]) - before[role]) * 60 / LOOK for role, pid in roles.items()}
    return sum(used.values()), {role: round(s, 4) for role, s in used.items() if s >= 0.0005}


def settle():
    """Until nothing is left to be stored, and what was begun after a start is done."""
    seen = None
    while True:
        now = psql("SELECT checkpoint_seq = durable_seq, (SELECT sum(passes) FROM qlog_stat_workers WHERE role = 'checkpointer') "
                   "FROM qlog_stat_log")
        if now == seen and now.startswith("t"):
            return
        seen = now
        time.sleep(5)


def case_idle():
    """CPU of the workers with 10 and with 10,000 queues: idle, and with 10 pushes a second to one of them"""
    push = script("idle_push", "SELECT queue_push('idle 1', '{}');\n")
    made = 0
    for queues in (10, 10000):
        begin = time.time()
        psql("DO $$ BEGIN FOR i IN %d .. %d LOOP PERFORM queue_create('idle ' || i); "
             "IF i %% 100 = 0 THEN COMMIT; END IF; END LOOP; END $$" % (made + 1, queues))
        made = queues
        settle()
        took = time.time() - begin
        idle, roles = per_minute()
        load = subprocess.Popen(["pgbench", "-n", "-c", "1", "-R", "10", "-T", str(LOOK + 10), "-f", push],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(4)
        busy, busy_roles = per_minute()
        load.wait()
        RESULTS.append({"case": "idle", "queues": queues, "idle_s_per_min": round(idle, 4), "idle": roles,
                        "busy_s_per_min": round(busy, 4), "busy": busy_roles})
        print("%6d queues (made in %.0f s): idle %.3f s CPU a minute %s; 10 pushes a second: %.3f s a minute %s" % (
            queues, took, idle, roles, busy, busy_roles), flush=True)
    psql("DO $$ BEGIN FOR i IN 1 .. %d LOOP PERFORM queue_drop('idle ' || i); "
         "IF i %% 100 = 0 THEN COMMIT; END IF; END LOOP; END $$" % made)


def checkpoint_timeout(value):
    psql("ALTER SYSTEM SET qlog.checkpoint_timeout = '%s'; " % value)
    psql("SELECT pg_reload_conf()")


def own_ms(own):
    """Out of the line that the server writes when qlog is ready."""
    return float(own.split("after", 1)[1].split()[0])


def start_with_tail(how):
    """Seconds from the start to the answer of a push, and qlog's own milliseconds, with TAIL messages behind the mark."""
    checkpoint_timeout("1h")
    for _ in range(TAIL // 1000):
        psql("SELECT count(*) FROM queue_push_batch('tail', (SELECT array_agg('{\"tail\": ' || i || '}') FROM generate_series(1, 1000) i))")
    _, up, own = restart(how)
    return up, own_ms(own)


def case_history():
    """restart with the same tail behind the mark and 1 GB and 10 GB below it, after a stop and after kill -9"""
    psql("SELECT queue_create('history', '{\"compression_level\": 0}'); SELECT queue_create('tail');"
         "SELECT queue_unsubscribe(q, '') FROM unnest('{history,tail}'::text[]) q")
    rows, written = [], 0
    for size in SIZES:
        begin = time.time()
        checkpoint_timeout("1s")
        while written < size * 2 ** 30:
            psql("SELECT count(*) FROM queue_push_batch('history', (SELECT array_agg(to_json(repeat(md5(i::text), 128))::text)"
                 " FROM generate_series(1, 2000) i))")
            written = int(psql("SELECT coalesce(sum(bytes), 0) FROM qlog_files WHERE queue = 'history'"))
        took = time.time() - begin

        # What was just written is on the disk: a start must not wait for that.
        subprocess.run(["sync"], check=True)
        row = {"case": "history", "gb": round(written / 2 ** 30, 2)}
        for how in ("stop", "kill"):
            looks = []
            for _ in range(REPS):
                psql("SELECT qlog_checkpoint()")
                looks.append(start_with_tail(how))
            row[how] = statistics.median(u for u, _ in looks)
            row[how + "_own_ms"] = statistics.median(o for _, o in looks)
            row[how + "_range_ms"] = [min(o for _, o in looks), max(o for _, o in looks)]
        rows.append(row)
        RESULTS.append(row)
        print("%5.1f GB below the mark (written in %.0f s), %d messages behind it: serving %.2f s after a stop, %.2f s after kill -9; "
              "qlog's part %.0f ms %s and %.0f ms %s" % (
                  row["gb"], took, TAIL, row["stop"], row["kill"], row["stop_own_ms"], row["stop_range_ms"], row["kill_own_ms"],
                  row["kill_range_ms"]), flush=True)
    for how in ("stop", "kill"):
        print("restart after %s, %g GB to %g GB: %.2fx, qlog's part %.2fx" % (
            how, rows[-1]["gb"], rows[0]["gb"], rows[-1][how] / rows[0][how], rows[-1][how + "_own_ms"] / rows[0][how + "_own_ms"]),
            flush=True)
    psql("ALTER SYSTEM RESET qlog.checkpoint_timeout")
    psql("SELECT pg_reload_conf()")
    psql("SELECT queue_drop('history'), queue_drop('tail')")
