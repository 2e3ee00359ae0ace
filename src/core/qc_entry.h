/*
 * qc_entry.h
 *		Log entries: the unit of atomicity, payload of a kind 2 record.
 *
 *	 u16	version = 1
 *	 u16	flags (QC_ENTRY_*)
 *	 u32	number of logs
 *	 u64	durable_seq known when the entry was encoded
 *	 u64	full xid, 0 = queue-only
 *	 u64	x number of logs: log ids, ascending
 *	 u32	number of effects
 *			effects (qc_effect.h)
 *
 * The log with the lowest id holds the whole entry, the others a stub.
 */
#ifndef QC_ENTRY_H
#define QC_ENTRY_H

#include "qc_effect.h"

#define QC_ENTRY_VERSION	1
#define QC_ENTRY_CARRIED	1	/* its messages and effects also stand in a WAL record */
#define QC_ENTRY_REFERENCED 2	/* a WAL record holds its digest */
#define QC_ENTRY_FLAGS_ALL	3

typedef struct QcEntry
{
	uint16_t	flags;
	uint32_t	nlogs;
	uint64_t	durable_seq;
	uint64_t	xid;
	const uint8_t *logs;		/* nlogs x u64, encoded; see qc_entry_log */
	uint32_t	neffects;
	QcReader	effects;		/* stands before the first effect */
} QcEntry;

#define QC_ENTRY_HEAD_SIZE(nlogs) (24 + 8 * (size_t) (nlogs) + 4)

/* Write the head; the caller then puts exactly neffects effects.  logs ascending, at least one. */
extern void qc_entry_put_head(QcWriter *w, uint16_t flags, uint64_t durable_seq, uint64_t xid,
							  const uint64_t *logs, uint32_t nlogs, uint32_t neffects);

/* Patch durable_seq into an encoded payload. */
extern void qc_entry_patch_durable(uint8_t *payload, uint64_t durable_seq);

/*
 * Decode the head and check the whole payload: log ids ascending and not empty, every
 * effect of a known kind and version and well formed, nothing left over.
 * QC_VERSION for an unknown entry version, effect kind or effect version.
 */
extern QcStatus qc_entry_decode(const uint8_t *payload, size_t len, QcEntry *entry, QcError *err);

extern uint64_t qc_entry_log(const QcEntry *entry, uint32_t i);

#endif							/* QC_ENTRY_H */
