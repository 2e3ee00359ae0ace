/*
 * sim_store.h
 *		The checkpoint store in the memory of the simulated disk, behind the functions of qs_store.h.
 *
 * A batch is applied in one numbered step of the disk (SIM_OP_SWAP): a power failure in or around
 * it leaves the old rows or the new ones.  The rows belong to the disk: they survive qs_close,
 * sim_disk_kill and sim_disk_reboot, and sim_disk_copy copies them.
 */
#ifndef SIM_STORE_H
#define SIM_STORE_H

#include "../../src/store/qs_store.h"
#include "sim_disk.h"

/*
 * As qs_open.  name tells several stores of one disk apart (at most 63 bytes).  Making a store is
 * a step as well.  A power failure is QC_IO with SIM_CRASHED as sys_errno.
 */
extern QcStatus sim_store_open(SimDisk *disk, const char *name, uint64_t map_max, bool create,
							   bool read_only, QsStore **store, QcError *err);

#endif							/* SIM_STORE_H */
