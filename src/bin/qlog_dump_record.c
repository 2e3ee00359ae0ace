/*
 * qlog_dump_record.c
 *		One record of a log: checked beyond its checksum, counted, and printed.
 *
 * A record that comes here has a right checksum, so a fault found here was written so: it is reported as
 * damage at the record, which is printed nevertheless as far as it can be read.
 */
#include "qlog_dump.h"

#include <stdlib.h>
#include <string.h>

#include "qc_entry.h"
#include "qc_frame.h"
#include "qc_search.h"

const char *
dump_kind_name(QcKind kind)
{
	switch (kind)
	{
		case QC_KIND_MESSAGES:
			return "messages";
		case QC_KIND_ENTRY:
			return "entry";
		case QC_KIND_STUB:
			return "stub";
		case QC_KIND_PAD:
			return "pad";
		case QC_KIND_SOLO:
			return "solo";
	}
	return "unknown";
}

static bool
holds_messages(const QcRecord *record)
{
	return record->kind == QC_KIND_MESSAGES || record->kind == QC_KIND_SOLO;
}

/* ---- checking ---- */

/* The payload's frames in dump->raw. */
static QcStatus
unpack(Dump *dump, const QcRecord *record, QcReader *frames, QcError *err)
{
	size_t		size;
	QcStatus	status = qc_record_raw_size(record, &size, err);

	if (status != QC_OK)
		return status;
	if (size > dump->raw_cap)
	{
		uint8_t    *more = realloc(dump->raw, size);

		if (more == NULL)
			return qc_error_set(err, QC_FULL, "out of memory");
		dump->raw = more;
		dump->raw_cap = size;
	}
	status = qc_record_unpack(record, dump->raw, size, err);
	if (status == QC_OK)
		qc_reader_init(frames, dump->raw, size);
	return status;
}

/* A whole entry belongs into the first of its logs, and its record counts them. */
static QcStatus
check_entry(const DumpLog *log, const QcRecord *record, const QcEntry *entry, QcError *err)
{
	if (record->copies != entry->nlogs)
		return qc_error_set(err, QC_DAMAGED, "entry names %u logs and its record %u", entry->nlogs,
							record->copies);
	if (log->known && qc_entry_log(entry, 0) != log->id)
		return qc_error_set(err, QC_DAMAGED, "entry stands in a log that is not the first of its logs");
	return QC_OK;
}

/* ---- printing ---- */

/* One message with its data; bytes that are no text are printed in hexadecimal. */
static void
print_message(Dump *dump, uint64_t position, const QcMessage *message)
{
	DumpRow    *row = &dump->row;
	bool		as_hex = dump->options.payload == DUMP_PAYLOAD_HEX ||
		(message->flags & (QC_FRAME_BINARY | QC_FRAME_ENCRYPTED)) != 0;

	dump_row_item_begin(row, "message");
	dump_row_u64(row, "position", position);
	dump_row_uuid(row, "id", message->id);
	if (message->flags & QC_FRAME_TRACE)
		dump_row_uuid(row, "trace", message->trace);
	if (message->dedup_len > 0)
		dump_row_string(row, "dedup_id", message->dedup_id, message->dedup_len);
	if (message->flags & QC_FRAME_PRODUCER)
		dump_row_string(row, "producer", message->producer, message->producer_len);
	dump_row_flag(row, "encrypted", (message->flags & QC_FRAME_ENCRYPTED) != 0);
	dump_row_flag(row, "binary", (message->flags & QC_FRAME_BINARY) != 0);
	dump_row_u64(row, "bytes", message->data_len);
	if (message->flags & QC_FRAME_HEADERS)
		dump_row_text(row, "headers", message->headers, message->headers_len);
	if (message->flags & QC_FRAME_DEAD)
	{
		dump_row_string(row, "from_partition", message->partition, message->partition_len);
		dump_row_string(row, "reason", message->reason, message->reason_len);
	}
	if (as_hex)
		dump_row_hex(row, "data_hex", message->data, message->data_len);
	else
		dump_row_text(row, "data", message->data, message->data_len);
	dump_row_item_end(row);
}

static void
print_messages(Dump *dump, const QcRecord *record, QcReader frames)
{
	QcMessage	message;
	QcError		err;

	dump_row_list_begin(&dump->row, "messages");
	for (uint32_t i = 0; i < record->count; i++)
	{
		if (qc_frame_get(&frames, &message, &err) != QC_OK)
			break;
		print_message(dump, record->first + i, &message);
	}
	dump_row_list_end(&dump->row);
}

/* Where the fields of one effect go. */
typedef struct EffectPrint
{
	DumpRow    *row;
	int64_t		item;			/* that is open */
} EffectPrint;

static void
close_item(EffectPrint *print)
{
	if (print->item >= 0)
		dump_row_item_end(print->row);
}

static void
print_field(void *context, const QcField *field)
{
	EffectPrint *print = context;

	if (field->item != print->item)
	{
		if (print->item < 0)
			dump_row_list_begin(print->row, "items");
		close_item(print);
		dump_row_item_begin(print->row, "item");
		print->item = field->item;
	}
	if (field->is_string)
		dump_row_string(print->row, field->name, field->str.bytes, field->str.len);
	else if (field->is_signed)
		dump_row_i64(print->row, field->name, (int64_t) field->value);
	else
		dump_row_u64(print->row, field->name, field->value);
}

void
dump_effects(DumpRow *row, QcReader effects, uint32_t count)
{
	QcEffect	effect;
	QcError		err;

	dump_row_list_begin(row, "effects");
	for (uint32_t i = 0; i < count && qc_effect_get(&effects, &effect, &err) == QC_OK; i++)
	{
		EffectPrint print = {.row = row, .item = -1};

		dump_row_item_begin(row, qc_effect_name(effect.kind));
		qc_effect_visit(&effect, print_field, &print);
		close_item(&print);
		if (print.item >= 0)
			dump_row_list_end(row);
		dump_row_item_end(row);
	}
	dump_row_list_end(row);
}

static const char *
flags_name(uint16_t flags)
{
	if (flags & QC_ENTRY_CARRIED)
		return "carried";
	return flags & QC_ENTRY_REFERENCED ? "referenced" : "none";
}

static void
print_entry(DumpRow *row, const QcEntry *entry)
{
	dump_row_word(row, "flags", flags_name(entry->flags));
	dump_row_u64(row, "durable_seq", entry->durable_seq);
	dump_row_u64(row, "xid", entry->xid);
	dump_row_u64_list(row, "logs", entry->logs, entry->nlogs);
	dump_effects(row, entry->effects, entry->neffects);
}

/* The header fields, as far as they mean something in this kind. */
static void
print_header(DumpRow *row, uint64_t position, const QcRecord *record)
{
	dump_row_u64(row, "at", position);
	dump_row_u64(row, "size", (uint64_t) record->len + 4);
	dump_row_u64(row, "seq", record->seq);
	dump_row_word(row, "kind", dump_kind_name(record->kind));
	if (holds_messages(record))
	{
		dump_row_u64(row, "partition", record->partition);
		dump_row_u64(row, "first", record->first);
		dump_row_u64(row, "count", record->count);
		dump_row_flag(row, "compressed", record->compressed);
	}
	if (record->kind == QC_KIND_SOLO)
		dump_row_u64(row, "durable_seq", record->durable_seq);
	if (record->kind == QC_KIND_ENTRY || record->kind == QC_KIND_STUB)
	{
		dump_row_u64(row, "copies", record->copies);
		dump_row_u64(row, "epoch", record->epoch);
	}
	if (record->kind == QC_KIND_STUB)
	{
		dump_row_digest(row, "entry_digest", qc_load_u64(record->payload));
		dump_row_u64(row, "entry_bytes", qc_load_u32(record->payload + 8));
	}
	dump_row_time(row, "created_at", record->created_at);
}

/* ---- filters ---- */

/* Is it a partition that is wanted? */
static bool
wants_partition(const DumpOptions *options, uint64_t partition)
{
	uint32_t	at;

	if (options->one_partition && partition != options->partition)
		return false;
	if (!options->one_queue)
		return true;
	at = qc_lower_bound(options->partitions, options->npartitions, sizeof(uint64_t), 0, partition);
	return at < options->npartitions && options->partitions[at] == partition;
}

/* Does an effect of the entry name a partition that is wanted, or the queue, in any of its fields or items of that name? */
typedef struct Search
{
	const DumpOptions *options;
	bool		found;
} Search;

static void
look_for_partition(void *context, const QcField *field)
{
	Search	   *search = context;

	if (field->is_string)
		return;
	if (strcmp(field->name, "partition") == 0 && field->value != 0)
		search->found = search->found || wants_partition(search->options, field->value);
	else if (strcmp(field->name, "queue") == 0 && search->options->one_queue && !search->options->one_partition)
		search->found = search->found || field->value == search->options->queue_id;
}

/* Do the filters want an entry for one of its effects? */
static bool
effects_pass(const DumpOptions *options, const QcEntry *entry)
{
	QcReader	effects = entry->effects;
	QcEffect	effect;
	QcError		err;
	bool		kind_found = options->effect == DUMP_ANY;
	Search		search = {.options = options, .found = !options->one_partition && !options->one_queue};

	for (uint32_t i = 0; i < entry->neffects && qc_effect_get(&effects, &effect, &err) == QC_OK; i++)
	{
		kind_found = kind_found || (int) effect.kind == options->effect;
		qc_effect_visit(&effect, look_for_partition, &search);
	}
	return kind_found && search.found;
}

/* entry is NULL unless the record is a readable entry. */
static bool
passes(const DumpOptions *options, const QcRecord *record, const QcEntry *entry)
{
	if (record->seq < options->start || record->seq > options->end)
		return false;
	if (options->kind != DUMP_ANY && (int) record->kind != options->kind)
		return false;
	if (entry != NULL)
		return effects_pass(options, entry);
	if (options->effect != DUMP_ANY)
		return false;
	return (!options->one_partition && !options->one_queue) ||
		(holds_messages(record) && wants_partition(options, record->partition));
}

/* ---- the record ---- */

/* What was read of a record. */
typedef struct Content
{
	QcStatus	status;			/* of payload or entry */
	QcReader	frames;			/* set when unpacked */
	bool		unpacked;
	QcEntry		entry;
	bool		is_entry;		/* and it is readable */
} Content;

static void
read_content(Dump *dump, const DumpLog *log, const QcRecord *record, Content *content, QcError *err)
{
	memset(content, 0, sizeof(*content));
	if (holds_messages(record))
	{
		content->status = unpack(dump, record, &content->frames, err);
		content->unpacked = content->status == QC_OK;
		if (content->unpacked)
			content->status = qc_record_check_frames(record, content->frames, err);
	}
	else if (record->kind == QC_KIND_ENTRY)
	{
		content->status = qc_entry_decode(record->payload, record->payload_len, &content->entry, err);
		content->is_entry = content->status == QC_OK;
		if (content->is_entry)
			content->status = check_entry(log, record, &content->entry, err);
	}
}

static void
count_content(DumpStats *stats, const Content *content)
{
	QcReader	effects = content->entry.effects;
	QcEffect	effect;
	QcError		err;

	if (content->unpacked)
		stats->raw_bytes += qc_reader_left(&content->frames);
	for (uint32_t i = 0; content->is_entry && i < content->entry.neffects; i++)
	{
		if (qc_effect_get(&effects, &effect, &err) == QC_OK)
			stats->effects[effect.kind]++;
	}
}

static void
print_record(Dump *dump, uint64_t position, const QcRecord *record, const Content *content)
{
	dump_row_begin(&dump->row, "record");
	print_header(&dump->row, position, record);
	if (content->unpacked && dump->options.payload != DUMP_PAYLOAD_NONE)
		print_messages(dump, record, content->frames);
	if (content->is_entry)
		print_entry(&dump->row, &content->entry);
	dump_row_end(&dump->row);
}

void
dump_record(Dump *dump, DumpLog *log, const DumpFile *file, uint64_t position,
			const QcRecord *record)
{
	const DumpOptions *options = &dump->options;
	Content		content;
	QcError		err;

	read_content(dump, log, record, &content, &err);
	if (dump->parts != NULL)
		dump_parts_add(dump->parts, record);
	if (passes(options, record, content.is_entry ? &content.entry : NULL))
	{
		dump_stats_record(&log->stats, record);
		count_content(&log->stats, &content);
		dump->shown++;
		if (!options->quiet && !options->stats && !options->verify)
			print_record(dump, position, record, &content);
	}
	if (content.status != QC_OK)
		dump_damage(dump, &log->stats, file->path, position, (uint64_t) record->len + 4, err.text);
}
