#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "device/feedback.h"
#include "sync/compensate.h"

#define FEEDBACK_CACHE_FILE "history"

/*
 * The receiver keeps what it reconstructed last, h.  A shard says which h it
 * is a difference to, so a lost or doubled shard is noticed, never summed.
 */
struct feedback_cache {
	struct statedir state;
	struct dense h;
	struct writer *next;
	int active, replay;	/* replay: this very shard was applied before */
	struct compensate how;
	float *r;		/* the group at hand */
	size_t cap;
};

int
feedback_cache_open(struct feedback_cache **out, const char *dir, struct err *e)
{
	struct feedback_cache *c = alloc_get(1, sizeof(*c), e);
	int k;

	*out = NULL;
	if (c == NULL)
		return -ERR_SYS;
	c->state = (struct statedir)STATE_INIT;
	c->how.kern = kern_get(e);
	k = c->how.kern != NULL ? 0 : -ERR_USAGE;
	if (k < 0 || (k = statedir_open(&c->state, dir, e)) < 0 ||
	    (k = statedir_lock(&c->state, e)) < 0) {
		feedback_cache_free(c);
		return k;
	}
	*out = c;
	return 0;
}

static void
feedback_cache_drop(struct feedback_cache *c)
{
	dense_close(&c->h);
	writer_free(c->next);
	c->next = NULL;
	c->active = c->replay = 0;
}

void
feedback_cache_free(struct feedback_cache *c)
{
	if (c == NULL)
		return;
	feedback_cache_drop(c);
	statedir_close(&c->state);
	alloc_free(c->r);
	alloc_free(c);
}

static int
feedback_cache_how(struct feedback_cache *c, const char *how, struct err *e)
{
	char *end;
	double d;

	c->how.kind = strcmp(how, "ef21") == 0 ? COMPENSATE_EF21 :
	    COMPENSATE_CACHE;
	if (c->how.kind == COMPENSATE_EF21)
		return 0;
	if (strncmp(how, "cache:", 6) != 0)
		return err_set(e, ERR_DATA, "unsupported: feedback '%.40s'",
		    how);
	d = strtod(how + 6, &end);
	if (*end != '\0' || end == how + 6 || !(d >= 0 && d <= 1))
		return err_set(e, ERR_DATA, "corrupt: feedback '%.40s'", how);
	c->how.rho = (float)d;
	return 0;
}

int
feedback_cache_begin(struct feedback_cache *c, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	const char *how = text_get(&sh->kv, SHARD_KEY_PREDICT);
	const char *base = text_get(&sh->kv, SHARD_KEY_HISTORY);
	int k;

	feedback_cache_drop(c);
	if ((sh->flags & SHARD_PREDICTED) == 0)
		return 0;
	if (how == NULL || base == NULL)
		return err_set(e, ERR_DATA,
		    "corrupt: a difference that does not say to what");
	if ((k = feedback_cache_how(c, how, e)) < 0 ||
	    (k = dense_open(&c->h, &c->state, FEEDBACK_CACHE_FILE,
	    SHARD_HISTORY, e)) < 0 ||
	    (k = dense_check(&c->h, sh, sc, e)) < 0)
		return k;
	if (strcmp(base, c->h.stamp) != 0) {
		c->replay = c->h.r != NULL &&
		    reader_shard(c->h.r)->step == sh->step;
		if (!c->replay)
			return err_set(e, ERR_REFUSED, "step %llu of '%s' is a "
			    "difference to another history than '%s' holds",
			    (unsigned long long)sh->step, shard_device(sh),
			    c->state.dir);
	}
	if (sc->group_size > c->cap) {
		alloc_free(c->r);
		c->cap = 0;
		c->r = alloc_get(sc->group_size, sizeof(*c->r), e);
		if (c->r == NULL)
			return -ERR_SYS;
		c->cap = sc->group_size;
	}
	c->active = 1;
	if (!c->replay && (k = dense_create(&c->next, &c->state,
	    FEEDBACK_CACHE_FILE, sh, SHARD_HISTORY, NULL, sc, e)) < 0)
		return k;
	return 1;
}

int
feedback_cache_group(struct feedback_cache *c, uint32_t g, int sent, float *x,
    size_t n, struct err *e)
{
	const float *h;
	int k;

	if (!c->active)
		return 0;
	if ((k = dense_group(&c->h, g, &h, e)) < 0)
		return k;
	if (h == NULL) {
		memset(c->r, 0, n * sizeof(*c->r));
		h = c->r;
	}
	if (c->replay)
		memcpy(x, h, n * sizeof(*x));
	else
		compensate_receive(&c->how, h, sent, x, n);
	return c->replay ? 0 : dense_put(c->next, g, x, n, e);
}

int
feedback_cache_commit(struct feedback_cache *c, enum io_sync sync,
    struct err *e)
{
	int k = 0;

	if (c->active && !c->replay && (k = writer_send(c->next, NULL, e)) == 0)
		k = writer_end(c->next, sync, e);
	if (k == 0 && sync == IO_SYNC_FULL)
		k = statedir_durable(&c->state, e);
	feedback_cache_drop(c);
	return k;
}
