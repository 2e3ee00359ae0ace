#!/bin/sh
# run.sh: search the model of the commit protocol, one line of TAP per search.
#
#   run.sh                  everything: the correct model in each configuration,
#                           the situations it must reach, the known-bad variants
#   run.sh show CONFIG VARIANT [WITNESS]
#                           the story of the counterexample, one step per line
#
# Needs spin and a C compiler (CC, default gcc).  Builds in a private directory
# under TMPDIR that is removed at the end; README.md names the numbers.

set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1

for tool in spin "${CC:-gcc}"; do
	if ! command -v "$tool" >/dev/null; then
		echo "Bail out! $tool is not installed"
		exit 1
	fi
done

count=0
failed=0

# search CONFIG VARIANT WITNESS OPTIMISATION: leaves what the search said in ./out.
search() {
	rm -f pan pan.* out ./*.trail
	nice spin -a -DCONFIG="$1" -DVARIANT="$2" -DWITNESS="$3" \
		"$here/commit.pml" >out 2>&1 &&
		nice "${CC:-gcc}" -w "$4" -DSAFETY -DNOREDUCE -DNOFAIR -DMEMLIM=4000 \
			-o pan pan.c >>out 2>&1 &&
		nice ./pan -m5000 >>out 2>&1
}

# report NAME, after a test whose result is in $?
report() {
	result=$?
	count=$((count + 1))
	if [ $result -eq 0 ]; then
		echo "ok $count - $1"
	else
		failed=$((failed + 1))
		echo "not ok $count - $1"
		sed 's/^/# /' out
	fi
}

# The whole state space, nothing wrong in it.
correct() {
	search "$1" 0 0 -O2
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	grep -q 'errors: 0$' out && [ -n "$states" ] &&
		! grep -Eq 'not completed|search depth too small|out of memory|rror:' out
	report "correct model, $2 ($states states, exhaustive)"
}

# A known-bad variant: one of the properties, and no other assertion, must fail.
variant() {
	search "$2" "$1" 0 "${4:--O0}"
	grep -q 'errors: 1$' out &&
		grep -Eq 'assertion violated .*(acked|rows|seen)' out
	report "variant $1 is caught: $3"
}

# The list of followers: quiet when nothing is wrong, a process that sleeps for ever or two leaders when something is.
followers() {
	rm -f pan pan.* out ./*.trail
	nice spin -a -DVARIANT="$1" "$here/followers.pml" >out 2>&1 &&
		nice "${CC:-gcc}" -w -O2 -DSAFETY -DNOFAIR -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c >>out 2>&1 &&
		nice ./pan -m5000 >>out 2>&1
	if [ "$1" -eq 0 ]; then
		grep -q 'errors: 0$' out && ! grep -Eq 'not completed|search depth too small|out of memory|rror:' out
	else
		grep -q 'errors: 1$' out && grep -Eq 'invalid end state|assertion violated' out
	fi
	report "followers, $2"
}

# A situation that the correct model must reach, or the search would prove little.
witness() {
	search "$2" 0 "$1" -O0
	grep -q 'errors: 1$' out &&
		grep -Eq "assertion violated \(*$1 *!= *\(*$1\)" out
	report "reached: $3"
}

if [ "${1:-}" = show ]; then
	search "$2" "$3" "${4:-0}" -O1
	if ! ls ./*.trail >/dev/null 2>&1; then
		cat out
		exit 1
	fi
	cp "$here"/*.pml "$here/config.h" .
	touch ./*.trail
	spin -t -T -DCONFIG="$2" -DVARIANT="$3" -DWITNESS="${4:-0}" commit.pml |
		sed '/^#processes/,$d'
	exit 0
fi

correct 1 "two logs synced one by one, any subset lost, 3 transactions, 2 crashes"
correct 2 "guards, PostgreSQL's checkpoints, aborts, 2 crashes"
correct 3 "guards, our checkpoint, asynchronous commits, 2 crashes"
correct 4 "guards that go idle and come back, 2 crashes"
correct 5 "guards and both checkpoints, 2 crashes"
correct 6 "referenced entries, joint commits that guard themselves, 2 crashes"
correct 7 "3 crashes, any subset lost"
correct 8 "guards, 3 transactions, 1 crash"

witness 1 5 "a lost seq becomes void below a restored one"
witness 2 6 "the commit log would answer for a stranger and is not asked"
witness 3 5 "an entry is decided by its confirm, not by the stash"
witness 4 5 "an undecided row of our checkpoint turns out committed"
witness 5 5 "a recovery that has restored is interrupted and restores again"
witness 6 1 "a seq is used again and acknowledged in a new epoch"
witness 7 3 "an asynchronous commit is decided by a guard's batch"
witness 8 5 "a guard's flag holds PostgreSQL's checkpoint below an unsynced entry"

variant 10 2 "commit log asked for an entry neither stashed nor confirmed"
variant 20 1 "acknowledged per log"
variant 30 5 "checkpoint takes undecided entries as committed"
variant 31 5 "checkpoint forgets undecided entries"
variant 32 3 "checkpoint waits for neither WAL nor decisions of its commits"
variant 33 6 "checkpoint forgets the confirmed seq"
variant 40 6 "no guard: PostgreSQL's checkpoint passes an unsynced joint entry"
variant 41 2 "confirm past a record not yet inserted"
variant 50 7 "seq used again in the same epoch" -O1
variant 51 7 "no new epoch when only the stash knows of a later seq" -O1
variant 60 3 "committed decision logged before its WAL is flushed"
variant 70 5 "restoring stops at the first missing seq"
variant 80 5 "new epoch begins at the cut, not above what was restored"
variant 90 6 "joint commits rely on the flag of another commit, not of a guard"
variant 100 1 "recovery serves before it has synced"
variant 110 5 "the stash goes before the verdicts are synced"

followers 0 "correct model"
followers 1 "variant 1 is caught: the next leader is told before nobody leads"
followers 2 "variant 2 is caught: none of those left is told to lead"
followers 3 "variant 3 is caught: those left are not listed again"
followers 4 "variant 4 is caught: the last look at the list and the end of the office are two steps"

echo "1..$count"
[ $failed -eq 0 ]
