/*
 * qlog_dump_parts.c
 *		Parts of entries over several logs, compared after all logs were read.
 *
 * What is told apart: a stub that contradicts the whole entry is damage.  A part that is missing behind the first
 * record of its log is damage when its seq was known durable, because files are reclaimed from the oldest on only;
 * otherwise it is what a crash leaves, and recovery cuts from there.  A part that would stand before the first record
 * may have been reclaimed, which only the checkpoint knows: it is reported as incomplete and judged no further.
 */
#include "qlog_dump.h"

#include <stdlib.h>
#include <string.h>

#include "qc_array.h"
#include "qc_entry.h"

typedef struct Part
{
	uint64_t	seq;
	uint64_t	log;
	uint64_t	digest;			/* of the entry's payload */
	uint32_t	len;			/* of the entry's payload */
	uint32_t	copies;
	uint32_t	records;		/* message records of the seq in this log */
	bool		whole;
	bool		solo;
	size_t		shares_at;		/* of a whole entry: its shares in the pool */
	uint32_t	nshares;
} Part;

/* What a whole entry says about one of its logs. */
typedef struct Share
{
	uint64_t	log;
	uint64_t	records;		/* message records that its append effects name */
} Share;

typedef struct LogStart
{
	uint64_t	log;
	bool		reclaimed;		/* its first file is gone */
	uint64_t	first_seq;		/* 0 = no record */
} LogStart;

struct DumpParts
{
	Part	   *parts;
	uint32_t	nparts;
	uint32_t	parts_cap;
	Share	   *shares;
	uint32_t	nshares;
	uint32_t	shares_cap;
	LogStart   *logs;
	uint32_t	nlogs;
	uint32_t	logs_cap;
	uint64_t	open_seq;		/* entry whose message records were added last */
	uint32_t	open_records;
	uint64_t	durable_seq;	/* the largest that any entry states */
	uint64_t	last_seq;
	bool		no_memory;
};

DumpParts *
dump_parts_create(void)
{
	return calloc(1, sizeof(DumpParts));
}

void
dump_parts_free(DumpParts *parts)
{
	if (parts == NULL)
		return;
	free(parts->parts);
	free(parts->shares);
	free(parts->logs);
	free(parts);
}

/* Room for one more element of an array; false without memory, and then for good. */
static bool
grow(DumpParts *parts, void *array, uint32_t count, uint32_t *cap, size_t element)
{
	if (qc_array_grow(array, cap, count + 1, element, NULL) != QC_OK)
		parts->no_memory = true;
	return !parts->no_memory;
}

void
dump_parts_log(DumpParts *parts, uint64_t log, bool reclaimed)
{

	parts->open_seq = 0;
	parts->open_records = 0;
	if (!grow(parts, &parts->logs, parts->nlogs, &parts->logs_cap, sizeof(LogStart)))
		return;
	parts->logs[parts->nlogs++] = (LogStart)
	{
		.log = log, .reclaimed = reclaimed
	};
}

static void
add_share(DumpParts *parts, uint64_t log, uint64_t records)
{

	if (!grow(parts, &parts->shares, parts->nshares, &parts->shares_cap, sizeof(Share)))
		return;
	parts->shares[parts->nshares++] = (Share)
	{
		.log = log, .records = records
	};
}

/* Shares of a whole entry, one for each of its logs. */
static void
add_shares(DumpParts *parts, Part *part, const QcEntry *entry)
{
	part->shares_at = parts->nshares;
	part->nshares = entry->nlogs;
	for (uint32_t i = 0; i < entry->nlogs; i++)
	{
		uint64_t	log = qc_entry_log(entry, i);
		uint64_t	records = 0;
		QcReader	effects = entry->effects;
		QcEffect	effect;

		while (qc_effect_get(&effects, &effect, NULL) == QC_OK)
		{
			if (effect.kind == QC_EFFECT_APPEND && effect.u.append.log == log)
				records += effect.u.append.records;
		}
		add_share(parts, log, records);
	}
}

static void
note_durable(DumpParts *parts, uint64_t durable_seq)
{
	if (durable_seq > parts->durable_seq)
		parts->durable_seq = durable_seq;
}

/* Fill in what the record says about its entry; false when it is no readable end of a part. */
static bool
read_part(DumpParts *parts, const QcRecord *record, Part *part)
{
	QcEntry		entry;

	switch (record->kind)
	{
		case QC_KIND_SOLO:
			note_durable(parts, record->durable_seq);
			part->solo = true;
			return true;
		case QC_KIND_ENTRY:
			if (qc_entry_decode(record->payload, record->payload_len, &entry, NULL) != QC_OK)
				return false;
			note_durable(parts, entry.durable_seq);
			part->whole = true;
			part->copies = record->copies;
			part->len = record->payload_len;
			part->digest = qc_digest(record->payload, record->payload_len);
			add_shares(parts, part, &entry);
			return true;
		case QC_KIND_STUB:
			part->copies = record->copies;
			part->digest = qc_load_u64(record->payload);
			part->len = qc_load_u32(record->payload + 8);
			return true;
		case QC_KIND_MESSAGES:
		case QC_KIND_PAD:
			break;
	}
	return false;
}

void
dump_parts_add(DumpParts *parts, const QcRecord *record)
{
	Part		part = {.seq = record->seq};

	if (parts->no_memory || record->kind == QC_KIND_PAD)
		return;
	if (record->seq > parts->last_seq)
		parts->last_seq = record->seq;
	if (record->seq != parts->open_seq)
		parts->open_records = 0;
	if (parts->logs[parts->nlogs - 1].first_seq == 0)
		parts->logs[parts->nlogs - 1].first_seq = record->seq;
	parts->open_seq = record->seq;
	parts->open_records += record->kind == QC_KIND_MESSAGES;
	if (!read_part(parts, record, &part) || parts->no_memory)
		return;
	part.log = parts->logs[parts->nlogs - 1].log;
	part.records = parts->open_records;
	if (!grow(parts, &parts->parts, parts->nparts, &parts->parts_cap, sizeof(Part)))
		return;
	parts->parts[parts->nparts++] = part;
}

/* ---- comparing ---- */

static int
compare_parts(const void *a, const void *b)
{
	const Part *left = a;
	const Part *right = b;

	if (left->seq != right->seq)
		return left->seq < right->seq ? -1 : 1;
	if (left->log != right->log)
		return left->log < right->log ? -1 : 1;
	return 0;
}

static const Part *
find_part(const DumpParts *parts, uint64_t seq, uint64_t log)
{
	Part		key = {.seq = seq, .log = log};

	return bsearch(&key, parts->parts, parts->nparts, sizeof(Part), compare_parts);
}

static const LogStart *
find_log(const DumpParts *parts, uint64_t log)
{
	for (size_t i = 0; i < parts->nlogs; i++)
	{
		if (parts->logs[i].log == log)
			return &parts->logs[i];
	}
	return NULL;
}

static void
print_incomplete(Dump *dump, const Part *part, uint64_t log, const char *reason)
{
	DumpRow    *row = &dump->row;

	if (dump->options.quiet)
		return;
	dump_row_begin(row, "incomplete");
	dump_row_u64(row, "seq", part->seq);
	dump_row_u64(row, "log", log);
	dump_row_word(row, "reason", reason);
	dump_row_end(row);
}

static void
report_damage(Dump *dump, uint64_t seq, uint64_t log, const char *what)
{
	char		path[48];
	char		reason[160];

	(void) snprintf(path, sizeof(path), "q%llu", (unsigned long long) log);
	(void) snprintf(reason, sizeof(reason), "entry %llu: %s", (unsigned long long) seq, what);
	dump_damage(dump, &dump->total, path, UINT64_MAX, 0, reason);
}

/* A part that a whole entry names is not there. */
static void
judge_missing(Dump *dump, const Part *whole, uint64_t log)
{
	const DumpParts *parts = dump->parts;
	const LogStart *start = find_log(parts, log);

	/* the log of a queue that was dropped; what is below the floor may have been removed */
	if (start == NULL || whole->seq <= dump->floor)
		return;
	if (whole->seq <= parts->durable_seq &&
		(!start->reclaimed || (start->first_seq != 0 && start->first_seq <= whole->seq)))
		report_damage(dump, whole->seq, log, "its part was durable and is not there");
	else
		print_incomplete(dump, whole, log, "part is missing");
}

static void
compare_entry(Dump *dump, const Part *whole)
{
	const DumpParts *parts = dump->parts;

	for (uint32_t i = 0; i < whole->nshares; i++)
	{
		const Share *share = &parts->shares[whole->shares_at + i];
		const Part *part = find_part(parts, whole->seq, share->log);

		if (part == NULL)
			judge_missing(dump, whole, share->log);
		else if (part->solo || part->copies != whole->copies || part->len != whole->len ||
				 part->digest != whole->digest)
			report_damage(dump, whole->seq, share->log, "its part here is of another entry");
		else if (part->records < share->records && whole->seq > dump->floor)
			print_incomplete(dump, whole, share->log, "message records are missing");
	}
}

/* Is the entry of this stub there?  Entries further down may have been reclaimed. */
static void
judge_stub(Dump *dump, const Part *stub)
{
	const DumpParts *parts = dump->parts;

	for (const Part *p = stub; p >= parts->parts && p->seq == stub->seq; p--)
	{
		if (p->whole)
			return;
	}
	if (stub->seq > parts->durable_seq && stub->seq > dump->floor)
		print_incomplete(dump, stub, stub->log, "the whole entry of this stub is missing");
}

void
dump_parts_compare(Dump *dump)
{
	DumpParts  *parts = dump->parts;

	if (parts->no_memory)
	{
		QcError		err;

		(void) qc_error_set(&err, QC_FULL, "out of memory: logs were not compared with each other");
		dump_fail(dump, &err);
		return;
	}
	if (parts->nparts > 0)
		qsort(parts->parts, parts->nparts, sizeof(Part), compare_parts);
	for (size_t i = 0; i < parts->nparts; i++)
	{
		if (parts->parts[i].whole)
			compare_entry(dump, &parts->parts[i]);
		else if (!parts->parts[i].solo)
			judge_stub(dump, &parts->parts[i]);
	}
	if (parts->last_seq < parts->durable_seq)
		report_damage(dump, parts->durable_seq, 0, "it was durable and no record of it is left");
}
