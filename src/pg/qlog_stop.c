/*
 * qlog_stop.c
 *		Places at which a test can stop a process for good.
 */
#include "qlog_stop.h"

char	   *qlog_debug_stop = NULL;

void
qlog_stop_at(const char *name)
{
	if (strcmp(qlog_debug_stop, name) != 0)
		return;
	ereport(LOG,
			(errmsg("stopped at \"%s\"", name),
			 errhint("The setting qlog.debug_stop asked for it. Only a signal that kills ends this process.")));
	for (;;)
		pg_usleep(100000);
}

void
qlog_stop_at_step(const char *prefix, const char *name)
{
	char		point[NAMEDATALEN];

	if (qlog_debug_stop == NULL || qlog_debug_stop[0] == '\0')
		return;
	snprintf(point, sizeof(point), "%s-%s", prefix, name);
	qlog_stop_at(point);
}
