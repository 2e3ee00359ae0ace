"""What a pop costs, as the queue grows: curves that should be flat.

Every curve has several points, each a queue of its own that is filled once.  A repetition measures all points in
turns; the figure is the median over the repetitions of a point's cost divided by that of the first point in the same
repetition.  The cost is the CPU time of the server process for a transaction, which other processes disturb little.
One client pops one message, acknowledges it and pushes one again, so that the queue stays as it is; synchronous_commit
is off, as the time of a sync would hide what the pop costs.
"""
import os
import statistics
import subprocess
import time

from measure import REPS, RESULTS, doc, fill, pgbench, psql, script

TRANSACTIONS = 5000


def again(queue, named=False):
    """A script that pops a message, acknowledges it and pushes another one into the same partition."""
    return script(queue, "SELECT lease_id AS lease, quote_literal(partition) AS part FROM queue_pop('%s') \\gset\n"
                  "SELECT queue_ack(:lease);\nSELECT queue_push('%s', '%s'%s);\n" % (
                      queue, queue, doc(1), ", :part" if named else ""))


def create(queue, options="{}"):
    psql("SELECT queue_drop('%s', true); SELECT queue_create('%s', '%s');" % (queue, queue, options))
    return queue


def ended_cpu():
    """CPU seconds of all server processes that have ended."""
    with open(os.path.join(os.environ["PGDATA"], "postmaster.pid")) as f:
        pid = int(f.readline())
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def cost(path):
    """Transactions per second, and microseconds of CPU for each."""
    options = os.environ.get("PGOPTIONS", "")
    os.environ["PGOPTIONS"] = options + " -c synchronous_commit=off"
    before, begin = ended_cpu(), time.time()
    try:
        rate = pgbench(path, 1, "simple", each=TRANSACTIONS)
    finally:
        os.environ["PGOPTIONS"] = options
    while psql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'") != "0":
        time.sleep(0.01)
    time.sleep(0.05)
    return rate, (ended_cpu() - before) * 1e6 / TRANSACTIONS


def curve(name, points, around=lambda label, run: run()):
    """points: (label, script).  around: runs a measurement of a point, with what must stand beside it."""
    costs = {label: [] for label, _ in points}
    for rep in range(REPS):
        for label, path in points if rep % 2 == 0 else points[::-1]:
            costs[label].append(around(label, lambda: cost(path)))
    first = points[0][0]
    for label, _ in points:
        ratios = [a[1] / b[1] for a, b in zip(costs[label], costs[first])]
        row = {"case": "curve: " + name, "point": label, "rate": round(statistics.median(c[0] for c in costs[label])),
               "cpu_us": round(statistics.median(c[1] for c in costs[label]), 1),
               "ratio": round(statistics.median(ratios), 3)}
        RESULTS.append(row)
        print("%-16s %-20s %7d/s, CPU %6.1f us, %5.2fx of %s [%.2f..%.2f]" % (
            name, label, row["rate"], row["cpu_us"], row["ratio"], first, min(ratios), max(ratios)), flush=True)


def waiting():
    points = []
    for depth in (10, 1000, 100000, 1000000, 10000000):
        queue = create("curve_depth_%d" % depth)
        fill(queue, depth)
        points.append(("%d waiting" % depth, again(queue)))
    return points


def partitions():
    points = []
    for parts in (1, 1000, 100000, 1000000):
        queue = create("curve_parts_%d" % parts)
        fill(queue, max(parts, 1000), parts, 4000)
        points.append(("%d partitions" % parts, again(queue, named=True)))
    return points


def groups():
    """The default group pops; the other ones stand still, and what they have not read stays."""
    points = []
    for n in (1, 8, 64):
        queue = create("curve_groups_%d" % n)
        psql("SELECT queue_subscribe('%s', 'g' || i, 'oldest') FROM generate_series(2, %d) i;" % (queue, n))
        fill(queue, 1000)
        points.append(("%d groups" % n, again(queue)))
    return points


def older():
    """In front of what is popped: nothing, 100,000 messages that are leased, 100,000 that are delayed."""
    points = []
    for label in ("nothing older", "100,000 leased", "100,000 delayed"):
        queue = create("curve_older_%d" % len(points), '{"lease": "10 h"}')
        if label.endswith("leased"):
            fill(queue, 100000)
            psql("SELECT count(*) FROM generate_series(1, 100), LATERAL queue_pop('%s', 1000);" % queue)
        elif label.endswith("delayed"):
            psql("SELECT count(*) FROM queue_push_batch('%s', (SELECT array_agg('%s'::text) FROM "
                 "generate_series(1, 100000)), deliver_at => now() + interval '1 day');" % (queue, doc(1)))
        fill(queue, 1000)
        points.append((label, again(queue)))
    return points


def with_snapshot(label, run):
    """Beside the second point stands a session that keeps an old snapshot and an open write."""
    if label == "no snapshot":
        return run()
    holder = subprocess.Popen(["psql", "-XqAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO biz(v) VALUES ('held'); SELECT count(*) FROM skq;\n")
    holder.stdin.flush()
    holder.stdout.readline()
    try:
        return run()
    finally:
        holder.stdin.close()
        holder.wait()


def case_curves():
    """cost of pop + ack + push by backlog, partitions, groups, older messages, with an old snapshot"""
    for name, make in (("backlog", waiting), ("partitions", partitions), ("groups", groups), ("older messages", older)):
        curve(name, make())
    queue = create("curve_snapshot")
    fill(queue, 100000)
    path = again(queue)
    curve("old snapshot", [("no snapshot", path), ("snapshot held", path)], with_snapshot)
    psql("SELECT count(queue_drop(queue)) FROM qlog_queues WHERE queue LIKE 'curve%';")
