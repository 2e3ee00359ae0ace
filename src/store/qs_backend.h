/*
 * qs_backend.h
 *		Inside the store: the functions behind an open QsStore.
 *
 * Two implementations: qs_lmdb.c, and test/sim/sim_store.c in the memory of the simulated disk.
 * Both embed QsStore as their first member.
 */
#ifndef QS_BACKEND_H
#define QS_BACKEND_H

#include "qs_store.h"

typedef struct QsBackend
{
	void		(*close) (QsStore *store);
	QcStatus	(*apply) (QsStore *store, const void *batch, size_t len, QcError *err);
	QcStatus	(*read) (QsStore *store, QsVisitor visit, void *context, QcError *err);
	void		(*size) (QsStore *store, uint64_t *used, uint64_t *limit);
} QsBackend;

struct QsStore
{
	const QsBackend *backend;
};

#endif							/* QS_BACKEND_H */
