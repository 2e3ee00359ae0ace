/*
 * qs_lmdb_check.c
 *		Structure of an LMDB data file, version 1 (LMDB 0.9), read without LMDB.
 *
 * Two meta pages describe two trees: the free pages and our rows.  The meta page with the larger
 * transaction number counts, as in LMDB.  Checked: every page has its number and the kind that its
 * depth asks for, its nodes lie inside it in ascending order of keys, its children exist in the
 * file, and no page is used twice, by two trees or by a tree and the list of free pages.  Integers
 * have the byte order and the size of this machine.
 */
#define _GNU_SOURCE
#include "qs_lmdb_check.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_HEADER		16
#define PAGE_SIZE_MIN	512
#define PAGE_SIZE_MAX	32768
#define KIND_BRANCH		0x01
#define KIND_LEAF		0x02
#define KIND_OVERFLOW	0x04
#define KIND_META		0x08
#define KIND_MASK		0x6f	/* with LEAF2 and SUBP; without marks that only matter in memory */

#define META_MAGIC		0xBEEFC0DEu
#define META_VERSION	1
#define META_SIZE		136		/* after the page header */
#define META_TREES		24
#define META_LAST_PAGE	120
#define META_TXN		128
#define TREE_SIZE		48
#define TREE_FLAGS		4
#define TREE_DEPTH		6
#define TREE_ROOT		40
#define FLAGS_OF_TREE	0x7f	/* above them stand flags of the environment */
#define FLAGS_FREE		0x08	/* integers as keys */
#define FLAGS_ROWS		0x00
#define DEPTH_MAX		32

#define NODE_HEADER		8
#define NODE_BIG		0x01	/* the value lies in overflow pages */
#define KEY_MAX			511

#define NO_PAGE			UINT64_MAX

typedef enum TreeKind
{
	TREE_FREE,
	TREE_ROWS
} TreeKind;

typedef struct Check
{
	int			fd;
	const char *file;
	QcError    *err;
	uint64_t	file_size;
	uint32_t	page_size;
	uint64_t	last_page;
	uint8_t    *used;			/* a bit per page */
	uint8_t    *pages;			/* a page per level of a tree */
} Check;

typedef struct Node
{
	uint16_t	flags;
	uint64_t	child;			/* of a branch */
	uint32_t	value_len;		/* of a leaf */
	uint16_t	key_len;
	const uint8_t *key;
	const uint8_t *value;		/* of a leaf; the page number when NODE_BIG */
} Node;

_Static_assert(sizeof(size_t) == 8, "LMDB's page numbers are 64 bits wide here");

static uint16_t
native_u16(const uint8_t *at)
{
	uint16_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint32_t
native_u32(const uint8_t *at)
{
	uint32_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t
native_u64(const uint8_t *at)
{
	uint64_t	value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static QcStatus
damaged(const Check *check, uint64_t page, const char *what)
{
	return qc_error_at(check->err, QC_DAMAGED, check->file, page * check->page_size,
					   "the store is damaged: %s", what);
}

/* Read len bytes, all of which must be there. */
static QcStatus
read_at(const Check *check, uint64_t position, uint8_t *buf, size_t len)
{
	size_t		done = 0;

	while (done < len)
	{
		ssize_t		got = pread(check->fd, buf + done, len - done, (off_t) (position + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return qc_error_sys(check->err, errno, check->file, "could not read the store");
		if (got == 0)
			return qc_error_at(check->err, QC_DAMAGED, check->file, position,
							   "the store is damaged: the file ends early");
		done += (size_t) got;
	}
	return QC_OK;
}

/* Note that count pages from this one on are in use, each for the first time. */
static QcStatus
take_pages(const Check *check, uint64_t page, uint64_t count)
{
	if (page < 2 || page > check->last_page || count > check->last_page - page + 1)
		return damaged(check, page > check->last_page ? 0 : page,
					   "a page number out of range");
	for (; count > 0; page++, count--)
	{
		uint8_t		bit = (uint8_t) (1 << (page % 8));

		if (check->used[page / 8] & bit)
			return damaged(check, page, "a page is used twice");
		check->used[page / 8] |= bit;
	}
	return QC_OK;
}

/* Decode the node with this index of a page whose bounds are checked; false when it sticks out. */
static bool
get_node(const Check *check, const uint8_t *page, uint32_t index, bool branch, Node *node)
{
	uint32_t	offset = native_u16(page + PAGE_HEADER + 2 * index);
	uint32_t	upper = native_u16(page + 14);
	uint32_t	size = check->page_size;
	const uint8_t *at = page + offset;
	uint64_t	held;

	if (offset < upper || offset > size - NODE_HEADER)
		return false;
	node->flags = native_u16(at + 4);
	node->key_len = native_u16(at + 6);
	node->key = at + NODE_HEADER;
	node->value_len = (uint32_t) native_u16(at) | (uint32_t) native_u16(at + 2) << 16;
	node->child = node->value_len | (uint64_t) node->flags << 32;
	node->value = node->key + node->key_len;
	held = branch ? 0 : node->flags & NODE_BIG ? sizeof(uint64_t) : node->value_len;
	if (!branch && (node->flags & ~NODE_BIG) != 0)
		return false;
	return node->key_len <= KEY_MAX && NODE_HEADER + node->key_len + held <= size - offset;
}

/* Order of two keys in this kind of tree. */
static int
compare_keys(TreeKind kind, const Node *a, const Node *b)
{
	size_t		shorter = a->key_len < b->key_len ? a->key_len : b->key_len;
	int			order;

	if (kind == TREE_FREE)
	{
		uint64_t	left = native_u64(a->key);
		uint64_t	right = native_u64(b->key);

		return (left > right) - (left < right);
	}
	order = memcmp(a->key, b->key, shorter);
	return order != 0 ? order : (a->key_len > b->key_len) - (a->key_len < b->key_len);
}

/* Nodes of one page: inside it, with keys of the right form, in ascending order. */
static QcStatus
check_nodes(const Check *check, TreeKind kind, uint64_t number, const uint8_t *page,
			uint32_t count, bool branch)
{
	Node		before;

	for (uint32_t i = 0; i < count; i++)
	{
		Node		node;
		bool		lowest = branch && i == 0;	/* its key counts as less than all */

		if (!get_node(check, page, i, branch, &node))
			return damaged(check, number, "a node sticks out of its page");
		if (!lowest && (kind == TREE_FREE ? node.key_len != sizeof(uint64_t) : node.key_len == 0))
			return damaged(check, number, "a key has a wrong length");
		if (i > (branch ? 1u : 0u) && compare_keys(kind, &before, &node) >= 0)
			return damaged(check, number, "keys are out of order");
		before = node;
	}
	return QC_OK;
}

/* Read a page of a tree into buf and check everything inside it. */
static QcStatus
read_page(const Check *check, TreeKind kind, uint64_t number, bool branch, uint8_t *buf,
		  uint32_t *count)
{
	uint32_t	lower;
	uint32_t	upper;
	QcStatus	status = take_pages(check, number, 1);

	if (status == QC_OK)
		status = read_at(check, number * check->page_size, buf, check->page_size);
	if (status != QC_OK)
		return status;
	if (native_u64(buf) != number)
		return damaged(check, number, "a page has the number of another one");
	if ((native_u16(buf + 10) & KIND_MASK) != (branch ? KIND_BRANCH : KIND_LEAF))
		return damaged(check, number, "a page is of the wrong kind");
	lower = native_u16(buf + 12);
	upper = native_u16(buf + 14);
	if (lower < PAGE_HEADER || lower > upper || upper > check->page_size || lower % 2 != 0)
		return damaged(check, number, "a page has wrong bounds");
	*count = (lower - PAGE_HEADER) / 2;
	if (*count < (branch && kind == TREE_ROWS ? 2u : 1u))
		return damaged(check, number, "a page has too few nodes");
	return check_nodes(check, kind, number, buf, *count, branch);
}

/*
 * A long value: its pages are there and say what they are.  There may be more of them than it
 * needs: a shorter value takes over the pages of the longer one before it.
 */
static QcStatus
check_overflow(const Check *check, uint64_t number, uint32_t value_len)
{
	uint64_t	needed = (PAGE_HEADER - 1 + (uint64_t) value_len) / check->page_size + 1;
	uint8_t		head[PAGE_HEADER];
	QcStatus	status = take_pages(check, number, 1);

	if (status == QC_OK)
		status = read_at(check, number * check->page_size, head, sizeof(head));
	if (status != QC_OK)
		return status;
	if (native_u64(head) != number || (native_u16(head + 10) & KIND_MASK) != KIND_OVERFLOW ||
		native_u32(head + 12) < needed)
		return damaged(check, number, "the first page of a long value is wrong");
	if (number * check->page_size + PAGE_HEADER + value_len > check->file_size)
		return damaged(check, number, "the file ends early");
	return native_u32(head + 12) == 1 ? QC_OK :
		take_pages(check, number + 1, native_u32(head + 12) - 1);
}

/* A list of free pages: how many, then their numbers, descending; none of them in use. */
static QcStatus
check_free_list(const Check *check, uint64_t number, const uint8_t *list, uint64_t len)
{
	uint64_t	count;
	uint64_t	before = NO_PAGE;

	if (len < sizeof(uint64_t))
		return damaged(check, number, "a list of free pages is too short");
	count = native_u64(list);
	if (count > len / sizeof(uint64_t) - 1)
		return damaged(check, number, "a list of free pages is too short");
	for (uint64_t i = 1; i <= count; i++)
	{
		uint64_t	page = native_u64(list + i * sizeof(uint64_t));
		QcStatus	status = take_pages(check, page, 1);

		if (status != QC_OK)
			return status;
		if (page >= before)
			return damaged(check, number, "a list of free pages is out of order");
		before = page;
	}
	return QC_OK;
}

/* The value of a leaf, wherever it lies. */
static QcStatus
check_value(const Check *check, TreeKind kind, uint64_t number, const Node *node)
{
	uint8_t    *list;
	uint64_t	start;
	QcStatus	status;

	if (!(node->flags & NODE_BIG))
		return kind == TREE_ROWS ? QC_OK :
			check_free_list(check, number, node->value, node->value_len);

	start = native_u64(node->value);
	status = check_overflow(check, start, node->value_len);
	if (status != QC_OK || kind == TREE_ROWS)
		return status;
	list = malloc(node->value_len);
	if (list == NULL)
		return qc_error_sys(check->err, ENOMEM, check->file, "could not check the store");
	status = read_at(check, start * check->page_size + PAGE_HEADER, list, node->value_len);
	if (status == QC_OK)
		status = check_free_list(check, start, list, node->value_len);
	free(list);
	return status;
}

/* A page and everything below it; depth 1 is a leaf. */
static QcStatus
check_page(const Check *check, TreeKind kind, uint64_t number, uint32_t depth)
{
	uint8_t    *page = check->pages + (size_t) (depth - 1) * check->page_size;
	bool		branch = depth > 1;
	uint32_t	count = 0;
	QcStatus	status = read_page(check, kind, number, branch, page, &count);

	for (uint32_t i = 0; status == QC_OK && i < count; i++)
	{
		Node		node = {0};

		if (!get_node(check, page, i, branch, &node))
			return damaged(check, number, "a node sticks out of its page");
		status = branch ? check_page(check, kind, node.child, depth - 1) :
			check_value(check, kind, number, &node);
	}
	return status;
}

static QcStatus
check_tree(Check *check, TreeKind kind, uint64_t meta_page, const uint8_t *tree)
{
	uint32_t	depth = native_u16(tree + TREE_DEPTH);
	uint64_t	root = native_u64(tree + TREE_ROOT);
	uint32_t	flags = native_u16(tree + TREE_FLAGS) & FLAGS_OF_TREE;
	QcStatus	status;

	if (flags != (kind == TREE_FREE ? FLAGS_FREE : FLAGS_ROWS))
		return damaged(check, meta_page, "a tree of the wrong kind");
	if (root == NO_PAGE)
		return depth == 0 ? QC_OK : damaged(check, meta_page, "a tree without a root");
	if (depth == 0 || depth > DEPTH_MAX)
		return damaged(check, meta_page, "a tree of impossible depth");
	check->pages = malloc((size_t) depth * check->page_size);
	if (check->pages == NULL)
		return qc_error_sys(check->err, ENOMEM, check->file, "could not check the store");
	status = check_page(check, kind, root, depth);
	free(check->pages);
	return status;
}

/* Read one of the two meta pages; buf gets its part after the page header. */
static QcStatus
read_meta(Check *check, uint64_t number, uint8_t buf[META_SIZE])
{
	uint8_t		raw[PAGE_HEADER + META_SIZE];
	QcStatus	status = read_at(check, number * check->page_size, raw, sizeof(raw));

	if (status != QC_OK)
		return status;
	memcpy(buf, raw + PAGE_HEADER, META_SIZE);
	if ((native_u16(raw + 10) & KIND_META) == 0 || native_u32(buf) != META_MAGIC)
		return damaged(check, number, "a meta page is wrong");
	if (native_u32(buf + 4) != META_VERSION)
		return qc_error_at(check->err, QC_VERSION, check->file, number * check->page_size,
						   "the store has version %u of LMDB's format", native_u32(buf + 4));
	return QC_OK;
}

/* Read both meta pages; meta gets the one that counts and *number its page. */
static QcStatus
pick_meta(Check *check, uint8_t meta[META_SIZE], uint64_t *number)
{
	uint8_t		second[META_SIZE];
	QcStatus	status = read_meta(check, 0, meta);

	if (status != QC_OK)
		return status;
	/* the page size stands in a field that the tree of free pages has no use for */
	check->page_size = native_u32(meta + META_TREES);
	if (check->page_size < PAGE_SIZE_MIN || check->page_size > PAGE_SIZE_MAX ||
		(check->page_size & (check->page_size - 1)) != 0)
		return damaged(check, 0, "an impossible page size");
	status = read_meta(check, 1, second);
	if (status != QC_OK)
		return status;
	if (native_u32(second + META_TREES) != check->page_size)
		return damaged(check, 1, "the meta pages disagree about the page size");
	*number = native_u64(second + META_TXN) > native_u64(meta + META_TXN);
	if (*number == 1)
		memcpy(meta, second, META_SIZE);
	return QC_OK;
}

/* The meta pages, then both trees with one map of the pages in use. */
static QcStatus
check_file(Check *check)
{
	uint8_t		meta[META_SIZE];
	uint64_t	number = 0;
	QcStatus	status = pick_meta(check, meta, &number);

	if (status != QC_OK)
		return status;
	/* pages at the end that are free were perhaps never written, hence no comparison with the size */
	check->last_page = native_u64(meta + META_LAST_PAGE);
	if (check->last_page < 1 || check->last_page > INT64_MAX / check->page_size ||
		check->last_page / 8 > check->file_size)
		return damaged(check, number, "an impossible number of pages");
	check->used = calloc(1, (size_t) (check->last_page / 8 + 1));
	if (check->used == NULL)
		return qc_error_sys(check->err, ENOMEM, check->file, "could not check the store");
	status = check_tree(check, TREE_ROWS, number, meta + META_TREES + TREE_SIZE);
	if (status == QC_OK)
		status = check_tree(check, TREE_FREE, number, meta + META_TREES);
	free(check->used);
	return status;
}

QcStatus
qs_lmdb_check(const char *path, const char *file, QcError *err)
{
	Check		check = {.file = file, .err = err};
	struct stat st;
	QcStatus	status;

	check.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (check.fd < 0)
		return qc_error_sys(err, errno, file, "could not open the store");
	if (fstat(check.fd, &st) != 0)
		status = qc_error_sys(err, errno, file, "could not open the store");
	else
	{
		check.file_size = (uint64_t) st.st_size;
		status = check_file(&check);
	}
	close(check.fd);
	return status;
}
