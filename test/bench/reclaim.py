"""What reclaim costs those who push meanwhile: their latency with and without it, in turns."""
import glob
import os
import statistics
import tempfile
import time

from measure import REPS, RESULTS, SECS, doc, fill, pgbench, psql, script

CLIENTS = 8
MESSAGES = 600000  # about three log files, in each of which every second message goes


def latencies(path):
    """99th percentile and median in milliseconds of a run."""
    prefix = os.path.join(tempfile.mkdtemp(prefix="log."), "latency")
    rate = pgbench(path, CLIENTS, secs=max(SECS, 5), more=("-l", "--log-prefix=" + prefix))
    times = sorted(int(line.split()[2]) for name in glob.glob(prefix + "*") for line in open(name))
    return times[int(len(times) * 0.99)] / 1000, statistics.median(times) / 1000, rate


def setting(name, value):
    psql("ALTER SYSTEM SET %s = '%s';" % (name, value))
    psql("SELECT pg_reload_conf()")


def work_for_reclaim():
    """Log files of which a half is needed and the other one is not."""
    psql("SELECT queue_drop('bench_space', true); SELECT queue_create('bench_space', '{\"compression_level\": 0}');")
    fill("bench_space", MESSAGES, parts=2)
    psql("SELECT queue_purge('bench_space', 'p1')")


def run(path, with_reclaim):
    setting("qlog.reclaim_naptime", "1h")
    work_for_reclaim()

    # Old snapshots hold back what they need.
    psql("SELECT qlog_checkpoint(true)")
    psql("SELECT queue_push('bench', '1')")
    psql("SELECT qlog_checkpoint(true)")
    before = psql("SELECT sum(bytes) FROM qlog_files WHERE queue = 'bench_space'")
    if with_reclaim:
        setting("qlog.reclaim_naptime", "100ms")
    result = latencies(path)
    after = psql("SELECT sum(bytes) FROM qlog_files WHERE queue = 'bench_space'")
    return result + (int(before) - int(after),)


def case_reclaim():
    """latency of pushes while log files are rewritten and deleted, against the same without"""
    path = script("push_reclaim", "SELECT queue_push('bench', '%s');\n" % doc(1))
    sides = {True: [], False: []}
    for rep in range(REPS):
        for side in (True, False) if rep % 2 == 0 else (False, True):
            sides[side].append(run(path, side))
    psql("ALTER SYSTEM RESET qlog.reclaim_naptime; SELECT pg_reload_conf()")
    psql("SELECT queue_drop('bench_space', true)")
    time.sleep(1)
    ratios = [a[0] / b[0] for a, b in zip(sides[True], sides[False])]
    middle = {side: [statistics.median(values) for values in zip(*runs)] for side, runs in sides.items()}
    row = {"case": "reclaim", "target": "<= 1.2", "p99_ratio": round(statistics.median(ratios), 3),
           "min": round(min(ratios), 3), "max": round(max(ratios), 3),
           "p99_ms": [round(middle[side][0], 3) for side in (True, False)],
           "p50_ms": [round(middle[side][1], 3) for side in (True, False)],
           "per_s": [round(middle[side][2]) for side in (True, False)], "freed_mb": round(middle[True][3] / 1e6)}
    RESULTS.append(row)
    print("push, %d clients, while reclaim frees %d MB: p99 %.2fx [%.2f..%.2f] target <= 1.2 (%.3f ms, %.3f ms without), "
          "p50 %.3f ms, %.3f ms without; %d/s, %d/s without" % (
              CLIENTS, row["freed_mb"], row["p99_ratio"], row["min"], row["max"], row["p99_ms"][0], row["p99_ms"][1],
              row["p50_ms"][0], row["p50_ms"][1], row["per_s"][0], row["per_s"][1]), flush=True)
