#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static const char *const err_kinds[] = {
	[ERR_CORRUPT] = "corrupt: ", [ERR_TRUNCATED] = "truncated: ",
	[ERR_UNSUPPORTED] = "unsupported: ", [ERR_LIMIT] = "limit: ",
	[ERR_MISMATCH] = "mismatch: "
};
enum { ERR_KINDS = sizeof(err_kinds) / sizeof(err_kinds[0]) };

/* The kind is a part of the format, which is a constant of the program: what
 * is formatted into it is never looked at. */
static int
err_put(struct err *e, int code, const char *fmt, va_list ap)
{
	int k;

	if (e == NULL || e->code != ERR_OK)
		return 0;
	e->code = code;
	for (k = ERR_CORRUPT; k < ERR_KINDS; k++)
		if (strncmp(fmt, err_kinds[k], strlen(err_kinds[k])) == 0) {
			e->kind = (enum err_kind)k;
			fmt += strlen(err_kinds[k]);
			break;
		}
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	return 1;
}

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)err_put(e, code, fmt, ap);
	va_end(ap);
	return -code;
}

int
err_data(struct err *e, uint64_t byte, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (err_put(e, ERR_DATA, fmt, ap)) {
		e->byte = byte;
		e->has_byte = 1;
	}
	va_end(ap);
	return -ERR_DATA;
}

int
err_sys(struct err *e, const char *fmt, ...)
{
	const char *why = strerror(errno);
	va_list ap;

	va_start(ap, fmt);
	if (err_put(e, ERR_SYS, fmt, ap))
		(void)err_after(e, 0, ": %s", why);
	va_end(ap);
	return -ERR_SYS;
}

int
err_before(struct err *e, int r, const char *fmt, ...)
{
	char was[sizeof(e->text)];
	size_t n;
	va_list ap;

	if (e == NULL)
		return r;
	memcpy(was, e->text, sizeof(was));
	va_start(ap, fmt);
	(void)vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	(void)snprintf(e->text + n, sizeof(e->text) - n, "%s", was);
	return r;
}

int
err_after(struct err *e, int r, const char *fmt, ...)
{
	size_t n;
	va_list ap;

	if (e == NULL)
		return r;
	n = strlen(e->text);
	va_start(ap, fmt);
	(void)vsnprintf(e->text + n, sizeof(e->text) - n, fmt, ap);
	va_end(ap);
	return r;
}

int
err_shard(struct err *e, int r, uint64_t shard, const char *device,
    uint64_t step, uint64_t byte)
{
	if (e == NULL)
		return r;
	e->shard = shard;
	e->step = step;
	(void)snprintf(e->device, sizeof(e->device), "%.80s", device);
	e->byte = byte;
	e->has_byte = 1;
	return r;
}

int
err_file(struct err *e, int r, const char *file)
{
	if (e != NULL && e->file[0] == '\0')
		(void)snprintf(e->file, sizeof(e->file), "%.150s", file);
	return r;
}

int
err_move(struct err *e, const struct err *from)
{
	if (e != NULL && e->code == ERR_OK)
		*e = *from;
	return -from->code;
}

void
err_clear(struct err *e)
{
	if (e != NULL)
		*e = (struct err)ERR_INIT;
}

const char *
err_format(const struct err *e, char buf[ERR_LINE])
{
	size_t n;
	char *s;

	(void)snprintf(buf, ERR_LINE, "%s%s", e->kind != ERR_PLAIN ?
	    err_kinds[e->kind] : "", e->text);
	n = strlen(buf);
	if (e->shard != 0)
		n += (size_t)snprintf(buf + n, ERR_LINE - n,
		    ", shard %llu '%s/%llu'", (unsigned long long)e->shard,
		    e->device, (unsigned long long)e->step);
	if (e->has_byte)
		n += (size_t)snprintf(buf + n, ERR_LINE - n,
		    ", at byte %llu", (unsigned long long)e->byte);
	if (e->file[0] != '\0')
		(void)snprintf(buf + n, ERR_LINE - n, ", of '%s'", e->file);
	for (s = buf; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s == 0x7f)
			*s = '?';
	return buf;
}
