#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static void
err_clean(char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s == 0x7f)
			*s = '?';
}

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e == NULL || e->msg[0] != '\0')
		return -code;
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	err_clean(e->msg);
	return -code;
}

int
err_sys(struct err *e, const char *fmt, ...)
{
	const char *why = strerror(errno);
	size_t n;
	va_list ap;

	if (e == NULL || e->msg[0] != '\0')
		return -ERR_SYS;
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	(void)snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", why);
	err_clean(e->msg);
	return -ERR_SYS;
}

void
err_clear(struct err *e)
{
	if (e != NULL) {
		e->msg[0] = '\0';
		e->quiet = 0;
	}
}
