/*
 * crash.pml
 *		What a crash takes and what it leaves, and when recovery runs.
 *
 * Included by commit.pml after recovery.pml.  PostgreSQL's redo is part of the
 * crash: it depends on nothing but the WAL and may be repeated at will.
 */

/* The WAL ends at e: what redo finds, stashes and hands to the commit log. */
inline lose_wal()
{
	nextx = ckx;
	for (i : 1 .. NTX) {
		if
		:: elsn[i] != 0 && elsn[i] <= e ->
			if
			:: elsn[i] > redo -> stash = stash | BIT(i)
			:: else
			fi;
			if
			:: nextx <= xid[i] -> nextx = xid[i] + 1
			:: else
			fi
		:: else
		fi;
		if
		:: clsn[i] != 0 && clsn[i] <= e ->
			rows = rows | BIT(i);
			clog = clog | BIT(xid[i]);
			if
			:: nextx <= xid[i] -> nextx = xid[i] + 1
			:: else
			fi
		:: else
		fi;
		elsn[i] = 0;
		clsn[i] = 0;
		csq[i] = 0;
		if
		:: pc[i] != IDLE && pc[i] != DONE -> pc[i] = DEAD
		:: else
		fi
	}
	for (i : 1 .. MAXXID) {
		if
		:: HAS(clog, i) && nextx <= i -> nextx = i + 1
		:: else
		fi
	}
	/* End of redo, end-of-recovery checkpoint, connections are let in. */
	N0 = nextx;
	ckx = nextx;
	ins = 0;
	flushed = 0;
	redo = 0
}

inline clear_entry(n)
{
	ent[n] = 0;
	eep[n] = 0;
	dcom[n] = 0;
	dabt[n] = 0;
	conf[n] = 0
}

/*
 * What no later step can look at is set to zero, so that states that differ
 * in nothing else count once: transactions without a trace, and what recovery
 * has settled for good.
 */
inline forget_traceless()
{
	u = stash | gone | acked | rows | seen;
	for (i : 1 .. MAXSEQ) {
		if
		:: ent[i] != 0 && ent[i] < CTL -> u = u | BIT(ent[i])
		:: else
		fi
	}
	for (i : 1 .. NTX) {
		if
		:: pc[i] == DEAD && !HAS(u, i) ->
			kind[i] = 0;
			sq[i] = 0;
			ep[i] = 0;
			xid[i] = 0
		:: else
		fi
	}
}

inline forget_settled()
{
	m = 0;
	for (i : 1 .. NTX) {
		if
		:: HAS(gone, i) -> m = m | BIT(xid[i])
		:: else ->
			ep[i] = 0;
			xid[i] = 0
		fi
	}
	clog = clog & m;
	forget_traceless()
}

/* Is the part of this seq in q0 or q1 there, but not synced? */
#define UNSYNCED(n, log)	(HAS(pres[n], (log) + 1) && (n) > dl[log])

/* How many parts are not synced? */
inline count_unsynced()
{
	m = 0;
	for (i : 1 .. MAXSEQ) {
		m = m + UNSYNCED(i, 0) + UNSYNCED(i, 1)
	};
	total = m
}

/*
 * Which of the unsynced parts, numbered from the lowest seq, does crash s of
 * LOSSES lose?  Any subset with SUBSETS.  Without it, one part and either all
 * or none of the later ones: recovery looks at nothing above the first gap but
 * whether there is anything to cut, so these stand for all subsets.
 */
#if SUBSETS
#define LOSSES		UPTO(total)
#define LOST(n)		HAS(s, n)
#else
#define LOSSES		(2 * total)
#define LOST(n)		((n) == s || (s > total && (n) >= s - total))
#endif

inline lose_parts()
{
	m = 0;
	for (i : 1 .. MAXSEQ) {
		if
		:: UNSYNCED(i, 0) ->
			m++;
			if
			:: LOST(m) ->
				printf("lost: seq %d in q0\n", i);
				pres[i] = pres[i] & ~Q0
			:: else
			fi
		:: else
		fi;
		if
		:: UNSYNCED(i, 1) ->
			m++;
			if
			:: LOST(m) ->
				printf("lost: seq %d in q1\n", i);
				pres[i] = pres[i] & ~Q1
			:: else
			fi
		:: else
		fi;
		if
		:: pres[i] == 0 -> clear_entry(i)
		:: else
		fi
	}
}

inline crash_memory()
{
	cnt = 0;
	com = 0;
	abt = 0;
	und = 0;
	jnt = 0;
	noins = 0;
	lgd = 0;
	ldec = 0;
	cfm = 0;
	selfg = 0;
	waiting = 0;
	gflag = 0;
	gpc = 0;
	gturn = 0;
	gN = 0;
	gseq = 0;
	glast = false;
	pgpc = 0;
	pgredo = 0;
	pgwait = 0;
	cur = 0;
	rE = 0;
	rR = 0;
	rcut = false;
	rverdict = 0;
	forget_copy()
}

/* Nothing looks at what the last recovery leaves: all its outcomes are one. */
inline forget_everything()
{
	for (i : 1 .. MAXSEQ) {
		clear_entry(i);
		pres[i] = 0
	}
	for (i : 1 .. NTX) {
		pc[i] = DEAD;
		kind[i] = 0;
		sq[i] = 0;
		ep[i] = 0;
		xid[i] = 0
	}
	for (i : 1 .. MAXEP) {
		efirst[i] = 0
	}
	crash_memory();
	dl[0] = 0;
	dl[1] = 0;
	ncyc = 0;
	npg = 0;
	nck = 0;
	nstr = 0;
	nextx = 0;
	ckx = 0;
	clog = 0;
	gone = 0;
	ecnt = 0;
	ckC = 0;
	ckcom = 0;
	ckabt = 0;
	ckund = 0;
	ckcfm = 0;
	ckep = 0;
	acked = 0;
	rows = 0;
	seen = 0
}

proctype crash_and_recovery()
{
end:
	do
	:: d_step {
		rpc != 0 ->
		recover()
	}
	:: atomic {
		nc < NCRASH && (rpc != 0 || cnt > 0) ->
		nc++;
#if WITNESS == 5
		again = again || (rpc > 4 && rR >= rE);
#endif
		/* A removed stash may be back, an epoch record may be below redo. */
		if
		:: gone != 0 -> stash = stash | gone; gone = 0
		:: true
		fi;
		if
		:: wk != 0 -> wk = 0
		:: true
		fi;
		/* What was flushed, and any prefix of the rest of the WAL, survives. */
		d_step {
			count_unsynced();
			e = flushed
		}
		do
		:: e < ins -> e++
		:: break
		od;
		/* Some of the unsynced parts are lost, the others stay unsynced. */
		do
		:: s < LOSSES -> s++
		:: break
		od;
		rpc = 1;
		d_step {
			printf("CRASH %d: WAL ends at %d\n", nc, e);
			lose_wal();
			lose_parts();
			forget_traceless();
			crash_memory();
			total = 0;
			s = 0;
			e = 0;
			if
			:: LAST ->
				recover();
				forget_everything()
			:: else
			fi
		}
	}
	od
}
