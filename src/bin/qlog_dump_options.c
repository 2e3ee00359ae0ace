/*
 * qlog_dump_options.c
 *		Command line of qlog_dump.
 *
 * Letters are those of pg_waldump where the meaning is the same.
 */
#include "qlog_dump.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "qc_dir.h"

/* Options that have no letter. */
enum
{
	OPTION_QUEUE = 256,
	OPTION_PARTITION,
	OPTION_TYPE,
	OPTION_PAYLOAD,
	OPTION_FORMAT,
	OPTION_VERIFY,
	OPTION_SUMMARY,
	OPTION_HELP
};

static const struct option long_options[] = {
	{"path", required_argument, NULL, 'p'},
	{"start", required_argument, NULL, 's'},
	{"end", required_argument, NULL, 'e'},
	{"limit", required_argument, NULL, 'n'},
	{"quiet", no_argument, NULL, 'q'},
	{"stats", no_argument, NULL, 'z'},
	{"queue", required_argument, NULL, OPTION_QUEUE},
	{"partition", required_argument, NULL, OPTION_PARTITION},
	{"type", required_argument, NULL, OPTION_TYPE},
	{"payload", required_argument, NULL, OPTION_PAYLOAD},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"verify", no_argument, NULL, OPTION_VERIFY},
	{"summary", no_argument, NULL, OPTION_SUMMARY},
	{"follow", no_argument, NULL, 'f'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0}
};

/* The summary of the options. */
static void
print_help(FILE *out)
{
	fputs("qlog_dump decodes and verifies the files of qlog, without a server and without changing them.\n"
		  "\n"
		  "Usage:\n"
		  "  qlog_dump [OPTION]... [PATH]\n"
		  "\n"
		  "PATH is a log file, or the data directory of qlog (by default qlog/ in that of PostgreSQL).\n"
		  "\n"
		  "Options:\n"
		  "  -p, --path=PATH         what to read\n"
		  "  -s, --start=SEQ         records from this seq on\n"
		  "  -e, --end=SEQ           records up to this seq\n"
		  "  -n, --limit=N           stop after N records\n"
		  "  -q, --quiet             print damage only\n"
		  "  -z, --stats             print counters instead of records\n"
		  "      --queue=QUEUE       only the queue of this name (of a directory), or the log with this id\n"
		  "      --partition=ID      only records of this partition, and entries that name it\n"
		  "      --type=TYPE         messages, entry, stub, pad or solo, or the name of an effect\n"
		  "      --payload=FORM      none (default), text or hex: print the messages too\n"
		  "      --format=FORMAT     text (default) or json, an object on each line\n"
		  "      --verify            check everything, also indexes and the parts of entries; print\n"
		  "                          what is wrong and a total\n"
		  "      --summary           of a directory: identity, checkpoint, snapshots, queues and logs\n"
		  "  -f, --follow            of a directory: go on printing records as they are written\n"
		  "  -V, --version           print the version and exit\n"
		  "  -?, --help              print this and exit\n"
		  "\n"
		  "The exit code is 0 when nothing is wrong (a torn tail is not), 1 when the usage is or\n"
		  "something could not be read, 2 when damage was found.\n", out);
}

/* An unsigned decimal number, whole. */
static bool
parse_number(const char *text, uint64_t *number)
{
	char	   *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

/* A kind of record, or the name of an effect, which selects entries. */
static bool
parse_type(const char *text, DumpOptions *options)
{
	options->kind = options->effect = DUMP_ANY;
	for (int i = 0; i < DUMP_KINDS; i++)
	{
		if (strcmp(text, dump_kind_name((QcKind) i)) == 0 && strcmp(text, "unknown") != 0)
		{
			options->kind = i;
			return true;
		}
	}
	for (int i = 1; i < QC_EFFECT_KIND_END; i++)
	{
		const char *name = qc_effect_name((QcEffectKind) i);

		if (name != NULL && strcmp(text, name) == 0)
		{
			options->effect = i;
			return true;
		}
	}
	return false;
}

static bool
parse_payload(const char *text, DumpOptions *options)
{
	static const char *const names[] = {
		[DUMP_PAYLOAD_NONE] = "none",[DUMP_PAYLOAD_TEXT] = "text",[DUMP_PAYLOAD_HEX] = "hex"
	};

	for (int i = 0; i <= DUMP_PAYLOAD_HEX; i++)
	{
		if (strcmp(text, names[i]) == 0)
		{
			options->payload = (DumpPayload) i;
			return true;
		}
	}
	return false;
}

static bool
parse_format(const char *text, DumpOptions *options)
{
	options->json = strcmp(text, "json") == 0;
	return options->json || strcmp(text, "text") == 0;
}

/* Take one option; false = its argument is wrong. */
static bool
take(int option, const char *argument, DumpOptions *options)
{
	switch (option)
	{
		case 'p':
			options->path = argument;
			return true;
		case 's':
			return parse_number(argument, &options->start);
		case 'e':
			return parse_number(argument, &options->end);
		case 'n':
			return parse_number(argument, &options->limit);
		case 'q':
			options->quiet = true;
			return true;
		case 'z':
			options->stats = true;
			return true;
		case OPTION_QUEUE:
			options->one_log = parse_number(argument, &options->log);
			options->queue = options->one_log ? NULL : argument;
			return argument[0] != '\0';
		case OPTION_SUMMARY:
			options->summary = true;
			return true;
		case 'f':
			options->follow = true;
			return true;
		case OPTION_PARTITION:
			options->one_partition = true;
			return parse_number(argument, &options->partition);
		case OPTION_TYPE:
			return parse_type(argument, options);
		case OPTION_PAYLOAD:
			return parse_payload(argument, options);
		case OPTION_FORMAT:
			return parse_format(argument, options);
		default:
			options->verify = true;
			return true;
	}
}

static const char *
long_name(int option)
{
	const struct option *entry = long_options;

	while (entry->val != option)
		entry++;
	return entry->name;
}

/* The usage is wrong: say why, and where to find help. */
static DumpParsed
refuse(FILE *errors, const char *what, const char *argument)
{
	fprintf(errors, "qlog_dump: %s%s%s\nTry \"qlog_dump --help\".\n", what, argument ? ": " : "",
			argument ? argument : "");
	return DUMP_PARSED_WRONG;
}

DumpParsed
dump_parse(int argc, char **argv, DumpOptions *options, FILE *out, FILE *errors)
{
	int			option;
	char		what[40];

	*options = (DumpOptions)
	{
		.end = UINT64_MAX, .limit = UINT64_MAX, .kind = DUMP_ANY, .effect = DUMP_ANY
	};
	optind = 0;					/* of the GNU C library: begin anew */
	opterr = 0;
	while ((option = getopt_long(argc, argv, "p:s:e:n:qzfV", long_options, NULL)) != -1)
	{
		/* -? is an option that getopt does not know */
		if (option == '?' && optopt != '?')
			return refuse(errors, "unknown option or missing argument", argv[optind - 1]);
		if (option == '?' || option == OPTION_HELP)
		{
			print_help(out);
			return DUMP_PARSED_DONE;
		}
		if (option == 'V')
		{
			fprintf(out, "qlog_dump, format version %d\n", QC_DIR_VERSION);
			return DUMP_PARSED_DONE;
		}
		if (!take(option, optarg, options))
		{
			(void) snprintf(what, sizeof(what), "wrong argument of --%s", long_name(option));
			return refuse(errors, what, optarg);
		}
	}
	if (optind < argc && options->path == NULL)
		options->path = argv[optind++];
	if (optind < argc)
		return refuse(errors, "too many arguments", argv[optind]);
	if (options->follow && (options->stats || options->verify || options->summary))
		return refuse(errors, "--follow goes with neither --stats nor --verify nor --summary", NULL);
	if (options->path == NULL)
		return refuse(errors, "which file or directory?", NULL);
	return DUMP_PARSED_RUN;
}
