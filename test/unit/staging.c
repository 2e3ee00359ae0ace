/*
 * staging.c
 *		Operations of a transaction, staged for a plan.
 */
#include "staging.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX 8192

static void *memory[MEMORY_MAX];
static uint32_t nmemory;
static bool done;
static uint32_t slots;
static uint32_t leases;
uint32_t	allocations_left = UINT32_MAX;
QcOp		staged[STAGED_MAX];
uint32_t	nstaged;
QcPlan		plan;
QcError		err;

void *
stage_alloc(void *context, size_t size)
{
	(void) context;
	if (allocations_left != UINT32_MAX && allocations_left-- == 0)
		return NULL;
	if (nmemory == MEMORY_MAX)
		abort();
	return memory[nmemory++] = malloc(size);
}

uint32_t
stage_allocated(void)
{
	return nmemory;
}

void
stage_free(uint32_t n)
{
	while (nmemory > n)
		free(memory[--nmemory]);
}

void
stage_undone(void)
{
	done = false;
}

void
stage_done(void)
{
	done = true;
}

void
stage_clear(void)
{
	done = false;
	stage_free(0);
	nstaged = 0;
	allocations_left = UINT32_MAX;
}

void
stage_frames(QcOp *op, uint64_t number, uint32_t count, size_t size)
{
	uint8_t    *data = stage_alloc(NULL, size + 32);
	uint8_t    *hashes = stage_alloc(NULL, (size_t) count * QC_HASH_SIZE);
	uint8_t    *bytes = stage_alloc(NULL, (size + 64) * count);
	QcWriter	w;

	qc_writer_init(&w, bytes, (size + 64) * count);
	memset(data, '.', size);
	for (uint32_t i = 0; i < count; i++)
	{
		QcMessage	message = {.data = data, .data_len = (uint32_t) size};
		int			len = snprintf((char *) data, 32, "%llu", (unsigned long long) number + i);

		data[len] = '.';
		message.id[0] = (uint8_t) (number + i);
		qc_frame_put(&w, &message);
		qc_frame_hash(&message, hashes + (size_t) i * QC_HASH_SIZE);
	}
	op->count = count;
	op->frames = bytes;
	op->frames_len = w.len;
	op->hashes = hashes;
}

static QcOp *
next_op(void)
{
	if (done)
		stage_clear();
	return &staged[nstaged++];
}

void
stage_push(uint64_t partition, uint64_t log, uint64_t number, uint32_t count, size_t size)
{
	QcOp	   *op = next_op();

	*op = (QcOp)
	{
		.kind = QC_OP_PUSH, .partition = partition, .log = log
	};
	stage_frames(op, number, count, size);
}

void
stage_dead(uint64_t lane, uint64_t log, uint64_t position)
{
	QcOp	   *op = next_op();

	*op = (QcOp)
	{
		.kind = QC_OP_DEAD, .partition = lane, .log = log,
		.dead =
		{
		.partition = 101, .position = position, .cause = QC_DEAD_REJECTED,
				.reason =
		{
				(const uint8_t *) "because", 7
		}
		}
	};
	stage_frames(op, position, 1, 40);
}

void
stage_effect(QcEffectKind kind, const void *fixed, const void *items, size_t item_size, uint32_t n)
{
	QcOp	   *op = next_op();
	size_t		size = qc_effect_size(kind, fixed, n);
	uint8_t    *bytes = stage_alloc(NULL, size);
	QcWriter	w;

	qc_writer_init(&w, bytes, size);
	qc_effect_put(&w, kind, fixed, n);
	for (uint32_t i = 0; i < n; i++)
		qc_effect_put_item(&w, kind, (const uint8_t *) items + i * item_size);
	CHECK_U64(w.len, size);
	*op = (QcOp)
	{
		.kind = QC_OP_EFFECT, .effect = bytes, .effect_len = size
	};
}

void
stage_bytes(const uint8_t *effect, size_t len)
{
	*next_op() = (QcOp)
	{
		.kind = QC_OP_EFFECT, .effect = effect, .effect_len = len
	};
}

void
stage_needs(uint32_t nslots, uint32_t nleases)
{
	slots = nslots;
	leases = nleases;
}

QcStatus
build(uint64_t xid, uint16_t flags, uint64_t segment)
{
	QcStatus	status = qc_plan_build(&plan, staged, nstaged, xid, flags, segment, stage_alloc, NULL,
									   &err);

	plan.needs.nslots = slots;
	plan.needs.nleases = leases;
	slots = leases = 0;
	return status;
}
