/*
 * qc_fill.c
 *		The bytes of a plan that has its places (qc_plan.h): sealed, copied into the ring, and put into a WAL record.
 *
 * Without any lock: the places belong to the plan until it says that they are filled.
 */
#include <assert.h>
#include <string.h>

#include "qc_plan.h"
#include "qc_record.h"
#include "qc_walrec.h"

/* Seal every record in the plan's own memory: the WAL body takes the bytes from there too. */
static void
seal(QcPlan *plan, uint64_t durable)
{
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		QcPlanAppend *append = &plan->appends[a];
		uint64_t	first = append->first;

		for (uint32_t r = 0; r < append->nrecords; r++)
		{
			QcPlanRecord *record = &plan->records[append->record + r];

			qc_record_seal_message(record->bytes, plan->seq, first, plan->created_at, durable);
			first += record->count;
		}
	}
	if (plan->solo)
		return;
	qc_entry_patch_durable(plan->payload, durable);
	qc_record_seal_entry(plan->payload - QC_RECORD_HEADER_SIZE, plan->payload_len, plan->seq,
						 plan->nlogs, plan->epoch, plan->created_at);
}

/* Copies parts one after the other, in the order in which qc_plan_reserve placed them. */
typedef struct Filler
{
	QcPlan	   *plan;
	QcState    *st;
	QcFiles    *files;			/* big entries: written by their owner */
	QcPart	   *part;
	uint8_t    *bytes;
	QcError    *err;
} Filler;

static QcStatus
fill_part(Filler *f, const uint8_t *bytes)
{
	QcPart	   *part = f->part++;
	QcIoSlice	slice = {bytes, part->size};
	QcHandle	handle;
	QcStatus	status;
	uint64_t	log;
	int			rc;

	if (!f->plan->big)
	{
		memcpy(f->bytes + part->offset, bytes, part->size);
		return QC_OK;
	}
	log = QC_AT(f->st, QcLog, part->log)->id;
	status = qc_files_get(f->files, log, part->file, true, &handle, f->err);
	if (status != QC_OK)
		return status;
	rc = f->files->io->write(f->files->io->context, handle, &slice, 1, part->position);
	part->written = 1;
	return rc == 0 ? QC_OK : qc_error_sys(f->err, rc, "", "could not write log file");
}

/* A record, and before it the header of the file that it begins. */
static QcStatus
fill_record(Filler *f, const uint8_t *bytes)
{
	if (f->part->position == 0)
	{
		QcFileHeader header = {f->part->file, f->plan->seq};
		uint8_t		encoded[QC_FILE_HEADER_SIZE];
		QcStatus	status;

		qc_file_header_encode(encoded, &header);
		status = fill_part(f, encoded);
		if (status != QC_OK)
			return status;
	}
	return fill_part(f, bytes);
}

QcStatus
qc_plan_fill(QcState *st, QcRing *ring, QcPlan *plan, QcFiles *files, QcError *err)
{
	Filler		f = {plan, st, files, qc_ring_parts(plan->entry), qc_ring_bytes(plan->entry), err};
	QcStatus	status = QC_OK;

	seal(plan, qc_ring_durable(ring));
	for (uint32_t r = 0; r < plan->nrecords && status == QC_OK; r++)
		status = fill_record(&f, plan->records[r].bytes);
	for (uint32_t l = 0; l < plan->nlogs && !plan->solo && status == QC_OK; l++)
	{
		uint8_t		stub[QC_STUB_SIZE];

		if (l > 0)
			qc_record_put_stub(stub, plan->payload, (uint32_t) plan->payload_len, plan->seq,
							   plan->nlogs, plan->epoch, plan->created_at);
		status = fill_record(&f, l == 0 ? plan->payload - QC_RECORD_HEADER_SIZE : stub);
	}
	assert(status != QC_OK || f.part == qc_ring_parts(plan->entry) + plan->entry->nparts);
	if (status == QC_OK)
		qc_ring_fill(plan->entry);
	return status;
}

uint64_t
qc_plan_wal_size(const QcPlan *plan)
{
	uint64_t	size = QC_WALREC_CARRIED_HEAD;

	if (plan->flags & QC_ENTRY_REFERENCED)
		return QC_WALREC_REFERENCED_SIZE;
	for (uint32_t r = 0; r < plan->nrecords; r++)
		size += QC_WALREC_PART_HEAD + (uint64_t) plan->records[r].size;
	return size + QC_WALREC_PART_HEAD + QC_RECORD_HEADER_SIZE + plan->payload_len;
}

static void
put_part(QcWriter *w, uint64_t log, const uint8_t *record, size_t size)
{
	qc_wal_part_put_head(w, log, (uint32_t) size);
	qc_put_bytes(w, record, size);
}

void
qc_plan_wal_put(const QcState *st, const QcPlan *plan, QcWriter *w)
{
	QcWalEntry	entry = {.flags = plan->flags, .directory = st->directory_id, .epoch = plan->epoch,
		.seq = plan->seq, .xid = plan->xid, .nparts = plan->nrecords + 1};

	assert(plan->payload != NULL);
	if (plan->flags & QC_ENTRY_REFERENCED)
	{
		entry.digest = qc_digest(plan->payload, plan->payload_len);
		entry.entry_len = (uint32_t) plan->payload_len;
	}
	qc_wal_entry_put(w, &entry);
	if (plan->flags & QC_ENTRY_REFERENCED)
		return;
	for (uint32_t a = 0; a < plan->nappends; a++)
	{
		const QcPlanAppend *append = &plan->appends[a];

		for (uint32_t r = 0; r < append->nrecords; r++)
		{
			const QcPlanRecord *record = &plan->records[append->record + r];

			put_part(w, append->log, record->bytes, record->size);
		}
	}
	put_part(w, plan->logs[0], plan->payload - QC_RECORD_HEADER_SIZE,
			 QC_RECORD_HEADER_SIZE + plan->payload_len);
}
