/*
 * What ace-status says of a directory: of a spool, who is in which step, who is
 * missing, what was decided; of a device's state, its step, its receipts and
 * its link.
 */
#ifndef ACE_STATUS_H
#define ACE_STATUS_H

#include <stdio.h>

struct err;

struct status_opts {
	FILE *f;
	const char *run;	/* of a spool: this one only; NULL: all */
	int as_json;
	int width;		/* longer lines of text are cut; 0: none is */
};

/* status_look(o, dir, e): says it once.  -ERR_SYS when there is no directory,
 * -ERR_DATA "mismatch: ..." when it is neither a spool nor a state. */
int status_look(const struct status_opts *o, const char *dir, struct err *e);

#endif
