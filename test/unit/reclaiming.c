/*
 * reclaiming.c
 *		Reclaim over a directory made by hand.
 */
#include "reclaiming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"
#include "qc_rows.h"

Reclaiming	rec;

/* ---- hooks ---- */

static void
take_lock(void *context)
{
	(void) context;
	CHECK_U64(rec.locked, 0);
	rec.locked++;
}

static void
give_lock(void *context)
{
	(void) context;
	CHECK_U64(rec.locked, 1);
	rec.locked--;
}

static bool
written(void *context, uint64_t seq)
{
	(void) context;
	CHECK_U64(rec.locked, 0);
	CHECK(seq <= run.st->seq);
	return true;
}

static bool
stored(void *context, uint64_t stamp)
{
	(void) context;
	CHECK_U64(rec.locked, 0);
	if (!qc_rows_is_stored(run.st, stamp) && !rec.no_checkpoint)
		reclaiming_checkpoint();
	return qc_rows_is_stored(run.st, stamp);
}

static uint64_t
floor_now(void *context)
{
	uint64_t	floor = rec.snapshot < run.st->checkpoint_seq ? rec.snapshot : run.st->checkpoint_seq;

	(void) context;
	if (rec.snapshot_asked > 0 && --rec.snapshot_asked == 0)
		rec.snapshot = UINT64_MAX;
	return floor;
}

static QcStatus
raise_floor(void *context, uint64_t seq, QcError *error)
{
	uint64_t	old;
	QcStatus	status = qc_dir_read_floor(hand.io, &old, error);

	(void) context;
	return status == QC_OK && seq > old ? qc_dir_write_floor(hand.io, seq, error) : status;
}

static bool
keep_out(void *context)
{
	(void) context;
	return !rec.backup;
}

static void
let_in(void *context)
{
	(void) context;
	CHECK(!rec.backup);
}

static QcStatus
extend(void *context, const QcExtend *what, QcError *error)
{
	QcStatus	status = qc_log_extend_io(&hand.files, what, error);

	(void) context;
	if (status == QC_OK)
		qc_log_extended(run.st, what, rec.r.segment_size);
	return status;
}

static void
changed(void *context, uint64_t log, uint64_t file)
{
	(void) context;
	qc_files_forget(&hand.files, log, file);
	qc_read_forget(&run.cache, log, file);
	rec.nchanged++;
	rec.changed |= log == 1 ? UINT32_C(1) << file : 0;
}

static void
report(void *context, const QcError *error)
{
	(void) context;
	rec.reported = *error;
	rec.nreported++;
}

static bool
go_on(void *context, const char *phase, uint64_t done, uint64_t total)
{
	(void) context;
	(void) done;
	(void) total;
	CHECK(phase[0] != '\0');
	return rec.go_ons == 0 || --rec.go_ons > 0;
}

static int64_t
clock_now(void *context)
{
	(void) context;
	return rec.monotonic;
}

/* ---- the directory ---- */

/* Ten messages of a hundred bytes in one record. */
static void
push_ten(uint64_t *seq, uint64_t first)
{
	(void) hand_solo(&hand, 1, (*seq)++, 101, first, 10);
}

static void
push_range(uint64_t *seq, uint64_t first, uint64_t end)
{
	for (; first < end; first += 10)
		push_ten(seq, first);
}

static void
purge(uint64_t *seq)
{
	QcPurge		effect = {.queue = 1, .partition = 101};

	hand_entry(&entry, (*seq)++, 0, 0);
	hand_effect(&entry, QC_EFFECT_PURGE, &effect, 0);
	hand_write_entry(&hand, &entry);
}

/* An undecided entry of ten times ten messages, which recovery aborts. */
static void
push_undecided(uint64_t *seq, uint64_t first)
{
	for (int i = 0; i < 10; i++, first += 10)
	{
		hand_entry(&entry, (*seq)++, 70 + (uint64_t) i, QC_ENTRY_CARRIED);
		hand_push(&entry, 1, 101, first, 10);
		hand_write_entry(&hand, &entry);
	}
}

static void
put_files(void)
{
	uint64_t	seq = 3;

	(void) hand_solo(&hand, 2, seq++, 102, 0, 2);
	push_range(&seq, 0, 100);
	hand_roll(&hand, 1);
	purge(&seq);
	hand_roll(&hand, 0);
	push_range(&seq, 100, 150);
	purge(&seq);
	hand_roll(&hand, 0);
	purge(&seq);
	push_range(&seq, 150, 200);
	hand_roll(&hand, 1);
	push_undecided(&seq, 200);
	hand_roll(&hand, 1);
	push_range(&seq, 300, 400);
	hand_roll(&hand, 1);
	push_ten(&seq, 400);
	hand_sync(&hand);
}

static void
set_up(void)
{
	rec.r = (QcReclaim)
	{
		.st = run.st, .cache = &run.cache,.lock =
		{
		NULL, take_lock, take_lock, give_lock
		},
		.hooks =
		{
		.write = written, .stored = stored, .floor = floor_now, .raise_floor = raise_floor, .keep_out = keep_out,
				.let_in = let_in, .extend = extend, .changed = changed, .report = report,
				.go_on = go_on, .monotonic = clock_now
		},
		.segment_size = HAND_ALLOCATED, .gain = 1000, .again_us = 60000000
	};
}

void
reclaiming_begin(void)
{
	memset(&rec, 0, sizeof(rec));
	rec.monotonic = 1000;
	rec.snapshot = UINT64_MAX;
	fixture_begin();
	put_files();
	CHECK(run_ok(&run, &hand, &server, NULL));
	set_up();
}

void
reclaiming_end(void)
{
	qc_reclaim_end(&rec.r);
	rows_free(&rec.rows);
	fixture_end();
}

bool
reclaiming_restart(void)
{
	RunOptions	options = {.rows = rec.rows.count == 0 ? NULL : &rec.rows};
	uint32_t	strays;
	bool		good;

	qc_reclaim_end(&rec.r);
	run_end(&run);
	sim_disk_kill(hand.disk);
	qc_files_init(&hand.files, hand.io, hand.files.layout);
	rec.locked = 0;
	CHECK_U64(qc_dir_sweep(hand.io, hand.files.layout, &strays, &rec.err), QC_OK);
	CHECK_U64(qc_dir_read_floor(hand.io, &options.floor, &rec.err), QC_OK);
	good = run_ok(&run, &hand, &server, &options);
	set_up();
	return good;
}

void
reclaiming_checkpoint(void)
{
	size_t		cap = 1u << 20;
	uint8_t    *batch = malloc(cap);
	QcWriter	w;
	QcRowsMark	mark;
	QcStatus	status;

	qc_writer_init(&w, batch, cap);
	status = qc_rows_dump(run.st, &w, &mark, &rec.err);
	if (status == QC_OK)
	{
		rows_apply(&rec.rows, &w);
		qc_rows_stored(run.st, &mark);
	}
	CHECK(status == QC_OK || status == QC_END);
	free(batch);
}

QcStatus
reclaiming_pass(void)
{
	QcReclaimBudget budget = {.files = 100, .us = 1000000, .rewrites = 4};

	qc_error_clear(&rec.err);
	return qc_reclaim_pass(&rec.r, &budget, 2000000, &rec.report, &rec.err);
}

uint64_t
reclaiming_size(uint64_t log, uint64_t file, const char *suffix)
{
	char		path[QC_PATH_MAX];

	qc_path_file(path, hand.files.layout, log, file, suffix);
	return hand_size(&hand, path);
}

void
reclaiming_expect_messages(void)
{
	expect_positions(&run, 1, 410, 410);
	expect_positions(&run, 2, 2, 2);
	expect_readable(&run, 1, 150, 200);
	expect_readable(&run, 1, 300, 410);
	expect_readable(&run, 2, 0, 2);
}
