/*
 * actors.pml
 *		Everything that happens between two crashes.
 *
 * Included by commit.pml.  A step is enabled by the control variables of its
 * actor and by OPEN: qlog serves, and a crash still lies ahead.
 */

proctype tx(byte t)
{
end:
	do
	/* Start.  Transactions are alike, so they start in the order of their number. */
	:: atomic {
		OPEN && ROOM && pc[t] == IDLE && (t == 1 || pc[t - 1] != IDLE) ->
		choose_kind(t);
		d_step {
			if
			:: kind[t] & JOINT ->
				xid[t] = nextx;
				nextx++;
				pc[t] = XID
			:: else ->
				reserve(t);
				com = com | BIT(cnt);
				waiting = waiting | BIT(t);
				pc[t] = QWAIT
			fi
		}
	}

	/* Queue-only: acknowledged when the global prefix is durable. */
	:: d_step {
		OPEN && pc[t] == QWAIT && ACKABLE(t) ->
#if WITNESS == 6
		for (i : 1 .. NTX) {
			if
			:: i != t && sq[i] == sq[t] && HAS(gone, i) -> REACHED(6)
			:: else
			fi
		}
#endif
		printf("tx %d is acknowledged\n", t);
		acked = acked | BIT(t);
		waiting = waiting & ~BIT(t);
		pc[t] = DONE
	}

	/* Joint: reserve and fill; without a guard's flag be your own guard. */
	:: d_step {
		OPEN && ROOM && pc[t] == XID ->
		reserve(t);
		und = und | BIT(cnt);
		jnt = jnt | BIT(cnt);
		noins = noins | BIT(cnt);
#if VARIANT == 90
		if
		:: gflag == 0 && selfg == 0 -> selfg = selfg | BIT(t)
		:: else
		fi;
#elif VARIANT != 40
		if
		:: gflag == 0 -> selfg = selfg | BIT(t)
		:: else
		fi;
#endif
		if
		:: kind[t] & REF -> waiting = waiting | BIT(t)
		:: else
		fi;
		pc[t] = RES
	}

	/* Insert the record; a referenced entry is durable before that. */
	:: d_step {
		OPEN && pc[t] == RES && (!(kind[t] & REF) || DUR(sq[t])) ->
		ins++;
		printf("tx %d inserts its WAL record at %d\n", t, ins);
		elsn[t] = ins;
		waiting = waiting & ~BIT(t);
		noins = noins & ~BIT(sq[t]);
		pc[t] = INS
	}

	/* Own guard: barrier, WAL flush, confirm; then wait for our log. */
	:: d_step {
		OPEN && ROOM && pc[t] == INS && HAS(selfg, t) && INSERTED(sq[t]) ->
		flushed = ins;
		append(CTL, Q0);
		conf[cnt] = sq[t];
		if
		:: cfm < sq[t] -> cfm = sq[t]
		:: else
		fi;
		printf("tx %d, its own guard, flushes WAL to %d, confirms at seq %d\n", t, ins, cnt);
		csq[t] = cnt;
		waiting = waiting | BIT(t);
		pc[t] = SELF
	}
	:: d_step {
		OPEN && pc[t] == SELF && DUR(csq[t]) ->
		printf("tx %d clears its guard flag\n", t);
		csq[t] = 0;
		waiting = waiting & ~BIT(t);
		selfg = selfg & ~BIT(t);
		pgwait = pgwait & ~(BIT(t) << 2);
		pc[t] = INS
	}

	/* RecordTransactionCommit, then XACT_EVENT_COMMIT. */
	:: d_step {
		OPEN && pc[t] == INS && !HAS(selfg, t) ->
		ins++;
		printf("tx %d inserts its commit record at %d\n", t, ins);
		clsn[t] = ins;
		pc[t] = COM
	}
	:: d_step {
		OPEN && pc[t] == COM ->
		printf("tx %d has committed, acknowledged unless asynchronous\n", t);
		if
		:: kind[t] & ASYNC
		:: else ->
			if
			:: flushed < clsn[t] -> flushed = clsn[t]
			:: else
			fi;
			acked = acked | BIT(t)
		fi;
		und = und & ~BIT(sq[t]);
		com = com | BIT(sq[t]);
		pc[t] = DONE
	}

	/* Abort: the decision is applied and appended, not waited for. */
	:: d_step {
		ABORTS && OPEN && ROOM && (pc[t] == RES || pc[t] == INS) && !HAS(selfg, t) ->
		append(CTL, Q0);
		printf("tx %d aborts, decision at seq %d\n", t, cnt);
		dabt[cnt] = BIT(sq[t]);
		waiting = waiting & ~BIT(t);
		noins = noins & ~BIT(sq[t]);
		und = und & ~BIT(sq[t]);
		abt = abt | BIT(sq[t]);
		pc[t] = DONE
	}
	od
}

inline learn_durable_decisions()
{
	for (i : 1 .. MAXSEQ) {
		if
		:: i <= cnt && DUR(i) && ent[i] == CTL -> ldec = ldec | dcom[i]
		:: else
		fi
	}
	i = 0						/* Spin: a loop may not end a d_step */
}

/* Does anybody wait for the logs? */
#define WAITED		(waiting != 0 || gpc == 3 || kpc == 1)

/*
 * The flush leader.  It runs when somebody waits for it: what it would sync
 * without being asked may survive a crash anyway.  Nobody can see how far it got
 * between two logs unless commits are acknowledged per log, hence one step
 * unless PERLOG asks for more.
 */
proctype leader()
{
end:
	do
	:: d_step {
		OPEN && WAITED && !PERLOG && !DUR(cnt) ->
		printf("logs synced through %d\n", cnt);
		dl[0] = cnt;
		dl[1] = cnt;
		learn_durable_decisions()
	}
	:: d_step {
		OPEN && WAITED && PERLOG && dl[0] < cnt ->
		printf("q0 synced through %d\n", cnt);
		dl[0] = cnt;
		learn_durable_decisions()
	}
	:: d_step {
		OPEN && WAITED && PERLOG && dl[1] < cnt ->
		printf("q1 synced through %d\n", cnt);
		dl[1] = cnt;
		learn_durable_decisions()
	}
	od
}

/* Both guards.  They strictly alternate, so one process with a turn is enough. */
proctype guards()
{
end:
	do
	/* First flag after idleness. */
	:: d_step {
		GUARDS && GLAST && OPEN && gpc == 0 && gflag == 0 && ncyc < NCYCLE ->
		printf("guard %d sets its flag\n", gturn);
		gflag = BIT(gturn + 1)
	}

	/* The successor's flag, then N. */
	:: d_step {
		OPEN && gpc == 0 && gflag != 0 && ncyc < NCYCLE && (jnt & ~UPTO(cfm) || jnt & com & ~lgd) ->
		gflag = 3;
		glast = false;
		printf("guard %d reads N = %d, last cycle %d\n", gturn, cnt, glast);
		gN = cnt;
		ncyc++;
		gpc = 1
	}
	/* The last cycle before idleness has no successor. */
	:: d_step {
		GLAST && OPEN && gpc == 0 && gflag != 0 && ncyc < NCYCLE && jnt != 0 ->
		glast = true;
		printf("guard %d reads N = %d, last cycle %d\n", gturn, cnt, glast);
		gN = cnt;
		ncyc++;
		gpc = 1
	}

	/* Every record <= N inserted; barrier; XLogFlush. */
	:: d_step {
		OPEN && gpc == 1 && INSERTED(gN) ->
		printf("guard %d flushes WAL to %d\n", gturn, ins);
		flushed = ins;
		gpc = 2
	}

	/* One entry: the confirm, and committed decisions whose WAL is flushed. */
	:: d_step {
		OPEN && ROOM && gpc == 2 ->
		m = jnt & com & ~lgd;
		for (i : 1 .. NTX) {
			if
#if VARIANT != 60
			:: sq[i] != 0 && HAS(m, sq[i]) && clsn[i] > flushed && ent[sq[i]] == i ->
				m = m & ~BIT(sq[i])
#else
			:: false
#endif
			:: else
			fi
		}
		append(CTL, Q0);
		printf("guard %d confirms %d at seq %d, decides commits of set %d\n", gturn, gN, cnt, m);
		conf[cnt] = gN;
		dcom[cnt] = m;
		lgd = lgd | m;
		if
		:: cfm < gN -> cfm = gN
		:: else
		fi;
		gseq = cnt;
		gpc = 3
	}

	/* Durable: clear the flag, the last one only if nobody relied on it since. */
	:: d_step {
		OPEN && gpc == 3 && DUR(gseq) ->
		if
		:: !glast || (jnt & ~UPTO(gN)) == 0 ->
			printf("guard %d clears its flag\n", gturn);
			gflag = gflag & ~BIT(gturn + 1);
			pgwait = pgwait & ~BIT(gturn + 1);
			gturn = 1 - gturn
		:: else
		fi;
		glast = false;
		gN = 0;
		gseq = 0;
		gpc = 0
	}
	od
}

/* PostgreSQL's checkpointer, as CreateCheckPoint orders things. */
proctype pg_checkpoint()
{
end:
	do
	:: d_step {
		OPEN && pgpc == 0 && npg < NPGCK && ins > redo ->
		npg++;
		printf("PostgreSQL's checkpoint: redo pointer %d\n", ins);
		pgredo = ins;
		pgpc = 1
	}
	:: d_step {
		OPEN && pgpc == 1 ->
		pgwait = gflag | (selfg << 2);
		printf("PostgreSQL's checkpoint: waits for flags %d\n", pgwait);
#if WITNESS == 8
		for (i : 1 .. NTX) {
			if
			:: pgwait != 0 && elsn[i] != 0 && elsn[i] <= pgredo && !DUR(sq[i]) -> REACHED(8)
			:: else
			fi
		}
#endif
		pgpc = 2
	}
	:: d_step {
		OPEN && pgpc == 2 && pgwait == 0 ->
		printf("PostgreSQL's checkpoint: complete\n");
		redo = pgredo;
		flushed = ins;
		pgredo = 0;
		pgpc = 0
	}
	od
}

/* Transactions without queue work; they matter for the xids they take. */
proctype stranger()
{
end:
	do
	:: d_step {
		nc > 0 && nstr < NSTRANGER && nc < NCRASH ->
		nstr++;
		printf("a stranger commits with xid %d\n", nextx);
		clog = clog | BIT(nextx);
		nextx++;
		flushed = ins
	}
	od
}

inline forget_copy()
{
	kpc = 0;
	kC = 0;
	kcom = 0;
	kabt = 0;
	kund = 0;
	kcfm = 0;
	kdec = 0;
	klsn = 0
}

/* Our checkpointer. */
proctype checkpointer()
{
end:
	do
	/* A copy of the state at C, under one lock. */
	:: d_step {
		OPEN && kpc == 0 && nck < NQLCK && cnt > ckC ->
		nck++;
		printf("our checkpoint: copy at %d\n", cnt);
		kC = cnt;
		kcom = com;
		kabt = abt;
		kund = und;
#if VARIANT == 30
		kcom = kcom | und;
		kund = 0;
#elif VARIANT == 31
		kund = 0;
#endif
#if VARIANT != 33
		kcfm = cfm;
#endif
		kdec = com & jnt;
		for (i : 1 .. NTX) {
			if
			:: pc[i] == DONE && clsn[i] > klsn -> klsn = clsn[i]
			:: else
			fi
		}
		kpc = 1
	}
	/* WAL through its commits, log through C and their decisions; LMDB commit. */
	:: d_step {
		OPEN && kpc == 1 && DUR(kC) && (!CKDEC || (kdec & ~ldec) == 0) ->
		if
		:: CKFLUSH && flushed < klsn -> flushed = klsn
		:: else
		fi;
		printf("our checkpoint: mark %d, committed %d, aborted %d, undecided %d\n", kC, kcom, kabt, kund);
		ckC = kC;
		ckcom = kcom;
		ckabt = kabt;
		ckund = kund;
		ckcfm = kcfm;
		ckep = cur;
		forget_copy()
	}
	od
}
