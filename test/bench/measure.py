"""What the measurements have in common: SQL, pgbench, messages, side by side comparison."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

SECS = float(os.environ.get("SECS", "3"))
REPS = int(os.environ.get("REPS", "5"))
PAD = "".join(chr(97 + (i * 7) % 26) for i in range(172))
DOC = ('{"id": %d, "type": "order.created", "tenant": "acme-eu-1", "ts": "2026-01-01T00:00:00Z", '
       '"amount": 12.50, "pad": "' + PAD + '"}')
WORK = tempfile.mkdtemp(prefix="bench.")


def doc(i):
    return DOC % (1000000 + i)


def psql(text):
    run = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], input=text, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode:
        sys.exit("SQL failed: %s\n%s" % (text[:300], run.stderr))
    return run.stdout.strip()


def script(name, text):
    path = os.path.join(WORK, name + ".sql")
    with open(path, "w") as f:
        f.write(text)
    return path


def pgbench(path, clients, mode="prepared", secs=None, per=1, each=None, more=()):
    """Transactions per second times `per`.  each: so many transactions per client instead of a time."""
    extent = ["-T", str(int(secs or SECS))] if each is None else ["-t", str(each)]
    cmd = ["pgbench", "-n", "-M", mode, "-c", str(clients), "-j", "2"] + extent + list(more) + ["-f", path]
    run = subprocess.run(cmd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode:
        sys.exit("pgbench failed: %s\n%s" % (path, run.stderr[-2000:]))
    for line in run.stdout.splitlines():
        if line.startswith("tps = "):
            return float(line.split()[2]) * per
    sys.exit("pgbench printed no tps")


def array(n):
    items = ",".join('"%s"' % doc(i).replace("\\", "\\\\").replace('"', '\\"') for i in range(n))
    return "{" + items + "}"


RESULTS = []


def compare(name, target, a, b, note=""):
    ratios, sides = [], {"a": [], "b": []}
    for rep in range(REPS):
        order = (("a", a), ("b", b)) if rep % 2 == 0 else (("b", b), ("a", a))
        got = {}
        for key, side in order:
            got[key] = side()
            sides[key].append(got[key])
        ratios.append(got["a"] / got["b"])
    row = {"case": name, "target": target, "ratio": round(statistics.median(ratios), 3),
           "min": round(min(ratios), 3), "max": round(max(ratios), 3),
           "qlog": round(statistics.median(sides["a"])), "peer": round(statistics.median(sides["b"])), "note": note}
    RESULTS.append(row)
    print("%-34s %6.2fx [%5.2f..%5.2f]  target %-8s qlog %9d/s  peer %9d/s  %s" % (
        name, row["ratio"], row["min"], row["max"], target, row["qlog"], row["peer"], note), flush=True)


def fill(queue, total, parts=0, step=20000):
    """`total` messages in autocommitted batches; over partitions p1 .. p<parts>, or into the default one."""
    for first in range(0, total, step):
        n = min(step, total - first)
        where = "" if not parts else ", (SELECT array_agg('p' || 1 + i %% %d) FROM generate_series(%d, %d) i)" % (
            parts, first, first + n - 1)
        psql("SELECT count(*) FROM queue_push_batch('%s', (SELECT array_agg('%s'::text) FROM generate_series(1, %d))%s);" % (
            queue, doc(1), n, where))


def kill_all():
    """kill -9 of the whole server."""
    data = os.environ["PGDATA"]
    with open(os.path.join(data, "postmaster.pid")) as f:
        pid = int(f.readline())
    children = [int(p) for p in subprocess.run(["pgrep", "-P", str(pid)], text=True,
                                               stdout=subprocess.PIPE).stdout.split()]
    for p in [pid] + children:
        subprocess.run(["kill", "-9", str(p)], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    os.unlink(os.path.join(data, "postmaster.pid"))

    # The lock of the socket may name a zombie, which would pass for a running server.
    for name in os.listdir(os.environ["PGHOST"]):
        if name.startswith(".s.PGSQL."):
            os.unlink(os.path.join(os.environ["PGHOST"], name))


def restart(how="kill"):
    """Stop or kill -9, start, first answer; seconds of both, and qlog's own part as the server log tells it."""
    data = os.environ["PGDATA"]
    begin = time.time()
    if how == "kill":
        kill_all()
    else:
        subprocess.run(["pg_ctl", "-D", data, "-w", "-t", "300", "-m", "fast", "stop"], check=True, stdout=subprocess.DEVNULL)
    down = time.time() - begin
    begin = time.time()
    subprocess.run(["pg_ctl", "-D", data, "-l", os.path.join(data, "..", "server.log"), "-w", "-t", "120", "start"],
                   check=True, stdout=subprocess.DEVNULL)
    psql("SELECT count(*) FROM qlog_stat_queues")
    psql("SELECT queue_push('bench', '{}')")
    up = time.time() - begin
    own = None
    for line in open(os.path.join(data, "..", "server.log"), errors="replace"):
        if "qlog: ready" in line:
            own = line.strip().split("qlog: ready", 1)[1]
    return down, up, own
