/*
 * qc_effect.h
 *		Effects: what an entry does to the state, already decided, deterministic to apply.
 *
 * On disk an effect is u16 kind, u16 version, u32 length of the body, body.  The body is the
 * fixed fields of the list below in order, then, for kinds with items, u32 number of items and
 * the items.  QC_EFFECT_LIST is the ONE list: it drives the enum, the structs, the encoder, the
 * decoder, the dump tool and doc/format.md's golden vectors.
 *
 * Field macros: U8/U16/U32/U64(name), I64(name), STR(name): u16 length + bytes.
 */
#ifndef QC_EFFECT_H
#define QC_EFFECT_H

#include "qc_bytes.h"
#include "qc_error.h"

/*
 * EFFECT(number, NAME, name, Struct, FIELDS, ITEM FIELDS or QC_NO_ITEMS)
 *
 * append		messages [first, first + count) entered a partition, in `records` message
 *				records of log `log`.
 * aborted		positions that hold no message (a rolled back or lost entry).
 * deliver		a pop: the lease and its runs; positions in a run have the same attempt number
 *				(1 = first delivery).  lease_us: its duration.
 * pop_commit	the transaction of that pop committed: the lease now runs for its time.
 * release		the lease ended without an answer (reason QC_RELEASE_*): its messages can be taken again.  messages: how
 *				many these are; when recovery finds more, the others had been acknowledged by entries whose decision
 *				the log tells only later.
 * ack			these ranges of the lease are done; a lease with nothing left ends.  The group is named so
 *				that recovery can apply it when the delivery was lost.
 * nack			these ranges can be delivered again delay_us after the entry's created_at; a count of
 *				QC_NACK_REST: everything that the lease holds of the partition from first on.
 * dead			a message moved to the dead lane: copy at lane/lane_position (appended in the same entry); lane 0: it is
 *				dropped.  The lease it is taken from, 0 = it had none any more.
 * renew		the lease runs for lease_us from now on.
 * decision		verdicts on joint entries; lsn is the end of the commit record (0 when aborted).
 * confirm		every joint entry up to seq has its WAL record in durable WAL before lsn.
 * epoch		a new epoch begins at first_seq; older entries at or above it are void.
 * queue_alter	the queue's whole new definition: name, owner, QC_QUEUE_* flags, options that are set, and one item
 *				for each element of its ACL.  An entry alters a queue at most once.
 * queue_create, queue_drop, partition_create, group_create, group_drop: catalog.
 * seek			mode QC_SEEK_GROUP: the group stands where `start` says in every partition; it goes on as group
 *				`successor`, which has no leases.  QC_SEEK_SET: it stands at these positions, and leases there
 *				end.  QC_SEEK_FOUND: these positions are what its start rule means there; leases stay.
 * purge		messages of the partition (0 = of every one) are gone, but for those leased and those of the
 *				entries listed, which are not decided.  entry: the one that asked for it; 0 = this one does,
 *				and another purge effect that names it follows when it is decided.
 * redrive		these dead letters leave their lane; copies of them stand in partitions (appended in the same entry).
 * purge_dead	these dead letters are gone.
 * delay		the messages from `first` on that were appended to the delay lane, one for each item, are for the
 *				partition at `due` (microseconds since the Unix epoch); hash: of the message id, to find it by.
 * fire			these messages of the delay lane are due: their copies were appended in the same entry.
 * cancel		this message of the delay lane is not to be delivered.
 * watermark	messages of these partitions below `start` have been removed by retention; unread: how many of them a group
 *				had not finished.  What is leased stays with its consumer.
 * gone			the same for [first, first + count), above the start.
 * partition_drop these partitions were empty and idle, and are removed.
 * lost			a repair has found these messages unreadable: they are gone, whoever holds them, from lanes too.
 * repair		the queue is in service again.
 */
#define QC_NO_ITEMS

#define QC_EFFECT_LIST(EFFECT, U8, U16, U32, U64, I64, STR) \
	EFFECT(1, APPEND, append, QcAppend, \
		U64(partition) U64(log) U64(first) U32(count) U32(records), QC_NO_ITEMS) \
	EFFECT(2, ABORTED, aborted, QcAborted, \
		U64(partition) U64(first) U32(count), QC_NO_ITEMS) \
	EFFECT(3, DELIVER, deliver, QcDeliver, \
		U64(lease) U64(queue) U64(group) U64(lease_us), \
		U64(partition) U64(first) U32(count) U32(attempt)) \
	EFFECT(4, POP_COMMIT, pop_commit, QcPopCommit, \
		U64(lease), QC_NO_ITEMS) \
	EFFECT(5, RELEASE, release, QcRelease, \
		U64(lease) U64(delay_us) U8(reason) U32(messages), QC_NO_ITEMS) \
	EFFECT(6, ACK, ack, QcAck, \
		U64(lease) U64(group), U64(partition) U64(first) U32(count)) \
	EFFECT(7, NACK, nack, QcNack, \
		U64(lease) U64(delay_us) STR(reason), U64(partition) U64(first) U32(count)) \
	EFFECT(8, DEAD, dead, QcDead, \
		U64(lease) U64(group) U64(partition) U64(position) U32(attempt) U64(lane) U64(lane_position) U8(cause) STR(reason), \
		QC_NO_ITEMS) \
	EFFECT(9, RENEW, renew, QcRenew, \
		U64(lease) U64(lease_us), QC_NO_ITEMS) \
	EFFECT(10, DECISION, decision, QcDecision, \
		U32(timeline), U64(seq) U64(lsn) U8(committed)) \
	EFFECT(11, CONFIRM, confirm, QcConfirm, \
		U64(seq) U32(timeline) U64(lsn), QC_NO_ITEMS) \
	EFFECT(12, EPOCH, epoch, QcEpoch, \
		U64(epoch) U64(previous) U64(first_seq) U32(timeline), QC_NO_ITEMS) \
	EFFECT(13, QUEUE_CREATE, queue_create, QcQueueCreate, \
		U64(queue) U32(database) U32(owner) U64(log) U64(default_partition) STR(name) STR(options), \
		QC_NO_ITEMS) \
	EFFECT(14, QUEUE_DROP, queue_drop, QcQueueDrop, \
		U64(queue), QC_NO_ITEMS) \
	EFFECT(15, PARTITION_CREATE, partition_create, QcPartitionCreate, \
		U64(partition) U64(queue) U8(lane) U64(group) STR(name), QC_NO_ITEMS) \
	EFFECT(16, GROUP_CREATE, group_create, QcGroupCreate, \
		U64(group) U64(queue) U8(start) I64(start_at) STR(name), QC_NO_ITEMS) \
	EFFECT(17, QUEUE_ALTER, queue_alter, QcQueueAlter, \
		U64(queue) U32(owner) U8(flags) STR(name) STR(options), \
		U32(grantee) U32(grantor) U32(privileges)) \
	EFFECT(18, GROUP_DROP, group_drop, QcGroupDrop, \
		U64(queue) U64(group), QC_NO_ITEMS) \
	EFFECT(19, SEEK, seek, QcSeek, \
		U8(mode) U64(queue) U64(group) U64(successor) U8(start) I64(start_at), \
		U64(partition) U64(position)) \
	EFFECT(20, PURGE, purge, QcPurge, \
		U64(queue) U64(partition) U64(entry), U64(seq)) \
	EFFECT(21, REDRIVE, redrive, QcRedrive, \
		U64(lane), U64(first) U32(count)) \
	EFFECT(22, PURGE_DEAD, purge_dead, QcPurgeDead, \
		U64(lane), U64(first) U32(count)) \
	EFFECT(23, DELAY, delay, QcDelay, \
		U64(lane) U64(first) U64(partition) I64(due), U32(hash)) \
	EFFECT(24, FIRE, fire, QcFire, \
		U64(lane), U64(position)) \
	EFFECT(25, CANCEL, cancel, QcCancel, \
		U64(lane) U64(position), QC_NO_ITEMS) \
	EFFECT(28, WATERMARK, watermark, QcWatermark, \
		U64(queue), U64(partition) U64(start) U64(unread)) \
	EFFECT(29, GONE, gone, QcGone, \
		U64(queue), U64(partition) U64(first) U32(count) U32(unread)) \
	EFFECT(30, PARTITION_DROP, partition_drop, QcPartitionDrop, \
		U64(queue), U64(partition)) \
	EFFECT(34, LOST, lost, QcLost, \
		U64(queue), U64(partition) U64(first) U32(count)) \
	EFFECT(35, REPAIR, repair, QcRepair, \
		U64(queue), QC_NO_ITEMS)

/* QcRelease.delay_us and QcNack.delay_us: as the options retry_delay and retry_delay_max have it */
#define QC_DELAY_RULE		UINT64_MAX

/* values of QcRelease.reason */
#define QC_RELEASE_ABORT	1	/* the transaction of the pop rolled back */
#define QC_RELEASE_EXPIRED	2	/* the lease's time was over */
#define QC_RELEASE_LOST		3	/* recovery found no commit of the pop */

/* values of QcDead.cause */
#define QC_DEAD_REJECTED	1	/* its consumer said so */
#define QC_DEAD_NACKED		2	/* given back once more than retry_limit allows */
#define QC_DEAD_ABORTED		3	/* its consumer's transaction rolled back once too often */
#define QC_DEAD_EXPIRED		4	/* its lease expired once too often */
#define QC_DEAD_LOST		5	/* its consumer was gone after a crash once too often */
#define QC_DEAD_UNREADABLE	6	/* as 2 to 5; the letter only says where its record is damaged */

/* value of QcNackItem.count */
#define QC_NACK_REST		UINT32_MAX

/* bits of QcQueueAlter.flags and QcQueue.flags */
#define QC_QUEUE_NO_PUSH	1	/* paused: pushes are refused */
#define QC_QUEUE_NO_POP		2	/* paused: pops find nothing */
#define QC_QUEUE_HAS_ACL	4	/* privileges are what the ACL says; otherwise the owner has all of
								 * them */

/* values of QcPartitionCreate.lane */
#define QC_LANE_NONE		0	/* an ordinary partition */
#define QC_LANE_DEAD		1	/* dead letters of one group */
#define QC_LANE_DELAY		2	/* delayed messages */

/* values of QcGroupCreate.start and QcSeek.start */
#define QC_START_OLDEST		0	/* the oldest message kept */
#define QC_START_NEW		1	/* what is pushed from now on */
#define QC_START_TIME		2	/* what was pushed at start_at or later, microseconds since the
								 * Unix epoch */
#define QC_START_POSITION	3	/* position start_at, or the nearest one that the partition has */

/* values of QcSeek.mode */
#define QC_SEEK_GROUP		1
#define QC_SEEK_SET			2
#define QC_SEEK_FOUND		3

typedef enum QcEffectKind
{
#define QC_ENUM(number, NAME, name, Struct, fields, items) QC_EFFECT_##NAME = number,
#define QC_NOTHING(name)
	QC_EFFECT_LIST(QC_ENUM, QC_NOTHING, QC_NOTHING, QC_NOTHING, QC_NOTHING, QC_NOTHING, QC_NOTHING)
#undef QC_ENUM
	QC_EFFECT_KIND_END
} QcEffectKind;

/* Bytes in place: of the writer's caller, or inside the decoded payload. */
typedef struct QcStr
{
	const uint8_t *bytes;
	uint16_t	len;
} QcStr;

/*
 * One struct per effect (QcAppend ...) with its fixed fields, and one per item row
 * (QcAppendItem ..., with a member `unused_` where there are no items).
 */
#define QC_FIELD_U8(name) uint8_t name;
#define QC_FIELD_U16(name) uint16_t name;
#define QC_FIELD_U32(name) uint32_t name;
#define QC_FIELD_U64(name) uint64_t name;
#define QC_FIELD_I64(name) int64_t name;
#define QC_FIELD_STR(name) QcStr name;
#define QC_STRUCT(number, NAME, name, Struct, fields, items) \
	typedef struct Struct { fields } Struct; \
	typedef struct Struct##Item { items uint8_t unused_; } Struct##Item;
QC_EFFECT_LIST(QC_STRUCT, QC_FIELD_U8, QC_FIELD_U16, QC_FIELD_U32, QC_FIELD_U64, QC_FIELD_I64,
			   QC_FIELD_STR)
#undef QC_STRUCT
#undef QC_FIELD_U8
#undef QC_FIELD_U16
#undef QC_FIELD_U32
#undef QC_FIELD_U64
#undef QC_FIELD_I64
#undef QC_FIELD_STR

#define QC_EFFECT_HEAD_SIZE 8	/* kind, version, length */
#define QC_EFFECT_VERSION	1

/* A decoded effect.  Items stay encoded in place; qc_effect_item decodes one. */
typedef struct QcEffect
{
	QcEffectKind kind;
	uint32_t	nitems;
	const uint8_t *items;
	union
	{
#define QC_MEMBER(number, NAME, name, Struct, fields, items) Struct name;
		QC_EFFECT_LIST(QC_MEMBER, QC_NOTHING, QC_NOTHING, QC_NOTHING, QC_NOTHING, QC_NOTHING,
					   QC_NOTHING)
#undef QC_MEMBER
#undef QC_NOTHING
	}			u;
} QcEffect;

/* Whole encoded size, head included.  fixed is the effect's struct (for its strings). */
extern size_t qc_effect_size(QcEffectKind kind, const void *fixed, uint32_t nitems);

/*
 * Encode: head, fixed fields and, for kinds with items, their number; the caller then puts
 * exactly nitems items with qc_effect_put_item.
 */
extern void qc_effect_put(QcWriter *w, QcEffectKind kind, const void *fixed, uint32_t nitems);
extern void qc_effect_put_item(QcWriter *w, QcEffectKind kind, const void *item);

/* Decode the next effect; QC_END when the reader is at its end. */
extern QcStatus qc_effect_get(QcReader *r, QcEffect *effect, QcError *err);

/* Decode item i (< nitems) into the kind's item struct. */
extern void qc_effect_item(const QcEffect *effect, uint32_t i, void *item);

/* Encoded size of one item of this kind, 0 when it has none. */
extern size_t qc_effect_item_size(QcEffectKind kind);

/* "append", or NULL for an unknown kind. */
extern const char *qc_effect_name(QcEffectKind kind);

/* One field of an effect, for tools and tests.  Signed numbers are cast in value. */
typedef struct QcField
{
	const char *name;
	int64_t		item;			/* -1: a fixed field; otherwise the item's number */
	bool		is_string;		/* str holds it, otherwise value */
	bool		is_signed;
	uint64_t	value;
	QcStr		str;
} QcField;

/* Call visit for every field of the effect in the order of the list, items after the rest. */
typedef void (*QcFieldVisitor) (void *context, const QcField *field);
extern void qc_effect_visit(const QcEffect *effect, QcFieldVisitor visit, void *context);

#endif							/* QC_EFFECT_H */
