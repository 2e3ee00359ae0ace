/*
 * commit.pml
 *		A model of qlog's commit protocol, checkpoints and crash recovery.
 *
 * Every step of every actor is one d_step, so the state space is that of a
 * transition system: transactions, the flush leader, the two guards, our
 * checkpointer, PostgreSQL's checkpointer, strangers that only take xids, and
 * a crash that may strike between any two steps.  All control state lives in
 * globals (pc[], gpc, ...) because a crash has to reset all of it at once.
 *
 * What is modelled, what is not, and why each step may be that large is told
 * in doc/model.md.  Compile-time choices: CONFIG (bounds and kinds of
 * transaction), VARIANT (a known-bad change, 0 = none), WITNESS (a situation
 * that must be reachable, 0 = none).
 */

#include "config.h"

/* Sets of seqs, transactions and xids are bit masks; all of them count from 1. */
#define BIT(n)		(1 << ((n) - 1))
#define UPTO(n)		((1 << (n)) - 1)
#define HAS(set, n)	(((set) >> ((n) - 1)) & 1)

/* What ent[] holds besides the number of a transaction. */
#define CTL			10			/* confirm, decisions, start of an epoch */
#define VOID		11			/* fills a seq that recovery found lost */

/* Kinds of transaction: the logs that it has a part in, and how it commits. */
#define Q0			1
#define Q1			2
#define LOGS(k)		((k) & 3)
#define JOINT		4			/* has an xid: the commit record decides */
#define REF			8			/* too large to be carried in the WAL */
#define ASYNC		16			/* synchronous_commit = off */

/* pc[] */
#define IDLE		0
#define QWAIT		1			/* queue-only: waits for the flush */
#define XID			2			/* joint: has an xid, nothing else */
#define RES			3			/* entry reserved and filled, undecided */
#define INS			4			/* WAL record inserted */
#define SELF		5			/* own guard: waits for its confirm */
#define COM			6			/* commit record inserted */
#define DONE		7
#define DEAD		8			/* was running when the server crashed */

/* ---- transactions; sq, ep and xid are what their records say, for ever ---- */
byte	pc[NTX + 1];
byte	kind[NTX + 1];
byte	sq[NTX + 1];
byte	ep[NTX + 1];
byte	xid[NTX + 1];
byte	elsn[NTX + 1];				/* WAL position of the entry record, this life */
byte	clsn[NTX + 1];				/* ... of the commit record, this life */
byte	csq[NTX + 1];				/* seq of its own confirm (SELF) */
byte	waiting;					/* transactions that wait for a flush */
byte	selfg;						/* transactions whose own guard flag is set */

/* ---- the logs q0 and q1 ---- */
byte	ent[MAXSEQ + 1];
byte	eep[MAXSEQ + 1];			/* epoch in the entry record */
byte	pres[MAXSEQ + 1];			/* logs in which its part is present */
byte	dcom[MAXSEQ + 1];			/* CTL: seqs decided committed */
byte	dabt[MAXSEQ + 1];			/* CTL: seqs decided aborted */
byte	conf[MAXSEQ + 1];			/* CTL: confirmed seq */
byte	dl[2];						/* each log is synced through this seq */

/* ---- shared memory, gone with a crash ---- */
byte	cnt;						/* seq counter */
byte	cur = 1;					/* epoch */
byte	com, abt, und;				/* seqs decided committed, aborted, undecided */
byte	jnt;						/* seqs of joint entries of this life */
byte	noins;						/* of these: WAL record not yet inserted */
byte	lgd;						/* committed decisions appended to the log */
byte	ldec;						/* ... and durable there */
byte	cfm;						/* confirmed seq */

/* ---- guards ---- */
byte	gflag = GUARDS;				/* bit 0, 1: flag of guard 0, 1 stands */
byte	gpc, gturn, gN, gseq, ncyc;
bool	glast;						/* this cycle leaves no successor */

/* ---- PostgreSQL ---- */
byte	ins, flushed, redo;			/* WAL positions of this life, 0 = its start */
byte	nextx = 1;					/* next xid */
byte	ckx = 1;					/* nextXid when this life began */
byte	clog;						/* xids with a commit record in durable WAL */
byte	pgpc, pgredo, pgwait, npg;
byte	nstr;						/* strangers so far */

/* ---- files other than the logs ---- */
byte	stash;						/* transactions whose WAL record was redone */
byte	gone;						/* removed stash: an unsynced unlink may be undone */
byte	efirst[MAXEP + 1];			/* epoch records: first seq of each epoch */
byte	ecnt = 1;
byte	wk;							/* epoch known from the WAL alone */
byte	ckC, ckcom, ckabt, ckund, ckcfm;	/* our checkpoint */
byte	ckep = 1;

/* ---- our checkpointer: the copy it is about to commit ---- */
byte	kpc, kC, kcom, kabt, kund, kcfm, nck;
byte	klsn;						/* largest commit position in the copy */
byte	kdec;						/* joint seqs decided committed in the copy */

/* ---- recovery ---- */
byte	nc;							/* crashes so far */
byte	rpc;						/* 0 = serving */
byte	rE, rR, N0;
bool	rcut;
byte	rverdict;					/* seqs decided by this recovery */

/* ---- a crash picks what is lost; zero otherwise ---- */
byte	e, s, total;

/* ---- history, for the properties only ---- */
byte	acked;						/* transactions acknowledged to their client */
byte	rows;						/* joint: commit record survived the last crash */
byte	seen;						/* visible when some recovery began to serve */

#if WITNESS == 5
bool	again;						/* a crash struck a recovery that had restored */
#else
#define again		false
#endif

/* Temporaries of one step; never part of the state. */
hidden byte i, j, u, v, m;
hidden byte b, go;

/* Work goes on while another crash, and so another check, lies ahead. */
#define LAST		(nc == NCRASH)
#define OPEN		(rpc == 0 && nc < NCRASH)
#define DUR(n)		(dl[0] >= (n) && dl[1] >= (n))
/* Room for one entry now and one in each recovery that may still come. */
#define ROOM		(cnt + (NCRASH - nc) < MAXSEQ)

#if VARIANT == 41					/* confirm past a record not yet inserted */
#define INSERTED(n)	true
#else
#define INSERTED(n)	((noins & UPTO(n)) == 0)
#endif

/* A situation that a run with this WITNESS has to find. */
#define REACHED(n)	assert(WITNESS != (n))

#if VARIANT == 20					/* acknowledge per log */
#define ACKABLE(t)	((!(kind[t] & Q0) || dl[0] >= sq[t]) && \
					 (!(kind[t] & Q1) || dl[1] >= sq[t]))
#else
#define ACKABLE(t)	DUR(sq[t])
#endif

/* Reserve and fill the next seq.  A log without a part needs no sync for it. */
inline append(who, logs)
{
	cnt++;
	ent[cnt] = who;
	eep[cnt] = cur;
	pres[cnt] = logs;
	if
	:: !((logs) & Q0) && dl[0] == cnt - 1 -> dl[0] = cnt
	:: else
	fi;
	if
	:: !((logs) & Q1) && dl[1] == cnt - 1 -> dl[1] = cnt
	:: else
	fi
}

/* Reserve for transaction t; (epoch, seq) must be new to WAL and stash. */
inline reserve(t)
{
	append(t, LOGS(kind[t]));
	printf("tx %d (kind %d, xid %d) reserves seq %d in epoch %d\n", t, kind[t], xid[t], cnt, cur);
	sq[t] = cnt;
	ep[t] = cur;
#if VARIANT != 50 && VARIANT != 51
	for (i : 1 .. NTX) {
		assert(i == t || sq[i] != cnt || ep[i] != cur || !HAS(stash | gone, i))
	}
#endif
}

inline choose_kind(t)
{
	if
	KINDS
	fi
}

#include "actors.pml"
#include "recovery.pml"
#include "crash.pml"

init {
	atomic {
		for (i : 1 .. NTX) {
			run tx(i)
		}
		run leader();
		run guards();
		run pg_checkpoint();
		run checkpointer();
		run stranger();
		run crash_and_recovery()
	}
}
