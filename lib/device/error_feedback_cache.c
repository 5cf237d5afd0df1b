#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/scan.h"
#include "device/error_feedback.h"
#include "sync/compensate.h"

#define CACHE_REMOVE " (remove the file"
#define CACHE_ANEW "a new state or, for a device that keeps receipts, ace-ack --restart"

/* The receiver keeps at least its last reconstruction h and the previous one. A shard names the h
 * to which it is a difference, so that a lost or repeated shard is detected and not
 * added. The previous h is needed if a shard is sent again. */
struct feedback_cache {
	struct statedir state;
	struct feedback_history y;
	char was[CACHE_NAME], is[CACHE_NAME];	/* file names of h and of the next h */
	const char *want;	/* stamp of the required h */
	const struct shard *of;	/* the current shard */
	const struct schema *model;
	uint64_t newest;	/* step of the newest file */
	char stamp[DENSE_STAMP];	/* stamp of the newest file; "": none */
	int lent;		/* 1: y.next writes to the caller's io */
};

/* ---- both sides ---- */

int
feedback_history_group(struct feedback_history *q, const struct schema *sc,
    uint32_t g, int sent, float *x, size_t n, struct err *e)
{
	const float *h = NULL;
	int k;

	if (!schema_exact_group(sc, g) && (k = dense_group(&q->h, g, &h, e)) < 0)
		return k;
	if (!sent && h != NULL)
		compensate_absent(q->rho, h, x, n);
	else if (!sent)
		memset(x, 0, n * sizeof(*x));
	return dense_put(q->next, g, x, n, e);
}

void
feedback_history_close(struct feedback_history *q)
{
	dense_close(&q->h);
	writer_free(q->next);
	q->next = NULL;
}

/* ---- the receiver's side ---- */

int
feedback_cache_open(struct feedback_cache **out, const char *dir, int lock,
    struct err *e)
{
	struct feedback_cache *c = alloc_get(1, sizeof(*c), e);
	int k;

	*out = c;
	if (c == NULL)
		return -ERR_SYS;
	c->state = (struct statedir)STATE_INIT;
	if (!lock)
		return (c->state.dir = alloc_dup(dir, e)) != NULL ? 0 : -ERR_SYS;
	k = statedir_open(&c->state, dir, e);
	return k == 0 ? statedir_lock(&c->state, STATE_LOCK, e) : k;
}

void
feedback_cache_free(struct feedback_cache *c)
{
	if (c == NULL)
		return;
	feedback_history_close(&c->y);
	statedir_close(&c->state);
	alloc_free(c);
}

int
feedback_cache_how(float *rho, const struct shard *sh, const char **base,
    struct err *e)
{
	const char *how = text_get(&sh->kv, SHARD_KEY_PREDICT);
	const unsigned long long step = sh->step;
	double d;

	*base = text_get(&sh->kv, SHARD_KEY_HISTORY);
	if (how == NULL || *base == NULL)
		return err_set(e, ERR_DATA, "corrupt: step %llu of '%.80s' is a difference, but "
		    "lacks key %s", step, shard_device(sh), how == NULL ? SHARD_KEY_PREDICT :
		    SHARD_KEY_HISTORY);
	if (strncmp(how, "cache:", 6) != 0)
		return err_set(e, ERR_DATA, "unsupported: step %llu of '%.80s' is a difference of "
		    "form '%.40s', expected cache:R (ace-patch applies '" SHARD_PREDICT_PATCH "')",
		    step, shard_device(sh), how);
	if (num_f64(&d, how + 6, 0, 1, "", NULL) < 0)
		return err_set(e, ERR_DATA, "corrupt: key " SHARD_KEY_PREDICT " of step %llu of "
		    "'%.80s' is '%.40s', expected cache:R with R from 0 to 1", step,
		    shard_device(sh), how);
	*rho = (float)d;
	return 0;
}

/* Return 1, with the file open, if the file is the required history. Otherwise return 0,
 * and note the file in c if it is the newest so far. */
static int
feedback_cache_is(void *arg, const char *path, const char *name, struct err *e)
{
	struct feedback_cache *c = arg;
	struct dense *h = &c->y.h;
	unsigned long long step;
	int k, n = 0;

	if (sscanf(name, DENSE_HISTORY "%n", &step, &n) != 1 || name[n] != '\0' ||
	    n >= CACHE_NAME)
		return 0;
	if ((k = dense_open(h, &c->state, name, SHARD_HISTORY, c->lent ?
	    CACHE_REMOVE ")" : CACHE_REMOVE "; on the device, continue with "
	    CACHE_ANEW ")", e)) < 0 ||
	    (k = dense_check(h, c->of, c->model, e)) < 0)
		return k;
	if (h->r != NULL && strcmp(h->stamp, c->want) == 0) {
		(void)snprintf(c->was, sizeof(c->was), "%s", name);
		return 1;
	}
	if (h->r != NULL && (c->stamp[0] == '\0' || step > c->newest)) {
		c->newest = step;
		memcpy(c->stamp, h->stamp, sizeof(c->stamp));
	}
	dense_close(h);
	return 0;
}

/* Open the history to which a shard is a difference. If the shard needs none, h is all
 * zeros; a sender may begin with zeros again at any step from the newest file's on. */
static int
feedback_cache_find(struct feedback_cache *c, const struct shard *sh, struct err *e)
{
	const int none = strcmp(c->want, "none") == 0;
	char has[64] = "no history";
	int k;

	c->was[0] = c->stamp[0] = '\0';
	if ((k = scan(c->state.dir, 0, feedback_cache_is, c, e)) != 0)
		return k < 0 ? k : 0;
	if (none && (c->stamp[0] == '\0' ||
	    c->newest <= sh->step))
		return 0;
	if (c->stamp[0] != '\0')
		(void)snprintf(has, sizeof(has), "history %.8s of step %llu", c->stamp,
		    (unsigned long long)c->newest);
	return err_set(e, ERR_REFUSED, "step %llu %s%.8s, but this receiver has %s: %s a new "
	    "history with step %llu", (unsigned long long)sh->step, none ?
	    "begins a history" : "is a difference to history ", none ? "" : c->want, has,
	    c->lent ? "the device begins" : none ? "for a new run, give another --cache; "
	    "for the same run, on the device, " CACHE_ANEW " begins" :
	    "on the device, " CACHE_ANEW " begins",
	    1 + (unsigned long long)(c->stamp[0] != '\0' && c->newest > sh->step ?
	    c->newest : sh->step));
}

int
feedback_cache_begin(struct feedback_cache *c, const struct shard *sh,
    const struct schema *sc, struct io *to, struct err *e)
{
	int k;

	feedback_history_close(&c->y);
	c->lent = to != NULL;
	if ((sh->flags & SHARD_PREDICTED) == 0)
		return 0;
	c->of = sh;
	c->model = sc;
	if ((k = feedback_cache_how(&c->y.rho, sh, &c->want, e)) < 0 ||
	    (k = feedback_cache_find(c, sh, e)) < 0) {
		io_free(to);
		return k;
	}
	(void)snprintf(c->is, sizeof(c->is), DENSE_HISTORY,
	    (unsigned long long)sh->step);
	k = to != NULL ? dense_begin(&c->y.next, to, &c->state, sh,
	    SHARD_HISTORY, NULL, sc, e) : dense_create(&c->y.next, &c->state,
	    c->is, sh, SHARD_HISTORY, NULL, sc, e);
	return k < 0 ? k : 1;
}

int
feedback_cache_group(struct feedback_cache *c, uint32_t g, int sent, float *x,
    size_t n, struct err *e)
{
	return c->y.next == NULL ? 0 :
	    feedback_history_group(&c->y, c->model, g, sent, x, n, e);
}

int
feedback_cache_commit(struct feedback_cache *c, enum io_sync sync, struct err *e)
{
	struct writer *w = c->y.next;
	int k = 0;

	/* Leave the file open until the next shard: until the caller renames a file in its io,
	 * only the file's lock shows that it is not a leftover. */
	if (w != NULL && (k = writer_send(w, NULL, e)) == 0)
		k = c->lent ? writer_finish(w, e) : writer_end(w, sync, e);
	if (k < 0 || c->lent)
		return k;
	if (w != NULL)
		feedback_cache_prune(c, UINT64_MAX);
	return sync == IO_SYNC_FULL ? statedir_durable(&c->state, e) : 0;
}

void
feedback_cache_prune(const struct feedback_cache *c, uint64_t last)
{
	statedir_prune(&c->state, last, c->is, c->was);
}
