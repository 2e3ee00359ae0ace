/*
 * qc_mutant.h
 *		Deliberate faults, to prove that the simulator would notice them.
 *
 * A build with -DQC_MUTANT=<number> has that one fault; every other build has none, and the conditions below are the
 * constant false.	Only test/sim makes such builds (the programs mutant_<number>).
 */
#ifndef QC_MUTANT_H
#define QC_MUTANT_H

#ifndef QC_MUTANT
#define QC_MUTANT 0
#endif

#define QC_MUTANT_ACK_BEFORE_SYNC	1	/* what is written counts as durable */
#define QC_MUTANT_MARK_PAST_OPEN	2	/* a checkpoint leaves out entries that are not settled */
#define QC_MUTANT_STOP_AT_DAMAGE	3	/* what stands behind a damaged record is not looked at */
#define QC_MUTANT_ACK_PER_LOG		4	/* one log is synced, and what was written to others counts
										 * too */
#define QC_MUTANT_REMOVE_EARLY		5	/* a log's files go before the checkpoint that no longer
										 * names it is stored */
#define QC_MUTANT_LAST				5

#define QC_MUTATED(fault) (QC_MUTANT == (fault))

#endif							/* QC_MUTANT_H */
