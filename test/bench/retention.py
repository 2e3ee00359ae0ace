"""How many partitions a second the retention worker takes old messages from."""
import statistics
import time

from measure import REPS, RESULTS, fill, psql

PARTITIONS = 200000
AGE = 3  # seconds between the older half of the messages and the newer one


def naptime(value):
    psql("ALTER SYSTEM SET qlog.retention_naptime = '%s'" % value)
    psql("SELECT pg_reload_conf()")


def removed():
    return int(psql("SELECT removed_unread FROM qlog_stat_queues WHERE queue = 'bench_old'"))


def prepare():
    """Each partition has an older and a newer message; returns the time between them."""
    psql("SELECT queue_drop('bench_old', true)")
    psql("SELECT queue_create('bench_old')")
    fill("bench_old", PARTITIONS, parts=PARTITIONS, step=4000)
    time.sleep(AGE)
    middle = psql("SELECT clock_timestamp()")
    fill("bench_old", PARTITIONS, parts=PARTITIONS, step=4000)
    return middle


def run():
    """Partitions a second, from the setting to the last removal."""
    naptime("1h")
    middle = prepare()
    naptime("10ms")
    began = time.time()
    psql("SELECT queue_set('bench_old', 'retention', extract(epoch FROM clock_timestamp() - '%s')::int || ' seconds')" % middle)
    while removed() < PARTITIONS:
        time.sleep(0.01)
    return PARTITIONS / (time.time() - began)


def case_retention():
    """partitions a second that lose their older half to the option retention"""
    rates = [run() for _ in range(REPS)]
    psql("ALTER SYSTEM RESET qlog.retention_naptime")
    psql("SELECT pg_reload_conf()")
    psql("SELECT queue_drop('bench_old')")
    row = {"case": "retention", "target": ">= 50000", "per_s": round(statistics.median(rates)), "min": round(min(rates)),
           "max": round(max(rates))}
    RESULTS.append(row)
    print("retention, %d partitions of which each loses its older message: %d partitions/s [%d..%d] target >= 50000" % (
        PARTITIONS, row["per_s"], row["min"], row["max"]), flush=True)
