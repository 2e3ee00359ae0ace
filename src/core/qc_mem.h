/*
 * qc_mem.h
 *		The core's memory while serving: one block handed over at start, cut into 16-byte
 *		aligned objects of fixed classes.
 *
 * An object is named by a QcRef, its distance from the block's start in units of 16 bytes, so that
 * the block may be mapped anywhere (0 = none).  Pages of 64 KiB are given to a class when its free
 * list is empty and stay with it, therefore a stale ref always points at an object of its class.
 * Every class draws its pages from a budget; a full budget is an error of the caller before anything
 * is logged (PROTOCOL.md 1.2): what must not fail later is reserved first with qc_mem_reserve.
 *
 * Everything here is called with the state lock held.
 */
#ifndef QC_MEM_H
#define QC_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t QcRef;

#define QC_REF_UNIT		16
#define QC_PAGE_SIZE	65536

/* CLASS(NAME, bytes, budget) */
#define QC_CLASS_LIST(CLASS) \
	CLASS(QUEUE, 512, STATE) \
	CLASS(GROUP, 256, STATE) \
	CLASS(PARTITION, 176, STATE) \
	CLASS(CURSOR, 112, STATE) \
	CLASS(LEASE, 128, STATE) \
	CLASS(SLOT, 64, STATE) \
	CLASS(PENDING, 48, STATE) \
	CLASS(OPEN, 80, STATE) \
	CLASS(OPEN_ITEM, 64, STATE) \
	CLASS(LANE_ITEM, 64, STATE) \
	CLASS(LOG, 256, STATE) \
	CLASS(TIMER, 32, STATE) \
	CLASS(ALTER, 160, STATE) \
	CLASS(GRANT, 16, STATE) \
	CLASS(NAME32, 32, STATE) \
	CLASS(NAME64, 64, STATE) \
	CLASS(NAME128, 128, STATE) \
	CLASS(NAME256, 256, STATE) \
	CLASS(INDEX, 48, INDEX) \
	CLASS(DEDUP, 64, DEDUP)

typedef enum QcClass
{
#define QC_CLASS_ENUM(name, bytes, budget) QC_CLASS_##name,
	QC_CLASS_LIST(QC_CLASS_ENUM)
#undef QC_CLASS_ENUM
	QC_CLASS_COUNT
} QcClass;

typedef enum QcBudget
{
	QC_BUDGET_STATE,
	QC_BUDGET_INDEX,
	QC_BUDGET_DEDUP,
	QC_BUDGET_COUNT
} QcBudget;

typedef struct QcPool
{
	QcRef		free;			/* list through the first 4 bytes of each free object */
	uint32_t	nfree;
	uint32_t	nreserved;		/* of the free ones, promised */
	uint32_t	nused;
} QcPool;

/* Stands at the start of the block. */
typedef struct QcMem
{
	uint64_t	size;			/* of the whole block */
	uint64_t	next_page;		/* byte offset of the first page not given out */
	uint64_t	left[QC_BUDGET_COUNT];	/* bytes that may still be given to classes */
	uint64_t	spare;			/* of the state budget: not for promises, so that recovery finds
								 * room for what was live */
	QcPool		pools[QC_CLASS_COUNT];
} QcMem;

/* Bytes of block needed for these budgets when `fixed` bytes stand before the first page. */
extern uint64_t qc_mem_block_size(uint64_t fixed, const uint64_t budgets[QC_BUDGET_COUNT]);

/* Lay out the pools; pages begin after `fixed` bytes. */
extern void qc_mem_init(QcMem *mem, uint64_t size, uint64_t fixed,
						const uint64_t budgets[QC_BUDGET_COUNT]);

/*
 * Who asks for a promise decides how much of the state budget must stay free: what adds to the state leaves most, what
 * takes away from it least, so that a full state can be emptied and recovered.
 */
typedef enum QcUrgency
{
	QC_URGENCY_EMPTIES = 1,		/* acknowledgements, drops, decisions */
	QC_URGENCY_DELIVERS = 2,
	QC_URGENCY_ADDS = 4
} QcUrgency;

/* Promise n objects; false = the budget is full and nothing is promised. */
extern bool qc_mem_reserve(QcMem *mem, QcClass class, uint32_t n, QcUrgency urgency);
extern void qc_mem_unreserve(QcMem *mem, QcClass class, uint32_t n);

/* A zeroed object, 0 when the budget is full (never takes a promised one). */
extern QcRef qc_mem_alloc(QcMem *mem, QcClass class);

/* A zeroed object out of those promised: cannot fail. */
extern QcRef qc_mem_alloc_reserved(QcMem *mem, QcClass class);
extern void qc_mem_free(QcMem *mem, QcClass class, QcRef ref);

/* Class for a name of len bytes. */
extern QcClass qc_mem_name_class(size_t len);

/* Bytes of a budget in use by live objects and its whole size. */
extern void qc_mem_usage(const QcMem *mem, QcBudget budget, uint64_t *used, uint64_t *limit);

static inline void *
qc_mem_at(const QcMem *mem, QcRef ref)
{
	return ref == 0 ? NULL : (void *) ((uintptr_t) mem + (uintptr_t) ref * QC_REF_UNIT);
}

static inline QcRef
qc_mem_ref(const QcMem *mem, const void *object)
{
	return object == NULL ? 0 :
		(QcRef) (((uintptr_t) object - (uintptr_t) mem) / QC_REF_UNIT);
}

#endif							/* QC_MEM_H */
