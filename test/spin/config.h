/*
 * config.h
 *		The bounds of one run: which actors, how many, how often.
 *
 * A run is CONFIG plus a VARIANT or a WITNESS; run.sh names them.  Every
 * configuration is searched exhaustively.  Bounds that count actions
 * (NCYCLE, NPGCK, NQLCK, NSTRANGER) hold for the whole run, not per life.
 */

#ifndef VARIANT
#define VARIANT		0
#endif
#ifndef WITNESS
#define WITNESS		0
#endif

#if CONFIG == 1
/* Two logs synced one by one, any subset of unsynced parts lost. */
#define NTX			3
#define NCRASH		2
#define PERLOG		1
#define SUBSETS		1
#define KINDS		:: kind[t] = Q0 :: kind[t] = Q0 | Q1 \
					:: kind[t] = JOINT | Q1
#elif CONFIG == 2
/* Guards against PostgreSQL's checkpoint. */
#define NTX			2
#define NCRASH		2
#define GUARDS		1
#define NCYCLE		2
#define NPGCK		2
#define NSTRANGER	1
#define ABORTS		1
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1
#elif CONFIG == 3
/* Guards and our checkpoint. */
#define NTX			2
#define NCRASH		2
#define GUARDS		1
#define NCYCLE		2
#define NQLCK		1
#define NSTRANGER	1
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1 \
					:: kind[t] = JOINT | Q1 | ASYNC
#elif CONFIG == 4
/* Guards that go idle and come back, joint commits that guard themselves. */
#define NTX			2
#define NCRASH		2
#define GUARDS		1
#define GLAST		1
#define NCYCLE		2
#define NPGCK		1
#define NQLCK		0
#define NSTRANGER	1
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1
#elif CONFIG == 5
/* Everything at once. */
#define NTX			2
#define NCRASH		2
#define GUARDS		1
#define NCYCLE		2
#define NPGCK		1
#define NQLCK		1
#define NSTRANGER	1
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1
#elif CONFIG == 6
/* Referenced entries, and no guard workers at all. */
#define NTX			2
#define NCRASH		2
#define NPGCK		1
#define NQLCK		1
#define NSTRANGER	1
#define SUBSETS		1
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1 \
					:: kind[t] = JOINT | Q0 | Q1 | REF
#elif CONFIG == 7
/* Three crashes. */
#define NTX			2
#define NCRASH		3
#define NPGCK		1
#define NSTRANGER	2
#define SUBSETS		1
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1
#elif CONFIG == 8
/* Three transactions and guards, one crash. */
#define NTX			3
#define NCRASH		1
#define GUARDS		1
#define NCYCLE		2
#define KINDS		:: kind[t] = Q0 :: kind[t] = JOINT | Q1
#endif

#define MAXSEQ		8
#define MAXXID		8
#define MAXEP		(NCRASH + 1)

#ifndef PERLOG
#define PERLOG		0
#endif
#ifndef SUBSETS
#define SUBSETS		0
#endif
#ifndef GUARDS
#define GUARDS		0
#endif
#ifndef GLAST
#define GLAST		0
#endif
#ifndef NCYCLE
#define NCYCLE		0
#endif
#ifndef NPGCK
#define NPGCK		0
#endif
#ifndef NQLCK
#define NQLCK		0
#endif
#ifndef NSTRANGER
#define NSTRANGER	0
#endif
#ifndef ABORTS
#define ABORTS		0
#endif
#ifndef CKDEC
#define CKDEC		(VARIANT != 32)
#endif
#ifndef CKFLUSH
#define CKFLUSH		(VARIANT != 32)
#endif
