/*
 * sample.h
 *		One fixed example of everything that qlog writes, byte for byte the same everywhere.
 *
 * The examples stand as hex in doc/format.md (test_doc_format compares them), are decoded by the
 * unit tests, and are the seeds of the fuzzers.  Effects are filled by rule from QC_EFFECT_LIST, so
 * a new effect has its example without a line here.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "qc_effect.h"
#include "qc_entry.h"
#include "qc_frame.h"
#include "qc_logfile.h"
#include "qc_record.h"
#include "qc_walrec.h"

#define SAMPLE_MAX	4096		/* no example is larger */
#define SAMPLE_ITEMS 2			/* items of an effect that has any */

/* The golden vector of the format: file header and one message record, 146 bytes. */
#define SAMPLE_GOLDEN_SIZE 146
extern const uint8_t sample_golden[SAMPLE_GOLDEN_SIZE];

/* An example: its name in doc/format.md and what writes it into out; returns the size. */
typedef struct Sample
{
	const char *name;
	size_t		(*make) (uint8_t out[SAMPLE_MAX]);
} Sample;

/* Everything except effects; the last one has a NULL name. */
extern const Sample samples[];

/* The effect of this kind: its encoding, and whether a decoded effect has the example's fields. */
extern size_t sample_effect(QcEffectKind kind, uint8_t out[SAMPLE_MAX]);
extern bool sample_effect_matches(const QcEffect *effect);

/* All kinds of the list; the last one is QC_EFFECT_KIND_END. */
extern const QcEffectKind sample_kinds[];

/* A message that has every optional field, and the one of the golden vector. */
extern QcMessage sample_full_message(void);
extern QcMessage sample_golden_message(void);

/*
 * A record built, sealed and returned in out, whose cap bytes must suffice: a message record of
 * count copies of the message, or a solo record.
 */
extern size_t sample_record(uint8_t *out, size_t cap, bool solo, const QcMessage *message,
							uint32_t count, int level);

/* The single makers that tests name directly. */
extern size_t sample_entry(uint8_t out[SAMPLE_MAX]);
extern size_t sample_entry_record(uint8_t out[SAMPLE_MAX]);
extern size_t sample_stub_record(uint8_t out[SAMPLE_MAX]);
extern size_t sample_pad_record(uint8_t out[SAMPLE_MAX]);
extern size_t sample_solo_record(uint8_t out[SAMPLE_MAX]);
extern size_t sample_index(uint8_t out[SAMPLE_MAX]);
extern size_t sample_hashes(uint8_t out[SAMPLE_MAX]);
extern size_t sample_directory(uint8_t out[SAMPLE_MAX]);
extern size_t sample_wal_carried(uint8_t out[SAMPLE_MAX]);
extern size_t sample_wal_referenced(uint8_t out[SAMPLE_MAX]);
extern size_t sample_wal_barrier(uint8_t out[SAMPLE_MAX]);
extern size_t sample_wal_epoch(uint8_t out[SAMPLE_MAX]);
extern size_t sample_stash(uint8_t out[SAMPLE_MAX]);
extern size_t sample_snapshot(uint8_t out[SAMPLE_MAX]);

#endif							/* SAMPLE_H */
