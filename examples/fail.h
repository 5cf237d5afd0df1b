/* Set e's code and its message: what failed, with which name, and for code 4 also errno's
 * text.  Return -code. */
#ifndef FAIL_H
#define FAIL_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <aceg.h>

static inline int
fail(struct ace_error *e, int code, const char *what, const char *name)
{
	e->code = code;
	(void)snprintf(e->message, sizeof e->message, "%s '%s'%s%s", what,
	    name, code == 4 ? ": " : "", code == 4 ? strerror(errno) : "");
	return -code;
}

#endif
