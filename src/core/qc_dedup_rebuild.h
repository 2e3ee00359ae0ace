/*
 * qc_dedup_rebuild.h
 *		Dedup ids after a start: read again from the logs.
 *
 * Called once at the end of recovery, before anything is served.
 */
#ifndef QC_DEDUP_REBUILD_H
#define QC_DEDUP_REBUILD_H

#include "qc_read.h"

/*
 * Fill the empty table with the dedup ids that were pushed within the window of their queue before now (microseconds since
 * the Unix epoch).  Queues with a record that cannot be read go out of service; *damaged counts them.  QC_FULL:
 * qlog.dedup_memory is too small.
 */
extern QcStatus qc_dedup_rebuild(QcState *st, QcReadCache *cache, int64_t now, uint32_t *damaged,
								 QcError *err);

#endif							/* QC_DEDUP_REBUILD_H */
