/*
 * recovery.pml
 *		Recovery in seven steps, and the properties, checked when it serves.
 *
 * Included by commit.pml, called from crash.pml.  PostgreSQL's own recovery has
 * filled the stash and the commit log, and has let connections in.
 */

/* An epoch that began at or below this seq, later than the record, voids it. */
#define STALE(epoch, seq)	\
	((epoch < ke && efirst[ke] <= seq) || \
	 (epoch + 1 < ke && efirst[ke - 1] <= seq) || \
	 (epoch + 2 < ke && efirst[ke - 2] <= seq))

hidden byte ke;						/* newest epoch that recovery knows of */

#define NEED(n)		(ent[n] >= CTL -> Q0 : LOGS(kind[ent[n]]))

/* First missing or incomplete seq above the mark. */
inline scan()
{
	ke = ckep;
	if
	:: wk > ke -> ke = wk
	:: else
	fi;
	rE = ckC + 1;
	do
	:: rE <= MAXSEQ && ent[rE] != 0 && pres[rE] == NEED(rE) && !STALE(eep[rE], rE) ->
		if
		:: eep[rE] > ke -> ke = eep[rE]
		:: else
		fi;
		rE++
	:: else -> break
	od;
	for (i : 1 .. MAXSEQ) {
		assert(i > ckC || (ent[i] != 0 && pres[i] == NEED(i)))
	}
	cur = ke;
	printf("recovery: E = %d, epoch %d, stash %d, clog %d, N0 = %d\n", rE, ke, stash, clog, N0)
}

/* Cut one log at E, durably; the other one is a step of its own. */
inline cut(log)
{
	for (i : 1 .. MAXSEQ) {
		if
		:: i >= rE && (pres[i] & BIT(log + 1)) ->
			printf("recovery: cuts seq %d from q%d\n", i, log);
			pres[i] = pres[i] & ~BIT(log + 1);
			rcut = true;
			if
			:: pres[i] == 0 -> clear_entry(i)
			:: else
			fi
		:: else
		fi
	}
	if
	:: dl[log] >= rE -> dl[log] = rE - 1
	:: else
	fi
}

/* Is there a valid stash record for this seq of this epoch?  b, and u which. */
inline find_record(epoch, seq)
{
	b = false;
	u = 0;
	for (j : 1 .. NTX) {
		if
		:: !b && HAS(stash, j) && sq[j] == seq && ep[j] == epoch && !STALE(epoch, seq) ->
			b = true;
			u = j
		:: else
		fi
	}
}

/* Does the commit log, exact below N0, call this xid committed? */
#define DIDCOMMIT(x)	((x) < N0 && HAS(clog, x))

/* Checkpoint, decisions in the log, then stash or confirm and commit log. */
inline decide()
{
	ke = cur;
	com = ckcom;
	abt = ckabt;
	cfm = ckcfm;
	und = ckund;
	for (i : 1 .. MAXSEQ) {
		if
		:: i <= ckC || i >= rE
		:: else ->
			if
			:: ent[i] == CTL ->
#if WITNESS == 7
				for (j : 1 .. NTX) {
					if
					:: (kind[j] & ASYNC) && sq[j] != 0 && HAS(dcom[i] & ~com, sq[j]) ->
						REACHED(7)
					:: else
					fi
				}
#endif
				com = (com | dcom[i]) & ~dabt[i];
				abt = (abt | dabt[i]) & ~dcom[i];
				und = und & ~(dcom[i] | dabt[i]);
				if
				:: cfm < conf[i] -> cfm = conf[i]
				:: else
				fi
			:: ent[i] == VOID -> abt = abt | BIT(i)
			:: ent[i] < CTL && (kind[ent[i]] & JOINT) -> und = und | BIT(i)
			:: else -> com = com | BIT(i)
			fi
		fi
	}
	for (i : 1 .. MAXSEQ) {
		if
		:: HAS(und, i) ->
			find_record(eep[i], i);
			rverdict = rverdict | BIT(i);
#if VARIANT == 10
			b = 1;
#else
			b = b || i <= cfm;
#endif
#if VARIANT == 0
			/* Asked only where it is exact. */
			assert(!b || xid[ent[i]] < N0);
#endif
			if
			:: b && DIDCOMMIT(xid[ent[i]]) ->
				com = com | BIT(i);
				if
				:: u == 0 -> REACHED(3)
				:: else
				fi;
				if
				:: HAS(ckund, i) -> REACHED(4)
				:: else
				fi
			:: else ->
				abt = abt | BIT(i);
				if
				:: HAS(clog, xid[ent[i]]) -> REACHED(2)
				:: else
				fi
			fi
		:: else
		fi
	}
	und = 0
}

/* The committed record for a seq at or above E; duplicates count once. */
inline find_committed(seq)
{
	u = 0;
	m = 0;
	for (j : 1 .. NTX) {
		if
		:: HAS(stash, j) && sq[j] == seq && !STALE(ep[j], seq) ->
			if
			:: m != 0 && ep[m] == ep[j]
			:: else ->
				m = j;
				if
				:: DIDCOMMIT(xid[j]) -> u = j
				:: else
				fi
			fi
		:: else
		fi
	}
}

/* Committed entries of the stash at or above E; voids for what lies between. */
inline restore()
{
	rR = rE - 1;
	for (i : 1 .. MAXSEQ) {
		if
		:: i >= rE ->
			find_committed(i);
			if
#if VARIANT == 70
			:: u != 0 && i == rR + 1 -> rR = i
#else
			:: u != 0 -> rR = i
#endif
			:: else
			fi
		:: else
		fi
	}
	/* v: the last void, m is find_committed()'s. */
	v = 0;
	for (i : 1 .. MAXSEQ) {
		if
		:: i >= rE && i <= rR ->
			find_committed(i);
			if
			:: u != 0 ->
				assert(!(kind[u] & REF));
				ent[i] = u;
				eep[i] = ep[u];
				pres[i] = LOGS(kind[u]);
				com = com | BIT(i);
				rverdict = rverdict | BIT(i)
			:: else ->
				ent[i] = VOID;
				eep[i] = cur;
				pres[i] = Q0;
				abt = abt | BIT(i);
				v = i
			fi
		:: else
		fi
	}
	printf("recovery: restores through %d, verdicts on %d; committed %d, aborted %d\n",
		   rR, rverdict, com, abt);
	if
	:: v != 0 -> REACHED(1)
	:: else
	fi;
	if
	:: again && rR >= rE -> REACHED(5)
	:: else
	fi
}

/* Does this recovery have to begin a new epoch? */
inline need_epoch()
{
	b = rcut || rR >= rE;
	for (j : 1 .. NTX) {
		if
		:: HAS(stash, j) && sq[j] >= rE -> b = VARIANT != 51 || b
		:: else
		fi
	}
}

/* Epoch record, flushed; then the entry with the epoch and the verdicts. */
inline conclude()
{
	need_epoch();
	cnt = rR;
#if VARIANT == 50
	b = false;
#endif
	if
	:: b ->
		assert(ecnt < MAXEP);
		ecnt++;
#if VARIANT == 80
		efirst[ecnt] = rE;
#else
		efirst[ecnt] = rR + 1;
#endif
		printf("recovery: epoch %d begins at seq %d\n", ecnt, efirst[ecnt]);
		cur = ecnt;
		wk = ecnt
	:: else
	fi;
	if
	:: b || rverdict != 0 ->
		assert(cnt < MAXSEQ);
		append(CTL, Q0);
		dcom[cnt] = rverdict & com;
		dabt[cnt] = rverdict & abt
	:: else
	fi;
#if VARIANT == 110
	gone = gone | stash;
	stash = 0
#else
	skip
#endif
}

/* Everything recovered is synced before anything is served. */
inline sync_all()
{
	printf("recovery: logs synced through %d\n", cnt);
#if VARIANT != 100
	dl[0] = cnt;
	dl[1] = cnt
#else
	skip
#endif
}

#define PRESENT(t)	(sq[t] != 0 && sq[t] <= cnt && HAS(com, sq[t]) && \
					 ent[sq[t]] == t && pres[sq[t]] == LOGS(kind[t]))

inline check_properties()
{
	for (i : 1 .. NTX) {
		/* Acknowledged: present and visible. */
		assert(!HAS(acked, i) || PRESENT(i));
		/* Joint: rows and messages agree; what aborted does not appear. */
		assert(!(kind[i] & JOINT) || HAS(rows, i) == PRESENT(i));
		/* Served once: served for ever, under the same seq. */
		assert(!HAS(seen, i) || PRESENT(i));
		if
		:: PRESENT(i) -> seen = seen | BIT(i)
		:: else
		fi
	}
}

/* The stash goes; what a client may see from now on must be right, for ever. */
inline serve()
{
	printf("recovery: serves, acknowledged %d, rows %d\n", acked, rows);
	check_properties();
	gone = gone | stash;
	stash = 0;
	wk = 0;
	rE = 0;
	rR = 0;
	rcut = false;
	rverdict = 0;
	N0 = 0;
	gflag = GUARDS;
	forget_settled()
}

/* One step of recovery, or all that is left of it when nothing can interrupt. */
inline recover()
{
	go = 1;
	do
	:: go && rpc == 1 -> scan(); rpc = 2; go = LAST
	:: go && rpc == 2 -> cut(0); rpc = 3; go = LAST
	:: go && rpc == 3 -> cut(1); rpc = 4; go = LAST
	:: go && rpc == 4 -> decide(); restore(); rpc = 5; go = LAST
	:: go && rpc == 5 -> conclude(); rpc = 6; go = LAST
	:: go && rpc == 6 -> sync_all(); rpc = 7; go = LAST
	:: go && rpc == 7 -> serve(); rpc = 0; go = 0
	:: !go -> break
	od;
	go = 0
}
