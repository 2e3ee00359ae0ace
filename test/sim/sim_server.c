/*
 * sim_server.c
 *		A simulated server: memory, processes, the scheduler, and the I/O table through which it can be interrupted.
 */
#include "sim_server.h"

#include "sim_random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_SIZE	((size_t) 64 * 1024)

/* ---- memory of a process ---- */

void *
sim_arena_take(SimArena *arena, size_t size)
{
	size_t		need = (size + 15) / 16 * 16;
	void	   *memory;

	if (arena->bytes == NULL)
	{
		arena->bytes = sim_alloc(ARENA_SIZE);
		arena->cap = ARENA_SIZE;
	}
	if (arena->cap - arena->used >= need)
	{
		memory = arena->bytes + arena->used;
		arena->used += need;
		memset(memory, 0, need);
		return memory;
	}
	if (arena->nmore == arena->cap_more)
	{
		arena->cap_more = arena->cap_more * 2 + 8;
		arena->more = sim_realloc(arena->more, arena->cap_more * sizeof(void *));
	}
	memory = sim_alloc(need + 1);
	arena->more[arena->nmore++] = memory;
	return memory;
}

void
sim_arena_reset(SimArena *arena)
{
	while (arena->nmore > 0)
		free(arena->more[--arena->nmore]);
	arena->used = 0;
}

void *
sim_arena_alloc(void *arena, size_t size)
{
	return sim_arena_take(arena, size);
}

static void *
cache_alloc(void *context, size_t size)
{
	(void) context;
	return malloc(size);
}

static void
cache_release(void *context, void *buffer)
{
	(void) context;
	free(buffer);
}

/* ---- being interrupted ---- */

/* The server has died: a process never runs again. */
static void
die(SimProc *p)
{
	p->world->crashed = true;
	while (sim_fiber_inside())
		sim_fiber_yield();
}

/* Stand before a step until the scheduler lets it happen; false = the server has died. */
static bool
before_step(SimProc *p)
{
	SimWorld   *w = p->world;

	if (sim_fiber_inside())
	{
		p->pending.waiting = true;
		sim_fiber_yield();
		memset(&p->pending, 0, sizeof(p->pending));
	}
	if (w->crashed)
		return false;
	w->steps++;
	return true;
}

/* A step of the disk comes now: the disk itself fails when this is the step to die at. */
bool
sim_disk_step(SimProc *p)
{
	SimWorld   *w = p->world;

	if (!before_step(p))
		return false;
	if (w->steps == w->crash_step)
		sim_disk_crash_at(w->disk, sim_disk_steps(w->disk) + 1, w->crash_point);
	return true;
}

int
sim_disk_stepped(SimProc *p, int rc)
{
	if (rc == SIM_CRASHED)
		die(p);
	return rc;
}

void
sim_pause(SimProc *p)
{
	(void) p;
	sim_fiber_yield();
}

bool
sim_wal_step(SimProc *p)
{
	SimWorld   *w = p->world;

	if (!before_step(p))
		return false;
	if (w->steps != w->crash_step)
		return true;
	sim_disk_stop(w->disk);
	die(p);
	return false;
}

/* ---- the I/O table ---- */

static const QcIo *
disk_io(const SimProc *p)
{
	return sim_disk_io(p->world->disk);
}

static int
io_open(void *context, const char *path, int flags, QcHandle *handle)
{
	SimProc    *p = context;

	if ((flags & QC_OPEN_CREATE) != 0 && !sim_disk_step(p))
		return SIM_CRASHED;
	return sim_disk_stepped(p, disk_io(p)->open(p->world->disk, path, flags, handle));
}

static void
io_close(void *context, QcHandle handle)
{
	SimProc    *p = context;

	disk_io(p)->close(p->world->disk, handle);
}

static int
io_read(void *context, QcHandle handle, void *buf, size_t len, uint64_t position, size_t *done)
{
	SimProc    *p = context;

	return sim_disk_stepped(p, disk_io(p)->read(p->world->disk, handle, buf, len, position, done));
}

static int
io_write(void *context, QcHandle handle, const QcIoSlice *slices, int nslices, uint64_t position)
{
	SimProc    *p = context;

	p->pending = (SimPending)
	{
		.is_write = true, .handle = handle, .slices = slices, .nslices = nslices,
		.position = position
	};
	if (!sim_disk_step(p))
		return SIM_CRASHED;
	return sim_disk_stepped(p, disk_io(p)->write(p->world->disk, handle, slices, nslices, position));
}

/* As src/pg/qlog_io.c: nobody goes on after a failed sync. */
static int
synced(SimProc *p, int rc)
{
	if (rc == 0 || rc == SIM_CRASHED || !sim_fiber_inside())
		return sim_disk_stepped(p, rc);
	(void) qc_error_sys(&p->err, rc, "", "could not sync");
	sim_panic(p, "a sync");
	return rc;
}

static int
io_sync(void *context, QcHandle handle)
{
	SimProc    *p = context;

	return sim_disk_step(p) ? synced(p, disk_io(p)->sync(p->world->disk, handle)) : SIM_CRASHED;
}

static int
io_size(void *context, QcHandle handle, uint64_t *size)
{
	SimProc    *p = context;

	return sim_disk_stepped(p, disk_io(p)->size(p->world->disk, handle, size));
}

static int
io_truncate(void *context, QcHandle handle, uint64_t size)
{
	SimProc    *p = context;

	return sim_disk_step(p) ? sim_disk_stepped(p, disk_io(p)->truncate(p->world->disk, handle, size)) :
		SIM_CRASHED;
}

static int
io_make_directory(void *context, const char *path)
{
	SimProc    *p = context;

	return sim_disk_step(p) ? sim_disk_stepped(p, disk_io(p)->make_directory(p->world->disk, path)) :
		SIM_CRASHED;
}

static int
io_sync_directory(void *context, const char *path)
{
	SimProc    *p = context;
	int			rc;

	if (!sim_disk_step(p))
		return SIM_CRASHED;
	rc = disk_io(p)->sync_directory(p->world->disk, path);

	/* One that was renamed away has no sync that could fail. */
	return rc == ENOENT ? sim_disk_stepped(p, rc) : synced(p, rc);
}

static int
io_list(void *context, const char *path, QcNameVisitor visit, void *visit_context)
{
	SimProc    *p = context;

	return sim_disk_stepped(p, disk_io(p)->list(p->world->disk, path, visit, visit_context));
}

static int
io_rename(void *context, const char *from, const char *to)
{
	SimProc    *p = context;

	return sim_disk_step(p) ? sim_disk_stepped(p, disk_io(p)->rename(p->world->disk, from, to)) :
		SIM_CRASHED;
}

static int
io_unlink(void *context, const char *path)
{
	SimProc    *p = context;

	return sim_disk_step(p) ? sim_disk_stepped(p, disk_io(p)->unlink(p->world->disk, path)) : SIM_CRASHED;
}

static int
io_remove_directory(void *context, const char *path)
{
	SimProc    *p = context;

	return sim_disk_step(p) ? sim_disk_stepped(p, disk_io(p)->remove_directory(p->world->disk, path)) :
		SIM_CRASHED;
}

/* ---- processes ---- */

static void
proc_init(SimServer *server, uint32_t number)
{
	SimProc    *p = &server->procs[number];

	p->server = server;
	p->world = server->world;
	p->number = number;
	p->io = (QcIo)
	{
		.context = p, .open = io_open, .close = io_close, .read = io_read, .write = io_write,
		.sync = io_sync, .size = io_size, .truncate = io_truncate,
		.make_directory = io_make_directory, .sync_directory = io_sync_directory, .list = io_list,
		.rename = io_rename, .unlink = io_unlink, .remove_directory = io_remove_directory
	};
	qc_files_init(&p->files, &p->io, QC_LAYOUT_FLAT);
	qc_read_init(&p->cache, &p->files, cache_alloc, cache_release, NULL);
	qc_error_clear(&p->err);
}

/* Blocks of servers that are gone, to be used again: fresh memory from the system costs more than a recovery. */
#define SPARES	8
#define STATE_BYTES	((size_t) 4 * 1024 * 1024)

static void *spare_blocks[SPARES];
static int	nspares;

static void *
take_block(uint64_t size)
{
	void	   *block = nspares > 0 ? spare_blocks[--nspares] : malloc(STATE_BYTES);

	assert(size <= STATE_BYTES);
	if (block == NULL)
		abort();
	return block;
}

static void
give_block(void *block)
{
	if (nspares < SPARES)
		spare_blocks[nspares++] = block;
	else
		free(block);
}

void
sim_server_cleanup(void)
{
	while (nspares > 0)
		free(spare_blocks[--nspares]);
	sim_fiber_cleanup();
}

static QcStateConfig
state_config(const SimWorld *world)
{
	return (QcStateConfig)
	{
		.state_bytes = world->config.state, .index_bytes = world->config.index,
			.max_slots = world->config.max_slots, .max_waiters = SIM_PROCS
	};
}

void
sim_server_clear(SimServer *server)
{
	QcStateConfig config = state_config(server->world);

	server->st = qc_state_init(server->state_block, &config);
}

SimServer *
sim_server_new(SimWorld *world)
{
	SimServer  *server = sim_alloc(sizeof(SimServer));
	QcStateConfig config = state_config(world);

	server->world = world;
	server->state_block = take_block(qc_state_size(&config));
	server->ring_block = take_block(qc_ring_block_size(world->config.ring));
	server->st = qc_state_init(server->state_block, &config);
	server->ring = qc_ring_init(server->ring_block, world->config.ring, 0);
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		proc_init(server, i);
	server->nprocs = 1;
	return server;
}

void
sim_server_free(SimServer *server)
{
	for (uint32_t i = 0; i < server->nprocs; i++)
	{
		SimProc    *p = &server->procs[i];

		if (p->fiber != NULL)
			sim_fiber_free(p->fiber);
		qc_read_end(&p->cache);
		sim_arena_reset(&p->arena);
		free(p->arena.bytes);
		free(p->arena.more);
	}
	if (server->store != NULL)
		qs_close(server->store);
	free(server->batch.bytes);
	free(server->snapshot);
	qc_reclaim_end(&server->reclaim);
	give_block(server->state_block);
	give_block(server->ring_block);
	free(server);
}

static void
proc_main(void *argument)
{
	SimProc    *p = argument;

	p->main(p);
}

SimProc *
sim_server_spawn(SimServer *server, void (*main) (SimProc *p))
{
	SimProc    *p = &server->procs[server->nprocs++];

	assert(server->nprocs <= SIM_PROCS);
	p->main = main;
	p->files.layout = server->identity.layout;
	p->fiber = sim_fiber_new(proc_main, p);
	return p;
}

/* Number of processes that run. */
static uint32_t
living(const SimServer *server)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < server->nprocs; i++)
		n += server->procs[i].fiber != NULL && !server->procs[i].ended;
	return n;
}

/* One of them. */
static SimProc *
choose(SimServer *server, uint32_t n)
{
	uint64_t	skip = sim_below(server->world, n);

	for (uint32_t i = 0;; i++)
	{
		SimProc    *p = &server->procs[i];

		if (p->fiber == NULL || p->ended)
			continue;
		if (skip-- == 0)
			return p;
	}
}

static void
tick(SimWorld *w)
{
	int64_t		us = (int64_t) (sim_below(w, 50) * (w->config.pace + 1));

	/* now and then a long sleep of everybody */
	if (sim_below(w, 500) == 0)
		us = (int64_t) sim_below(w, 200000);
	w->now += us;
	w->monotonic += us;
}

bool
sim_server_run(SimServer *server, uint64_t n, SimBefore before, void *context)
{
	SimWorld   *w = server->world;
	uint32_t	nliving;

	while ((nliving = living(server)) > 0)
	{
		SimProc    *p;

		if (n-- == 0 || sim_world_failed(w))
			return false;
		p = choose(server, nliving);
		if (before != NULL && p->pending.waiting)
			before(context, server, &p->pending);
		tick(w);
		if (!sim_fiber_resume(p->fiber))
			p->ended = true;
		if (w->crashed)
			return false;
		if (!sim_wait_check(server))
			return false;
	}
	return true;
}

/* ---- locks ---- */

void
sim_lock(SimProc *p, SimProc **lock)
{
	while (*lock != NULL)
		sim_pause(p);
	*lock = p;
}

void
sim_unlock(SimProc *p, SimProc **lock)
{
	assert(*lock == p);
	*lock = NULL;
}

bool
sim_disk_failed(const SimProc *p)
{
	const SimConfig *config = &p->world->config;

	return (config->faults > 0 || config->full > 0) &&
		(p->err.sys_errno == EIO || p->err.sys_errno == ENOSPC);
}

void
sim_panic(SimProc *p, const char *what)
{
	sim_broken(p, what);
	if (p->world->crashed || sim_world_failed(p->world))
		return;
	p->world->totals.panics++;
	if (!sim_fiber_inside())
		sim_disk_stop(p->world->disk);
	die(p);
}

void
sim_broken(SimProc *p, const char *what)
{
	char		text[400];

	if (p->world->crashed || sim_disk_failed(p))
		return;
	qc_error_format(&p->err, text, sizeof(text));
	(void) sim_world_fail(p->world, "%s: %s: %s", what, qc_status_name(p->err.code), text);
}
