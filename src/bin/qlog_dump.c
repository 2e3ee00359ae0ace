/*
 * qlog_dump.c
 *		Entry point of qlog_dump, which decodes and verifies qlog's files without a server.
 *
 * Everything else is in qlog_dump_*.c, which tests link too.
 */
#include "qlog_dump.h"

int
main(int argc, char **argv)
{
	return dump_main(argc, argv, stdout, stderr);
}
