/*
 * qc_mem.c
 *		Fixed-class allocator over the core's one memory block.
 */
#include "qc_mem.h"

#include <assert.h>
#include <string.h>

typedef struct QcClassInfo
{
	uint32_t	bytes;
	QcBudget	budget;
} QcClassInfo;

static const QcClassInfo class_info[QC_CLASS_COUNT] = {
#define QC_CLASS_ROW(name, bytes, budget) {bytes, QC_BUDGET_##budget},
	QC_CLASS_LIST(QC_CLASS_ROW)
#undef QC_CLASS_ROW
};

#define QC_CLASS_CHECK(name, bytes, budget) \
	_Static_assert((bytes) % QC_REF_UNIT == 0, "objects are whole units");
QC_CLASS_LIST(QC_CLASS_CHECK)
#undef QC_CLASS_CHECK

static uint64_t
round_page(uint64_t bytes)
{
	return (bytes + QC_PAGE_SIZE - 1) / QC_PAGE_SIZE * QC_PAGE_SIZE;
}

uint64_t
qc_mem_block_size(uint64_t fixed, const uint64_t budgets[QC_BUDGET_COUNT])
{
	uint64_t	bytes = round_page(fixed);

	for (int i = 0; i < QC_BUDGET_COUNT; i++)
		bytes += round_page(budgets[i]);
	return bytes;
}

void
qc_mem_init(QcMem *mem, uint64_t size, uint64_t fixed, const uint64_t budgets[QC_BUDGET_COUNT])
{
	uint64_t	state_bytes = budgets[QC_BUDGET_STATE];

	assert(size >= qc_mem_block_size(fixed, budgets));
	assert(size / QC_REF_UNIT <= UINT32_MAX);
	memset(mem, 0, sizeof(*mem));
	mem->size = size;
	mem->next_page = round_page(fixed);
	for (int i = 0; i < QC_BUDGET_COUNT; i++)
		mem->left[i] = round_page(budgets[i]);

	/*
	 * Recovery may need a page more in each class, because objects lie in other pages than they
	 * did.
	 */
	mem->spare = round_page(state_bytes / 16);
	if (mem->spare < QC_CLASS_COUNT * QC_PAGE_SIZE)
		mem->spare = QC_CLASS_COUNT * QC_PAGE_SIZE;
	if (mem->spare > state_bytes / 4)
		mem->spare = round_page(state_bytes / 4);
}

static void
push_free(QcMem *mem, QcPool *pool, QcRef ref)
{
	memcpy(qc_mem_at(mem, ref), &pool->free, sizeof(QcRef));
	pool->free = ref;
	pool->nfree++;
}

/* Give one more page to the class; false when its budget is full but for what is to be spared. */
static bool
add_page(QcMem *mem, QcClass class, uint64_t spare)
{
	const QcClassInfo *info = &class_info[class];
	uint64_t	at = mem->next_page;

	if (mem->left[info->budget] < QC_PAGE_SIZE + (info->budget == QC_BUDGET_STATE ? spare : 0))
		return false;
	assert(at + QC_PAGE_SIZE <= mem->size);
	mem->left[info->budget] -= QC_PAGE_SIZE;
	mem->next_page += QC_PAGE_SIZE;

	/* From the end, so that the list hands out ascending addresses. */
	for (uint32_t i = QC_PAGE_SIZE / info->bytes; i-- > 0;)
		push_free(mem, &mem->pools[class],
				  (QcRef) ((at + (uint64_t) i * info->bytes) / QC_REF_UNIT));
	return true;
}

bool
qc_mem_reserve(QcMem *mem, QcClass class, uint32_t n, QcUrgency urgency)
{
	QcPool	   *pool = &mem->pools[class];

	while (pool->nfree - pool->nreserved < n)
	{
		if (!add_page(mem, class, mem->spare / QC_URGENCY_ADDS * urgency))
			return false;
	}
	pool->nreserved += n;
	return true;
}

void
qc_mem_unreserve(QcMem *mem, QcClass class, uint32_t n)
{
	QcPool	   *pool = &mem->pools[class];

	assert(pool->nreserved >= n);
	pool->nreserved -= n;
}

static QcRef
pop_free(QcMem *mem, QcClass class)
{
	QcPool	   *pool = &mem->pools[class];
	QcRef		ref = pool->free;
	void	   *object = qc_mem_at(mem, ref);

	assert(ref != 0 && pool->nfree > 0);
	memcpy(&pool->free, object, sizeof(QcRef));
	pool->nfree--;
	pool->nused++;
	memset(object, 0, class_info[class].bytes);
	return ref;
}

QcRef
qc_mem_alloc(QcMem *mem, QcClass class)
{
	QcPool	   *pool = &mem->pools[class];

	if (pool->nfree == pool->nreserved && !add_page(mem, class, 0))
		return 0;
	return pop_free(mem, class);
}

QcRef
qc_mem_alloc_reserved(QcMem *mem, QcClass class)
{
	qc_mem_unreserve(mem, class, 1);
	return pop_free(mem, class);
}

void
qc_mem_free(QcMem *mem, QcClass class, QcRef ref)
{
	QcPool	   *pool = &mem->pools[class];

	if (ref == 0)
		return;
	assert(pool->nused > 0);
	pool->nused--;
	push_free(mem, pool, ref);
}

QcClass
qc_mem_name_class(size_t len)
{
	if (len <= 32)
		return QC_CLASS_NAME32;
	if (len <= 64)
		return QC_CLASS_NAME64;
	return len <= 128 ? QC_CLASS_NAME128 : QC_CLASS_NAME256;
}

void
qc_mem_usage(const QcMem *mem, QcBudget budget, uint64_t *used, uint64_t *limit)
{
	uint64_t	in_use = 0;
	uint64_t	given = 0;

	for (int i = 0; i < QC_CLASS_COUNT; i++)
	{
		if (class_info[i].budget != budget)
			continue;
		in_use += (uint64_t) mem->pools[i].nused * class_info[i].bytes;
		given += ((uint64_t) mem->pools[i].nused + mem->pools[i].nfree) * class_info[i].bytes;
	}
	*used = in_use;
	*limit = given + mem->left[budget];
}
