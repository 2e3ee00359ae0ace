/*
 * qc_mutant.h
 *		Deliberate faults, to prove that the simulator would notice them.
 *
 * test/sim/sim_mutants compiles the files that ask QC_MUTATED a second time, with QC_MUTANTS defined, and chooses one of
 * the faults at run time.	Everywhere else the conditions are the constant false.
 */
#ifndef QC_MUTANT_H
#define QC_MUTANT_H

typedef enum QcMutant
{
	QC_MUTANT_NONE,
	QC_MUTANT_APPLY_BEFORE_DURABLE, /* what is written counts as durable */
	QC_MUTANT_MARK_PAST_UNDECIDED,	/* a checkpoint leaves out entries that are not settled */
	QC_MUTANT_STOP_AT_DAMAGE,	/* what stands behind a damaged record is not looked at */
	QC_MUTANT_ACK_PER_LOG,		/* one log is synced, and what was written to others counts too */
	QC_MUTANT_ORDER_NOT_FLUSHED,	/* a seek is told before its decision is durable */
	QC_MUTANT_ANSWER_AFTER_SEEK,	/* what was delivered before a seek can be acknowledged after
									 * it */
	QC_MUTANT_PURGE_UNDECIDED,	/* a purge takes what is not decided yet */
	QC_MUTANT_GROUP_FOLLOWS_LATE,	/* a push does not place the groups that begin with it */
	QC_MUTANT_REMOVE_EARLY,		/* a log goes with its last queue, whatever a start may need */
	QC_MUTANT_RECLAIM_EARLY,	/* files go before the checkpoint that knows that they are not
								 * needed is stored */
	QC_MUTANT_RETAIN_HELD,		/* retention does not look at what is in flight */
	QC_MUTANT_RETAIN_LOST,		/* a checkpoint forgets from where on messages are kept */
	QC_MUTANT_COPY_UNSYNCED,	/* a rewritten file takes the old one's place before it is on disk */
	QC_MUTANT_SNAPSHOT_UNHELD,	/* a snapshot does not keep what a start with it needs */
	QC_MUTANT_NOTHING_GONE,		/* reclaim takes every record for one that is needed */
	QC_MUTANT_LEAVE_DEAD		/* ... and leaves what it has renamed where it is */
} QcMutant;

#ifdef QC_MUTANTS
extern QcMutant qc_mutant;		/* the fault of this program */
#define QC_MUTATED(fault) (qc_mutant == (fault))
#else
#define QC_MUTATED(fault) false
#endif

#endif							/* QC_MUTANT_H */
