/*
 * followers.pml
 *		A model of the list of followers of group commit (src/pg/qlog_leader.c).
 *
 * Processes fill entries and make them durable: each leads, or lists itself and sleeps on its semaphore.	Every access to
 * shared memory is one step, what only one process can reach goes with it.  A wake-up that is lost is a state from which nothing goes on.  Compile-time choice: VARIANT
 * (a known-bad change, 0 = none).
 */

#define NPROC		3
#define ROUNDS(p)	((p) == 1 -> 2 : 1)
#define SEQS		4

#define WAITING		0
#define FINISHED	1			/* durable and settled */
#define AGAIN		2

byte filled;
byte durable;
byte head;						/* newest listed process, 0 = none */
bool leading;
byte leaders;
byte next[NPROC + 1];
byte want[NPROC + 1];
byte told[NPROC + 1];
byte sem[NPROC + 1];
byte settled[SEQS + 1];

inline tell(who, what)
{
	told[who] = what;
	sem[who]++
}

/* Nobody leads from here on. */
inline resign()
{
	leaders--;
	leading = false
}

proctype process(byte me)
{
	byte round;
	byte seq;
	byte saw;
	bool saw_leader;
	byte covered;
	byte others;
	byte at;
	byte after;

	do
	:: round == ROUNDS(me) -> break
	:: round < ROUNDS(me) ->
		d_step { round++; filled++; seq = filled };

load:	skip;
		d_step { saw = head; saw_leader = leading };
join:	if
		:: durable >= seq -> settled[seq]++; goto out
		:: else
		fi;
		if
		:: !saw_leader ->
			d_step {
				if
				:: head == saw && !leading -> leading = true; leaders++; at = 1
				:: else -> saw = head; saw_leader = leading; at = 0
				fi
			};
			if
			:: at == 1 -> goto lead
			:: else -> goto join
			fi
		:: else
		fi;
		want[me] = seq;
		next[me] = saw;
		told[me] = WAITING;
		d_step {
			if
			:: head == saw && leading -> head = me; at = 1
			:: else -> saw = head; saw_leader = leading; at = 0
			fi
		};
		if
		:: at == 0 -> goto join
		:: else
		fi;
sleep:	skip;
		d_step { sem[me] > 0 -> sem[me]-- };
		if
		:: told[me] == WAITING -> goto sleep
		:: told[me] == AGAIN -> goto load
		:: told[me] == FINISHED -> goto out
		fi;

lead:	assert(leaders == 1);
		if
		:: durable < seq -> at = filled; durable = at
		:: else
		fi;
		covered = 0;
divide:	skip;
		d_step {		/* what is off the list is the leader's own */
			others = 0;
			at = head;
			head = 0;
			do
			:: at == 0 -> break
			:: at != 0 ->
				after = next[at];
				if
				:: want[at] <= durable -> next[at] = covered; covered = at
				:: else -> next[at] = others; others = at
				fi;
				at = after
			od
		};
		if
		:: others != 0 ->
#if VARIANT == 3
			resign();
#else
			d_step {
				at = next[others];
				after = at;
				do
				:: next[after] == 0 -> break
				:: else -> after = next[after]
				od
			};
			if
			:: at != 0 ->
back:			saw = head;
				next[after] = saw;
				d_step {
					if
					:: head == saw -> head = at; saw_leader = true
					:: else -> saw_leader = false
					fi
				};
				if
				:: !saw_leader -> goto back
				:: else
				fi
			:: else
			fi;
#if VARIANT == 1
			tell(others, AGAIN);
			d_step { resign() }
#else
			d_step { resign() };
#if VARIANT != 2
			tell(others, AGAIN)
#endif
#endif
#endif
		:: else ->
			d_step {
				if
#if VARIANT == 4
				:: true -> resign(); at = 1
#else
				:: head == 0 -> resign(); at = 1
#endif
				:: else -> at = 0
				fi
			};
			if
			:: at == 0 -> goto divide
			:: else
			fi
		fi;
		settled[seq]++;
		do
		:: covered == 0 -> break
		:: covered != 0 ->
			d_step {
				after = next[covered];
				settled[want[covered]]++;
				tell(covered, FINISHED);
				covered = after
			}
		od;
out:	assert(durable >= seq);
		assert(settled[seq] == 1);
		d_step { seq = 0; saw = 0; saw_leader = false; covered = 0; others = 0; at = 0; after = 0 }
	od
}

init
{
	atomic {
		run process(1);
		run process(2);
		run process(3)
	}
}
