#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/io.h"
#include "format/text.h"
#include "model/receivers.h"

#define RECEIVERS_FILE "models"
#define RECEIVERS_LOCK "models-lock"

enum { RECEIVERS_BYTES = 1 << 24, RECEIVERS_FIXED = 256 };

int
receivers_there(const char *dir)
{
	char *path = alloc_path(dir, RECEIVERS_FILE, NULL);
	const int there = path != NULL && faccessat(AT(path), F_OK, 0) == 0;

	alloc_free(path);
	return there;
}

int
receivers_name(const char *name, struct err *e)
{
	const size_t n = strlen(name);

	return n > 0 && n <= SHARD_NAME && text_clean(name, n) ? 0 :
	    err_set(e, ERR_USAGE, "'%.80s' is not a receiver's name: expected "
	    "1 to %d bytes of UTF-8 without control characters", name, SHARD_NAME);
}

struct receivers_line *
receivers_line(struct receivers *b, const char *name, struct err *e)
{
	struct receivers_line *l;
	size_t i = 0;

	if (receivers_name(name, e) < 0)
		return NULL;
	while (i < b->n && strcmp(b->p[i].name, name) < 0)
		i++;
	if (i < b->n && strcmp(b->p[i].name, name) == 0)
		return &b->p[i];
	if (alloc_grow(&b->p, &b->cap, b->n + 1, sizeof(*b->p), e) < 0)
		return NULL;
	l = &b->p[i];
	memmove(l + 1, l, (b->n - i) * sizeof(*l));
	memset(l, 0, sizeof(*l));
	b->n++;
	hash_128(name, strlen(name), l->id);
	return (l->name = alloc_dup(name, e)) != NULL ? l : NULL;
}

/* ---- the file ---- */

static int
receivers_get(struct receivers *b, const char *text, struct err *e)
{
	char has[MODEL_HEX], sent[MODEL_HEX];
	struct receivers_line l, *to;
	int at = 0;

	if (sscanf(text, "has %32s %" SCNu64 " %" SCNu64 " sent %32s %" SCNu64
	    " %" SCNu64 "%n", has, &l.has.step, &l.has.time, sent,
	    &l.sent.step, &l.sent.time, &at) != 6 || text[at] != ' ' ||
	    !model_unhex(has, l.has.hash) || !model_unhex(sent, l.sent.hash) ||
	    (to = receivers_line(b, text + at + 1, e)) == NULL)
		return e != NULL && e->code == ERR_SYS ? -ERR_SYS : 0;
	to->has = l.has;
	to->sent = l.sent;
	return 1;
}

static int
receivers_read(struct receivers *b, const char *path, struct err *e)
{
	char *text = alloc_get(RECEIVERS_BYTES + 2, 1, e), *rest, *line;
	struct err own = ERR_INIT;
	unsigned at = 0;
	int r = text != NULL ? io_text(path, text, RECEIVERS_BYTES + 2, e) : -ERR_SYS;

	if (r > 0)
		r = strlen(text) <= RECEIVERS_BYTES ? 0 : err_set(e, ERR_DATA, "limit: "
		    "'%s' has more than 16 MiB: remove lines of old receivers", path);
	for (rest = text; r == 0 && (line = strsep(&rest, "\n")) != NULL &&
	    (rest != NULL || *line != '\0');) {
		at++;
		if (receivers_get(b, line, &own) <= 0)
			r = own.code == ERR_SYS ? err_move(e, &own) :
			    err_set(e, ERR_DATA, "corrupt: '%s', line %u does not "
			    "describe a receiver: remove that line, and the receiver "
			    "is asked which model it has", path, at);
	}
	alloc_free(text);
	return r;
}

int
receivers_open(struct receivers *b, const char *dir, int alone, struct err *e)
{
	char path[STATE_PATH];
	int r = statedir_open(&b->s, dir, e);

	if (r < 0 || (alone && (r = statedir_lock_as(&b->s, RECEIVERS_LOCK, 1, e)) < 0))
		return r;
	return receivers_read(b, statedir_path(&b->s, RECEIVERS_FILE, path), e);
}

void
receivers_close(struct receivers *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		alloc_free(b->p[i].name);
	alloc_free(b->p);
	statedir_close(&b->s);
	*b = (struct receivers)RECEIVERS_INIT;
}

int
receivers_save(const struct receivers *b, struct err *e)
{
	char line[RECEIVERS_FIXED + SHARD_NAME], has[MODEL_HEX], sent[MODEL_HEX];
	char path[STATE_PATH];
	struct io *io = NULL;
	size_t i;
	int n, r = io_create(&io, statedir_path(&b->s, RECEIVERS_FILE, path), 1, e);

	for (i = 0; i < b->n && r == 0; i++) {
		shard_hex(b->p[i].has.hash, has);
		shard_hex(b->p[i].sent.hash, sent);
		n = snprintf(line, sizeof(line), "has %s %" PRIu64 " %" PRIu64
		    " sent %s %" PRIu64 " %" PRIu64 " %s\n", has,
		    b->p[i].has.step, b->p[i].has.time, sent,
		    b->p[i].sent.step, b->p[i].sent.time, b->p[i].name);
		r = io_write(io, line, (size_t)n, e);
	}
	if (r == 0 && (r = statedir_durable(&b->s, e)) == 0)
		r = io_commit(io, IO_SYNC_FULL, e);
	io_free(io);
	return r;
}

/* ---- receipts ---- */

void
receivers_receipt(struct receipt *r, const char *name,
    const unsigned char hash[MODEL_HASH])
{
	hash_128(name, strlen(name), r->device);
	shard_hex(hash, r->reason);
}

int
receivers_take(struct receivers *b, const struct receipt *r,
    const struct receivers_line **line, struct err *e)
{
	unsigned char hash[MODEL_HASH];
	struct receivers_line *l = NULL;
	size_t i;

	for (i = 0; i < b->n && l == NULL; i++)
		if (memcmp(b->p[i].id, r->device, SHARD_ID) == 0)
			l = &b->p[i];
	*line = l;
	if (l == NULL || !model_unhex(r->reason, hash))
		return 0;
	memcpy(l->has.hash, hash, MODEL_HASH);
	l->has.step = r->version;
	l->has.time = (uint64_t)time(NULL);
	return receivers_save(b, e) < 0 ? -ERR_SYS : 1;
}
