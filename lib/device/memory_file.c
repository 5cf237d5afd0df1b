#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "device/memory.h"
#include "format/reader.h"
#include "format/writer.h"
#include "pipe/filter.h"

/* "score.before": not in the way of those names that end with a step */
#define MEMORY_BEFORE ".before"
enum { MEMORY_NAME = 64 };

static int
memory_alone(const char *name)
{
	return strcmp(name, MEMORY_LINK) == 0;
}

/* ---- reading ---- */

/* The name of the memory that r stands at. */
static int
memory_name(const struct reader *r, const char **name, struct err *e)
{
	const struct shard *sh = reader_shard(r);

	if (sh->kind != SHARD_HISTORY)
		return err_set(e, ERR_DATA, "corrupt: no history");
	*name = text_get(&sh->kv, MEMORY_KEY);
	return *name != NULL ? 0 : err_set(e, ERR_DATA,
	    "corrupt: a memory without a name");
}

static int
memory_open(struct reader **r, const char *path, struct err *e)
{
	struct io *io;
	int k = io_open_kept(&io, path, e);

	if (k <= 0)
		return k;
	k = reader_open(r, io, NULL, e);
	return k < 0 ? k : 1;
}

/* All of the file is read, and its end seen, whatever is asked for. */
static int
memory_find(struct memory *h, struct reader *r, const char *name, struct err *e)
{
	const char *at;
	int k, found = 0;

	while ((k = reader_to_shard(r, e)) > 0) {
		if ((k = memory_name(r, &at, e)) < 0)
			return k;
		if (strcmp(at, name) != 0)
			continue;
		if (found)
			return err_set(e, ERR_DATA, "corrupt: two memories '%s'",
			    name);
		if ((k = memory_read(h, r, e)) < 0)
			return k;
		found = 1;
	}
	return k < 0 ? k : found;
}

static int
memory_only(struct memory *h, struct reader *r, struct err *e)
{
	int k = reader_to_shard(r, e);

	if (k == 0 || (k > 0 && reader_shard(r)->kind != SHARD_HISTORY))
		k = err_set(e, ERR_DATA, "corrupt: no history");
	if (k < 0 || (k = memory_read(h, r, e)) < 0)
		return k;
	if ((k = reader_next(r, e)) > 0)
		k = err_set(e, ERR_DATA, "corrupt: more than one history");
	return k < 0 ? k : 1;
}

/* name NULL: the only one in the file. */
static int
memory_from(struct memory *h, const struct statedir *s, const char *file,
    const char *name, struct err *e)
{
	char *path = statedir_path(s, file, e);
	struct reader *r = NULL;
	int k;

	*h = (struct memory)MEMORY_INIT;
	if (path == NULL)
		return -ERR_SYS;
	if ((k = memory_open(&r, path, e)) > 0)
		k = name != NULL ? memory_find(h, r, name, e) :
		    memory_only(h, r, e);
	if (k < 0)
		memory_release(h);
	if (k == -ERR_DATA && e != NULL && e->kind == ERR_TRUNCATED) {
		/* a power cut leaves such: it was not synced */
		err_clear(e);
		k = 0;
	}
	if (k == -ERR_DATA)
		k = err_file(e, k, path);
	h->file = file;
	reader_free(r);
	alloc_free(path);
	return k;
}

int
memory_load(struct memory *h, const struct statedir *s, const char *name,
    struct err *e)
{
	int k;

	if (!memory_alone(name) &&
	    (k = memory_from(h, s, MEMORY_FILE, name, e)) != 0)
		return k;
	return memory_from(h, s, name, NULL, e);
}

int
memory_before(struct memory *h, const struct statedir *s, const char *name,
    uint64_t step, struct err *e)
{
	char before[MEMORY_NAME];
	int k = memory_load(h, s, name, e);

	if (k <= 0 || h->step != step)
		return k;
	memory_release(h);
	(void)snprintf(before, sizeof(before), "%s" MEMORY_BEFORE, name);
	if ((k = memory_load(h, s, before, e)) > 0 && h->step == step) {
		memory_release(h);
		k = 0;
	}
	return k;
}

/* ---- what is to be saved ---- */

static void
memory_part_release(struct memory_part *p)
{
	alloc_free(p->name);
	memory_release(&p->h);
}

void
memories_release(struct memories *m)
{
	while (m->n > 0)
		memory_part_release(&m->p[--m->n]);
	alloc_free(m->p);
	*m = (struct memories){ 0 };
}

/* What h holds is m's from now on, in the place of what it had of that name. */
static int
memories_put(struct memories *m, const char *name, struct memory *h,
    struct err *e)
{
	struct memory_part new = { alloc_dup(name, e), *h, 0 };
	size_t i = 0;

	if (new.name == NULL || alloc_grow(&m->p, &m->cap, m->n + 1,
	    sizeof(*m->p), e) < 0) {
		alloc_free(new.name);
		return -ERR_SYS;
	}
	*h = (struct memory)MEMORY_INIT;
	while (i < m->n && strcmp(m->p[i].name, name) < 0)
		i++;
	if (i < m->n && strcmp(m->p[i].name, name) == 0)
		memory_part_release(&m->p[i]);
	else {
		memmove(&m->p[i + 1], &m->p[i], (m->n - i) * sizeof(*m->p));
		m->n++;
	}
	m->p[i] = new;
	return 0;
}

/* ---- writing ---- */

/* What the file has, and what is new, both in the order of their names. */
static int
memory_merge(struct memories *m, struct reader *r, struct writer *w,
    struct err *e)
{
	const char *name;
	size_t i = 0;
	int k, c;

	do {
		name = NULL;
		if ((k = r != NULL ? reader_to_shard(r, e) : 0) < 0 ||
		    (k > 0 && (k = memory_name(r, &name, e)) < 0))
			return k;
		for (c = -1; i < m->n && c < 0; i += c <= 0) {
			c = name != NULL ? strcmp(m->p[i].name, name) : -1;
			m->p[i].known = c == 0;
			if (c <= 0 && (k = memory_write(&m->p[i].h, w,
			    m->p[i].name, e)) < 0)
				return k;
		}
		if (name != NULL && c != 0 && (k = filter_copy(r, w, e)) < 0)
			return k;
	} while (name != NULL);
	return 0;
}

/* The lock of the file, for as long as it takes to write it. */
static int
memory_lock(const struct statedir *s, int *fd, struct err *e)
{
	char *path = statedir_path(s, MEMORY_FILE ".lock", e);
	int r = 0;

	if (path == NULL)
		return -ERR_SYS;
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*fd < 0)
		r = err_sys(e, "'%s'", path);
	while (r == 0 && flock(*fd, LOCK_EX) < 0)
		if (errno != EINTR)
			r = err_sys(e, "'%s'", path);
	alloc_free(path);
	return r;
}

/* Those that had files of their own are in the file now. */
static void
memory_forget(const struct statedir *s, const struct memories *m)
{
	char *path;
	size_t i;

	for (i = 0; i < m->n; i++) {
		if (m->p[i].known ||
		    (path = statedir_path(s, m->p[i].name, NULL)) == NULL)
			continue;
		(void)unlink(path);
		alloc_free(path);
	}
}

static int
memory_renew(const char *path, struct memories *m, int merge, struct err *e)
{
	struct reader *r = NULL;
	struct writer *w = NULL;
	int k = 0;

	if ((!merge || (k = memory_open(&r, path, e)) >= 0) &&
	    (k = writer_file(&w, path, "state", e)) == 0 &&
	    (k = memory_merge(m, r, w, e)) == 0)
		k = writer_end(w, IO_SYNC_RENAME, e);
	reader_free(r);
	writer_free(w);
	return k;
}

/* A file that cannot be read is begun anew: a power cut may leave such, and who
 * needs what it held has refused it before. */
static int
memory_commit(const struct statedir *s, struct memories *m, struct err *e)
{
	char *path = statedir_path(s, MEMORY_FILE, e);
	int r = -ERR_SYS, fd = -1;

	if (path != NULL && (r = memory_lock(s, &fd, e)) == 0 &&
	    (r = memory_renew(path, m, 1, e)) == -ERR_DATA) {
		err_clear(e);
		r = memory_renew(path, m, 0, e);
	}
	if (r == 0)
		memory_forget(s, m);
	if (fd >= 0)
		(void)close(fd);
	memories_release(m);
	alloc_free(path);
	return r;
}

int
memory_flush(const struct statedir *s, struct err *e)
{
	return s->later == NULL || s->later->n == 0 ? 0 :
	    memory_commit(s, s->later, e);
}

static int
memory_save_alone(const struct memory *h, const struct statedir *s,
    const char *name, struct err *e)
{
	char *path = statedir_path(s, name, e);
	struct writer *w = NULL;
	int k = -ERR_SYS;

	if (path != NULL && (k = writer_file(&w, path, "state", e)) == 0 &&
	    (k = memory_write(h, w, NULL, e)) == 0)
		k = writer_end(w, IO_SYNC_RENAME, e);
	writer_free(w);
	alloc_free(path);
	return k;
}

/* before: what was known before, or NULL; both are empty then. */
static int
memory_put_away(struct memory *h, struct memory *before,
    const struct statedir *s, const char *name, struct err *e)
{
	struct memories now = { 0 }, *m = s->later != NULL ? s->later : &now;
	char old[MEMORY_NAME];
	int r;

	(void)snprintf(old, sizeof(old), "%s" MEMORY_BEFORE, name);
	if ((r = memories_put(m, name, h, e)) == 0 && before != NULL)
		r = memories_put(m, old, before, e);
	if (r == 0 && m == &now)
		r = memory_commit(s, m, e);
	memories_release(&now);
	return r;
}

/* Of which shard it is. */
static int
memory_of(struct memory *h, const struct shard *sh, struct err *e)
{
	struct shard of;
	int r;

	shard_init(&of);
	of.kv = h->kv;
	r = shard_same(&of, sh, e);
	h->kv = of.kv;
	memcpy(h->run, of.run, SHARD_ID);
	memcpy(h->device, of.device, SHARD_ID);
	h->step = sh->step;
	return r;
}

int
memory_save(struct memory *h, const struct statedir *s, const char *name,
    const struct shard *sh, struct err *e)
{
	int r = sh != NULL ? memory_of(h, sh, e) : 0;

	if (r == 0)
		r = memory_alone(name) ? memory_save_alone(h, s, name, e) :
		    memory_put_away(h, NULL, s, name, e);
	memory_release(h);
	return r;
}

int
memory_save_again(struct memory *h, const struct statedir *s, const char *name,
    const struct shard *sh, struct err *e)
{
	struct memory before;
	int r;

	if ((r = memory_of(h, sh, e)) == 0 &&
	    (r = memory_before(&before, s, name, sh->step, e)) >= 0) {
		r = memory_put_away(h, r > 0 ? &before : NULL, s, name, e);
		memory_release(&before);
	}
	memory_release(h);
	return r;
}
