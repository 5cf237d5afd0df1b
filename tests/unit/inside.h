/* Run a C test in a directory of its own, which is removed at the end. */
#ifndef INSIDE_H
#define INSIDE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char inside[] = "/tmp/ace-unit.XXXXXX";

static void
inside_leave(void)
{
	char cmd[64];

	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", inside);
	if (chdir("/") < 0 || system(cmd) != 0)
		abort();
}

__attribute__((constructor)) static void
inside_enter(void)
{
	if (mkdtemp(inside) == NULL || chdir(inside) < 0 ||
	    atexit(inside_leave) != 0)
		abort();
}

#endif
