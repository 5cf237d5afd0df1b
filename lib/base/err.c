#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

static const char *const err_kinds[] = {
	[ERR_PLAIN] = "", [ERR_CORRUPT] = "corrupt", [ERR_TRUNCATED] = "truncated",
	[ERR_UNSUPPORTED] = "unsupported", [ERR_LIMIT] = "limit",
	[ERR_MISMATCH] = "mismatch"
};
enum { ERR_KINDS = sizeof(err_kinds) / sizeof(err_kinds[0]) };

/* Copy text to e. If it is too long, leave out its middle: a long name is usually there, and
 * the words of the message are at both ends. */
enum { ERR_FORMATTED = 4096 + 800 };
static void
err_keep(struct err *e, const char *text)
{
	const size_t room = sizeof(e->text) - 1, n = strlen(text);
	const size_t half = (room - 3) / 2;

	if (n <= room) {
		memcpy(e->text, text, n + 1);
		return;
	}
	memcpy(e->text, text, half);
	memcpy(e->text + half, "...", 3);
	memcpy(e->text + half + 3, text + n - half, half + 1);
}

/* Set the error and return 1, or return 0 if e is NULL or has an error. Take the kind from
 * the format, which is a constant of the program, never from formatted data. */
static int
err_put(struct err *e, int code, const char *fmt, va_list ap)
{
	char text[ERR_FORMATTED];
	size_t n;
	int k;

	if (e == NULL || e->code != ERR_OK)
		return 0;
	e->code = code;
	for (k = ERR_CORRUPT; k < ERR_KINDS; k++) {
		n = strlen(err_kinds[k]);
		if (strncmp(fmt, err_kinds[k], n) == 0 && strncmp(fmt + n, ": ", 2) == 0) {
			e->kind = (enum err_kind)k;
			fmt += n + 2;
			break;
		}
	}
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	err_keep(e, text);
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
	char text[ERR_FORMATTED];
	size_t n;
	va_list ap;

	if (e == NULL)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text) - sizeof(e->text), fmt, ap);
	va_end(ap);
	n = strlen(text);
	memcpy(text + n, e->text, strlen(e->text) + 1);
	err_keep(e, text);
	return r;
}

int
err_after(struct err *e, int r, const char *fmt, ...)
{
	char text[ERR_FORMATTED];
	size_t n;
	va_list ap;

	if (e == NULL)
		return r;
	n = (size_t)snprintf(text, sizeof(text), e->has_byte && e->shard == 0 && *fmt ==
	    ':' ? "%s, at byte %llu" : "%s", e->text, (unsigned long long)e->byte);
	e->has_byte &= e->shard != 0 || *fmt != ':';
	va_start(ap, fmt);
	(void)vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	err_keep(e, text);
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
	const size_t most = sizeof(e->file) - 1, n = file != NULL ? strlen(file) : 0;

	/* of a long path the end has the file's name */
	if (e != NULL && file != NULL && e->file[0] == '\0')
		(void)snprintf(e->file, sizeof(e->file), "%s%s", n > most ? "..." : "",
		    n > most ? file + n - most + 3 : file);
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
err_kind_name(const struct err *e)
{
	return e->upstream ? "upstream" : err_kinds[e->kind];
}

const char *
err_format(const struct err *e, char buf[ERR_LINE])
{
	size_t n, k;

	(void)snprintf(buf, ERR_LINE, "%s%s%s", err_kinds[e->kind],
	    e->kind != ERR_PLAIN ? ": " : "", e->text);
	n = strlen(buf);
	if (e->shard != 0)
		n += (size_t)snprintf(buf + n, ERR_LINE - n,
		    ", shard %llu '%s/%llu'", (unsigned long long)e->shard,
		    e->device, (unsigned long long)e->step);
	if (e->has_byte)
		n += (size_t)snprintf(buf + n, ERR_LINE - n,
		    ", at byte %llu", (unsigned long long)e->byte);
	/* many texts begin with the name already */
	k = strlen(e->file);
	if (k != 0 && (e->text[0] != '\'' || strncmp(e->text + 1, e->file, k) != 0 ||
	    e->text[k + 1] != '\''))
		(void)snprintf(buf + n, ERR_LINE - n, ", file '%s'", e->file);
	bytes_clean(buf);
	return buf;
}
