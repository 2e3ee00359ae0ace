/*
 * sim_churn.c
 *		Hours of virtual time: much more goes through the queues than is ever there, and the disk is given back.
 *
 * An oracle of its own counts what lives out of what clients have pushed and finished, knowing the options of the queues and nothing
 * of files, records and reclaim; and it counts the disk by the sizes of all files.	Then
 *
 *	 - at every moment the disk holds no more than what lived some time ago, what was pushed since, two segments for each log and the
 *	   reserve;
 *	 - when nobody has pushed for that time the same holds without what was pushed, and every name on the disk is one that belongs
 *	   there: nothing temporary, nothing dead, no log of nobody, no index of a file that is gone.
 *
 * The workload: queues that keep what is read for a while, that lose what is old, and that do neither; one client that holds a few
 * messages for long while all around them is done; messages that come back too often and go to the dead letters; delayed ones;
 * crashes in between.	The seeds 1 of the scenarios churn and churn-shared push as many segments as 100 GB are of 64 MiB, or SIM_CHURN
 * per cent of them.
 */
#include "sim_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Per cent of the volume.  Sanitizers make everything slow. */
#ifdef SIM_SANITIZED
#define VOLUME		5
#else
#define VOLUME		100
#endif
#define SAMPLE		64			/* turns between two looks */
#define LAG			300			/* looks: what has died must be gone after so many */
#define QUIET		(LAG * SAMPLE)	/* turns of the workers when the clients have ended */
#define SAMPLES_MAX 4096
#define MESSAGE		160			/* bytes around a message, and of a copy of one, at most */
#define LETTER		320
#define RUN			131072		/* more is more than a record, by any measure */

/* One look. */
typedef struct Sample
{
	uint64_t	live;
	uint64_t	pushed;
} Sample;

typedef struct Disk
{
	uint64_t	bytes;
	uint32_t	nlogs;
} Disk;

typedef struct Churn
{
	SimWorld   *w;
	uint32_t	first;			/* all messages before it are dead for good */
	uint64_t	pushed;			/* bytes, those before `counted` */
	uint32_t	counted;
	uint8_t    *alive;			/* by message, from `first` on */
	uint64_t	letters;		/* bytes of dead letters of those before `first` */
	uint32_t	nsamples;		/* of this life of the server */
	Sample		samples[SAMPLES_MAX];
	uint64_t	worst;			/* per cent of what is allowed, so far */
} Churn;

/* ---- what lives ---- */

/* Does anybody need the message still, or may somebody soon? */
static bool
lives(const SimOracle *o, const SimMessage *m, int64_t now)
{
	const SimTxn *t = &o->txns[m->txn];
	const SimQueue *queue = &o->queues[m->queue];
	const SimUse *use = &m->uses[0];
	int64_t		age = now - m->pushed_at;
	SimKeep		keep = sim_keep(queue->name);
	bool		done = use->settled || use->died || use->died_sure;

	/* A commit that was told answers for good. */
	if (use->answering != 0)
		done = o->txns[use->answering - 1].fate == SIM_COMMITTED;
	if (t->fate == SIM_ABORTED || t->fate == SIM_OUT || queue->gone || m->gone)
		return false;
	if (t->fate == SIM_OPEN || t->fate == SIM_DOUBT || (!done && use->lease != 0))
		return true;
	return age <= keep.unread_us && (!done || age < keep.read_us);
}

static bool
has_letter(const SimMessage *m)
{
	return m->uses[0].died || m->uses[0].died_sure || m->letter;
}

/* A message at its place. */
typedef struct Place
{
	uint64_t	partition;
	uint64_t	position;
	uint32_t	number;
} Place;

static int
compare_places(const void *a, const void *b)
{
	const Place *left = a;
	const Place *right = b;

	if (left->partition != right->partition)
		return left->partition < right->partition ? -1 : 1;
	return left->position < right->position ? -1 : left->position > right->position;
}

/* The messages [first, end) of the list stay, as there are not many of them. */
static void
keep_run(Churn *churn, const Place *places, uint32_t first, uint32_t end)
{
	const SimOracle *o = churn->w->oracle;
	uint64_t	bytes = 0;

	for (uint32_t i = first; i < end; i++)
		bytes += o->messages[places[i].number].bytes;
	for (uint32_t i = first; i < end && bytes < RUN; i++)
		churn->alive[places[i].number] = 1;
}

/* What is done between messages that are not goes only when it is as large as a record. */
static void
keep_runs(Churn *churn, Place *places, uint32_t n)
{
	uint32_t	after = n;		/* the last one that lives, n = none in this partition */

	qsort(places, n, sizeof(Place), compare_places);
	for (uint32_t i = 0; i <= n; i++)
	{
		bool		ends = i == n || (i > 0 && places[i].partition != places[i - 1].partition);
		bool		alive = i < n && churn->alive[places[i].number];

		if ((ends || alive) && after < n)
			keep_run(churn, places, after + 1, i);
		if (ends)
			after = n;
		if (alive)
			after = i;
	}
}

static void
find_alive(Churn *churn)
{
	const SimOracle *o = churn->w->oracle;
	Place	   *places = sim_alloc((o->nmessages - churn->first + 1) * sizeof(Place));
	uint32_t	n = 0;

	churn->alive = sim_realloc(churn->alive, o->nmessages + 1);
	for (uint32_t i = churn->first; i < o->nmessages; i++)
	{
		const SimMessage *m = &o->messages[i];

		churn->alive[i] = lives(o, m, churn->w->now);
		if (m->position != UINT64_MAX)
			places[n++] = (Place)
		{
			(uint64_t) m->queue << 32 | m->partition, m->position, i
		};
	}
	keep_runs(churn, places, n);
	free(places);
}

/* A record lives as a whole as long as one of its messages does. */
static uint64_t
count_live(Churn *churn)
{
	const SimOracle *o = churn->w->oracle;
	uint64_t	live = churn->letters;
	bool		prefix = true;

	find_alive(churn);
	for (uint32_t i = churn->first; i < o->nmessages;)
	{
		uint32_t	batch = o->messages[i].batch;
		uint64_t	bytes = 0;
		uint64_t	letters = 0;
		bool		any = false;

		for (; i < o->nmessages && o->messages[i].batch == batch; i++)
		{
			any = any || churn->alive[i] != 0;
			bytes += o->messages[i].bytes + MESSAGE;
			letters += has_letter(&o->messages[i]) ? LETTER : 0;
		}
		live += letters + (any ? bytes : 0);
		prefix = prefix && !any && i < o->nmessages;
		if (prefix)
		{
			churn->first = i;
			churn->letters += letters;
		}
	}
	for (; churn->counted < o->nmessages; churn->counted++)
		churn->pushed += o->messages[churn->counted].bytes + MESSAGE;
	return live;
}

/* ---- the disk ---- */

/* SimVisitor */
static void
measure(void *context, const char *path, bool is_directory, uint64_t size)
{
	Disk	   *disk = context;

	/* What recovery has cut off is kept for those who want to look at it. */
	if (strstr(path, ".cut.") != NULL)
		return;
	disk->bytes += size;
	disk->nlogs += is_directory && strncmp(path, "qlog/q", 6) == 0;
}

static bool
check_bound(Churn *churn, const Sample *from, uint64_t pushed, const char *when)
{
	uint64_t	segment = churn->w->config.segment;
	Disk		disk = {0, 0};
	uint64_t	bound;

	sim_disk_visit(churn->w->disk, measure, &disk);
	bound = from->live + pushed + (2 * disk.nlogs + 1) * segment;
	if (disk.bytes * 100 / bound > churn->worst)
		churn->worst = disk.bytes * 100 / bound;
	if (disk.bytes <= bound)
		return true;
	return sim_world_fail(churn->w, "%s the disk holds %llu bytes instead of %llu: %llu live, %llu pushed since, %u logs",
						  when, (unsigned long long) disk.bytes, (unsigned long long) bound,
						  (unsigned long long) from->live, (unsigned long long) pushed, disk.nlogs);
}

/* ---- strays ---- */

typedef struct Strays
{
	SimWorld   *w;
	uint64_t	log;			/* of the file before */
	uint64_t	file;
} Strays;

static bool
ends_with(const char *path, const char *end)
{
	size_t		len = strlen(path);

	return len >= strlen(end) && strcmp(path + len - strlen(end), end) == 0;
}

/* Is there a queue whose log this is? */
static bool
is_log(const SimWorld *w, uint64_t log)
{
	const SimOracle *o = w->oracle;
	bool		found = log <= w->config.shards;

	for (uint32_t i = 0; i < o->nqueues && w->config.shards == 0; i++)
		found = found || (o->queues[i].id == log && !o->queues[i].gone);
	return found;
}

/* Does a name below qlog/ belong there?	Names come in order, so an index comes right before its file. */
static bool
is_log_name(Strays *s, const char *path, bool is_directory)
{
	unsigned long long log;
	unsigned long long file;
	char		rest[8];

	if (strstr(path, ".cut.") != NULL || strcmp(path, "qlog/LANES") == 0 || strcmp(path, "qlog/SHARDS") == 0)
		return true;
	if (is_directory)
		return sscanf(path, "qlog/q%llu%7s", &log, rest) == 1 && is_log(s->w, log);
	if (sscanf(path, "qlog/q%llu/r%llu.%7s", &log, &file, rest) != 3)
		return false;
	if (s->file != 0 && (s->log != log || s->file != file))
		return false;
	s->log = log;
	s->file = strcmp(rest, "qidx") == 0 ? file : 0;
	return s->file != 0 || strcmp(rest, "qlog") == 0;
}

/* SimVisitor */
static void
look_for_strays(void *context, const char *path, bool is_directory, uint64_t size)
{
	static const char *const names[] = {"FLOOR", "IDENTITY", "pgsql_tmp.qlog_node", "qlog", "replication", "snapshots", "store",
	"traces"};
	Strays	   *s = context;
	bool		good = false;

	(void) size;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		good = good || strcmp(path, names[i]) == 0;
	if (strncmp(path, "qlog/", 5) == 0)
		good = is_log_name(s, path, is_directory);
	if (strncmp(path, "snapshots/s", 11) == 0 && !is_directory)
		good = ends_with(path, ".qsnap");
	if (!good)
		(void) sim_world_fail(s->w, "\"%s\" is left behind", path);
}

/* ---- a life ---- */

static void
take_sample(Churn *churn)
{
	Sample	   *sample = &churn->samples[churn->nsamples % SAMPLES_MAX];
	const Sample *past;

	sample->live = count_live(churn);
	sample->pushed = churn->pushed;
	if (++churn->nsamples <= LAG)
		return;
	past = &churn->samples[(churn->nsamples - 1 - LAG) % SAMPLES_MAX];
	(void) check_bound(churn, past, sample->pushed - past->pushed, "under load");
}

/* Let everybody run for so many turns; false = the server has died, or something is wrong. */
static bool
run_for(Churn *churn, SimServer *server, uint64_t turns)
{
	for (uint64_t i = 0; i < turns; i += SAMPLE)
	{
		if (!sim_server_run(server, SAMPLE, NULL, NULL) && (churn->w->crashed || sim_world_failed(churn->w)))
			return false;
		take_sample(churn);
	}
	return !sim_world_failed(churn->w);
}

/* The clients end, the workers go on: then all is as small as it gets. */
static void
rest(Churn *churn, SimServer *server)
{
	Strays		strays = {.w = churn->w};
	Sample		now = {0, 0};

	server->stopping = true;
	if (!run_for(churn, server, QUIET))
		return;
	now.live = count_live(churn);
	if (check_bound(churn, &now, 0, "at rest") && sim_stop(server))
		sim_disk_visit(churn->w->disk, look_for_strays, &strays);
}

static void
live(Churn *churn, uint64_t turns)
{
	SimWorld   *w = churn->w;
	SimServer  *server;
	bool		dies = sim_chance(w, 40);

	if (sim_chance(w, w->config.lost))
		sim_lose_store(w);
	server = sim_boot(w, 0);
	if (server == NULL)
		return;
	churn->nsamples = 0;
	sim_start(server);
	(void) sim_server_spawn(server, sim_holder_main);
	if (dies)
	{
		w->crash_step = w->steps + 1 + sim_below(w, turns);
		w->crash_point = (SimPoint) sim_below(w, 3);
	}
	if (run_for(churn, server, turns))
		rest(churn, server);
	sim_end(server, sim_any_crash(w));
}

static uint64_t
volume(void)
{
	const char *text = getenv("SIM_CHURN");

	return text == NULL ? VOLUME : strtoull(text, NULL, 10);
}

bool
sim_churn(SimWorld *w, uint32_t segments)
{
	Churn	   *churn = sim_alloc(sizeof(Churn));
	int64_t		began = w->now;

	churn->w = w;
	while (!sim_world_failed(w) && churn->pushed < segments * w->config.segment * volume() / 100)
		live(churn, LAG * SAMPLE + sim_below(w, 3 * LAG * SAMPLE));
	sim_trace(w->oracle, "%llu bytes in %lld seconds, at worst %llu%% of what is allowed",
			  (unsigned long long) churn->pushed, (long long) ((w->now - began) / 1000000),
			  (unsigned long long) churn->worst);
	free(churn->alive);
	free(churn);
	return !sim_world_failed(w);
}
