/*
 * group_model.h
 *		What consumer groups mean, without any cleverness: every group stands somewhere in every partition at any time.
 *
 * Knows nothing of qlog's state.  A message is found by partition and position; partitions and groups are numbered from 0.
 */
#ifndef GROUP_MODEL_H
#define GROUP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_PARTITIONS	4	/* number 0 is the competing one */
#define MODEL_GROUPS		4
#define MODEL_MESSAGES		600

typedef enum ModelStatus
{
	MODEL_PENDING,
	MODEL_VISIBLE,
	MODEL_ABORTED
} ModelStatus;

typedef enum ModelFlight
{
	MODEL_NOT_IN_FLIGHT,		/* below fetch: done */
	MODEL_LEASED,
	MODEL_RETRY,
	MODEL_DYING					/* came back too often: waits to be moved away */
} ModelFlight;

typedef struct ModelMessage
{
	uint32_t	entry;
	ModelStatus status;
	int64_t		at;
} ModelMessage;

typedef struct ModelDelivery
{
	ModelFlight flight;
	uint32_t	attempt;
	uint64_t	lease;
} ModelDelivery;

typedef struct ModelGroup
{
	bool		alive;
	uint64_t	id;
	uint64_t	fetch[MODEL_PARTITIONS];
	ModelDelivery deliveries[MODEL_PARTITIONS][MODEL_MESSAGES];
} ModelGroup;

typedef struct ModelPartition
{
	uint64_t	start;
	uint64_t	next;
	ModelMessage messages[MODEL_MESSAGES];
} ModelPartition;

typedef struct Model
{
	uint32_t	limit;			/* a message that comes back with more attempts dies; 0 = none does */
	ModelPartition partitions[MODEL_PARTITIONS];
	ModelGroup	groups[MODEL_GROUPS];
} Model;

/* Where a group shall stand; the numbers are those of QC_START_*. */
extern uint64_t model_place(const Model *m, int partition, uint8_t start, int64_t start_at);

extern void model_push(Model *m, int partition, uint32_t count, uint32_t entry, int64_t at);
extern void model_settle(Model *m, uint32_t entry, bool committed);

/* A group begins, or begins anew, under this id. */
extern void model_begin(Model *m, int group, uint64_t id, uint8_t start, int64_t start_at);
extern void model_drop(Model *m, int group);
extern void model_seek(Model *m, int group, int partition, uint64_t position);

/* Purge, but for messages from the first one on that one of these entries has pushed.  partition -1: all */
extern void model_purge(Model *m, int partition, const uint32_t *kept, uint32_t nkept);

/* Is this a delivery that may be?	Then note it. */
extern bool model_deliver(Model *m, int group, int partition, uint64_t position, uint32_t attempt,
						  uint64_t lease);

/* It leaves what is in flight: acknowledged by its lease, or, with lease 0, moved away as dying. */
extern void model_done(Model *m, int group, int partition, uint64_t position, uint64_t lease);

/* All that a lease holds comes back; only the lowest position of an ordered partition has used up an attempt. */
extern void model_give_back(Model *m, int group, uint64_t lease);

extern uint64_t model_stable(const Model *m, int partition);
extern uint64_t model_visible(const Model *m, int partition, uint64_t from);

/* First position at or above p that is not aborted. */
extern uint64_t model_skip(const Model *m, int partition, uint64_t p);

/* Messages that the group has not finished. */
extern uint64_t model_lag(const Model *m, int group);

/* Is there anything that the group could be given now? */
extern bool model_has_work(const Model *m, int group);

#endif							/* GROUP_MODEL_H */
