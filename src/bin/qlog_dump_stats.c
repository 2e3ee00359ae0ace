/*
 * qlog_dump_stats.c
 *		Counters of qlog_dump: what was seen in one log and in all of them.
 */
#include "qlog_dump.h"

static void
widen_time(DumpStats *stats, int64_t first, int64_t last)
{
	if (stats->first_seq == 0 || first < stats->first_time)
		stats->first_time = first;
	if (stats->first_seq == 0 || last > stats->last_time)
		stats->last_time = last;
}

static void
widen_seq(DumpStats *stats, uint64_t first, uint64_t last)
{
	if (stats->first_seq == 0 || first < stats->first_seq)
		stats->first_seq = first;
	if (last > stats->last_seq)
		stats->last_seq = last;
}

void
dump_stats_add(DumpStats *to, const DumpStats *from)
{
	if (from->first_seq != 0)
	{
		widen_time(to, from->first_time, from->last_time);
		widen_seq(to, from->first_seq, from->last_seq);
	}
	to->files += from->files;
	to->bytes += from->bytes;
	to->messages += from->messages;
	to->raw_bytes += from->raw_bytes;
	to->stored_bytes += from->stored_bytes;
	to->damages += from->damages;
	to->torn += from->torn;
	for (int i = 0; i < DUMP_KINDS; i++)
		to->records[i] += from->records[i];
	for (int i = 0; i < QC_EFFECT_KIND_END; i++)
		to->effects[i] += from->effects[i];
}

void
dump_stats_record(DumpStats *stats, const QcRecord *record)
{
	widen_time(stats, record->created_at, record->created_at);
	widen_seq(stats, record->seq, record->seq);
	stats->records[record->kind]++;
	stats->bytes += (uint64_t) record->len + 4;
	if (record->kind == QC_KIND_MESSAGES || record->kind == QC_KIND_SOLO)
	{
		stats->messages += record->count;
		stats->stored_bytes += record->payload_len;
	}
}

/* Numbers of records of each kind and of effects, which --stats adds. */
static void
print_details(DumpRow *row, const DumpStats *stats)
{
	dump_row_u64(row, "record_bytes", stats->bytes);
	dump_row_u64(row, "payload_bytes", stats->raw_bytes);
	dump_row_u64(row, "stored_payload_bytes", stats->stored_bytes);
	dump_row_list_begin(row, "kinds");
	for (int i = 0; i < DUMP_KINDS; i++)
	{
		if (stats->records[i] == 0)
			continue;
		dump_row_item_begin(row, "kind");
		dump_row_word(row, "name", dump_kind_name((QcKind) i));
		dump_row_u64(row, "records", stats->records[i]);
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
	dump_row_list_begin(row, "effects");
	for (int i = 0; i < QC_EFFECT_KIND_END; i++)
	{
		if (stats->effects[i] == 0)
			continue;
		dump_row_item_begin(row, "effect");
		dump_row_word(row, "name", qc_effect_name((QcEffectKind) i));
		dump_row_u64(row, "count", stats->effects[i]);
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
}

void
dump_stats_print(Dump *dump, const char *type, const DumpLog *log, const DumpStats *stats)
{
	DumpRow    *row = &dump->row;
	uint64_t	records = 0;

	for (int i = 0; i < DUMP_KINDS; i++)
		records += stats->records[i];
	dump_row_begin(row, type);
	if (log != NULL && log->known)
		dump_row_u64(row, "log", log->id);
	dump_row_u64(row, "files", stats->files);
	dump_row_u64(row, "records", records);
	dump_row_u64(row, "messages", stats->messages);
	if (stats->first_seq != 0)
	{
		dump_row_u64(row, "first_seq", stats->first_seq);
		dump_row_u64(row, "last_seq", stats->last_seq);
		dump_row_time(row, "first_created_at", stats->first_time);
		dump_row_time(row, "last_created_at", stats->last_time);
	}
	dump_row_u64(row, "damages", stats->damages);
	dump_row_u64(row, "torn_tails", stats->torn);
	if (dump->options.stats)
		print_details(row, stats);
	dump_row_end(row);
}
