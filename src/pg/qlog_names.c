/*
 * qlog_names.c
 *		What a backend remembers of names: a hash table, emptied as a whole.
 */
#include "qlog_names.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "qlog_shmem.h"

#include "../core/qc_state.h"

#define CACHE_MAX	16384		/* names that a backend remembers */

typedef struct CacheKey
{
	uint64		scope;
	uint32		len;
	char		name[QLOG_NAME_MAX];
} CacheKey;

typedef struct CacheEntry
{
	CacheKey	key;
	QlogNamed	named;
} CacheEntry;

static HTAB *cache;
static MemoryContext cache_context;
static uint32 cache_generation;
static bool cache_has_acl;		/* somebody may hold a pointer into the memory */

static uint32
cache_hash(const void *key, Size size)
{
	const CacheKey *k = key;

	(void) size;
	return (uint32) qc_hash_name(k->scope, k->name, k->len);
}

static int
cache_match(const void *a, const void *b, Size size)
{
	const CacheKey *x = a;
	const CacheKey *y = b;

	(void) size;
	return x->scope != y->scope || x->len != y->len || memcmp(x->name, y->name, x->len) != 0;
}

static void *
cache_copy(void *to, const void *from, Size size)
{
	const CacheKey *key = from;

	(void) size;
	return memcpy(to, from, offsetof(CacheKey, name) + key->len);
}

/*
 * The memory of names, emptied when a queue has changed or it is full.	Somebody may still look at an ACL of the old one:
 * it goes at the end of the transaction.
 */
static HTAB *
names(void)
{
	uint32		generation = pg_atomic_read_u32(&qlog_shared->catalog_generation);
	HASHCTL		ctl = {.keysize = sizeof(CacheKey), .entrysize = sizeof(CacheEntry),
		.hash = cache_hash, .match = cache_match, .keycopy = cache_copy};

	if (cache != NULL &&
		(generation != cache_generation || hash_get_num_entries(cache) >= CACHE_MAX))
	{
		cache = NULL;
		if (cache_has_acl)
			MemoryContextSetParent(cache_context, TopTransactionContext);
		else
			MemoryContextDelete(cache_context);
		cache_context = NULL;
		cache_has_acl = false;
	}
	if (cache == NULL)
	{
		if (cache_context == NULL)
			cache_context = AllocSetContextCreate(TopMemoryContext, "qlog names",
												  ALLOCSET_DEFAULT_SIZES);
		ctl.hcxt = cache_context;
		cache = hash_create("qlog names", 64, &ctl,
							HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_KEYCOPY | HASH_CONTEXT);
		cache_generation = generation;
	}
	return cache;
}

MemoryContext
qlog_names_acl_context(void)
{
	(void) names();
	cache_has_acl = true;
	return cache_context;
}

static QlogNamed *
cached(uint64 scope, QlogName name, HASHACTION action)
{
	CacheKey	key;
	CacheEntry *entry;

	key.scope = scope;
	key.len = name.len;
	memcpy(key.name, name.text, name.len);
	entry = hash_search(names(), &key, action, NULL);
	return entry == NULL ? NULL : &entry->named;
}

QlogNamed *
qlog_names_find(uint64 scope, QlogName name)
{
	return cached(scope, name, HASH_FIND);
}

QlogNamed *
qlog_names_enter(uint64 scope, QlogName name)
{
	return cached(scope, name, HASH_ENTER);
}
