#include <string.h>

#include "base/cli.h"
#include "base/err.h"
#include "format/frame.h"
#include "format/reader.h"
#include "pipe/sign.h"
#include "stage/stage.h"
#include "stage/stage_sign.h"

struct stage_sign {
	struct stage s;
	const struct stage_sign_opts *o;
	struct sign_sum *sum;
	struct sign_key *key;
	struct sign_ring *ring;
	struct stage_shard sh;
	int signed_by;		/* 1: a valid signature was seen */
};

static int
stage_sign_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct stage_sign *x = (struct stage_sign *)s;
	int r;

	x->sh = *sh;
	x->signed_by = 0;
	if ((r = sign_sum_begin(x->sum, sh->shard, sh->schema, e)) < 0)
		return r;
	return stage_begin(s->next, sh, e);
}

/* Add a frame to the signed data.  No frame may follow the signature, because it would
 * look signed, too. */
static int
stage_sign_frame(struct stage_sign *x, const struct reader *in, struct err *e)
{
	const struct chain_frame *f = reader_frame(in);

	if (x->signed_by)
		return reader_place(in, err_set(e, ERR_DATA, "mismatch: a frame "
		    "follows the signature, which must be the last"), e);
	sign_sum_add(x->sum, f->type, f->raw, f->raw_len);
	return 0;
}

static int
stage_sign_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	int r = stage_sign_frame((struct stage_sign *)s, d->whole, e);

	return r < 0 ? r : stage_data(s->next, d, e);
}

static int
stage_sign_check(struct stage_sign *x, const struct stage_note *n, struct err *e)
{
	const char *device = shard_device(x->sh.shard);
	char who[SIGN_WHO + 1];
	int r = sign_check(x->ring, device, x->sum, n->p, n->n, e);

	if (r < 0)
		return reader_place(x->sh.in, r, e);
	x->signed_by = 1;
	sign_who(n->p, who);
	cli_say(x->o->f->cli, 1, "%s: signed with %s...", STAGE_NAME(&x->sh), who);
	return 0;
}

static int
stage_sign_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	struct stage_sign *x = (struct stage_sign *)s;
	int r;

	if (n->type != FRAME_SIGN)
		r = stage_sign_frame(x, n->whole, e);
	else if (x->key != NULL)
		return 0;	/* drop an older signature: ours replaces it */
	else if (x->signed_by)
		r = stage_sign_frame(x, n->whole, e);
	else
		r = stage_sign_check(x, n, e);
	return r < 0 ? r : stage_note(s->next, n, e);
}

static int
stage_sign_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	struct stage_sign *x = (struct stage_sign *)s;
	unsigned char p[SIGN_SIZE];
	int r = 0;

	if (x->key != NULL) {
		sign_make(x->key, x->sum, p);
		r = stage_make(s->next, FRAME_SIGN, p, sizeof(p), e);
	} else if (!x->signed_by) {
		r = err_set(e, ERR_REFUSED, "the shard of '%s', step %llu, is not "
		    "signed: let its device sign it, with ace-sign -k as the last "
		    "program", shard_device(x->sh.shard),
		    (unsigned long long)x->sh.shard->step);
	}
	return r < 0 ? r : stage_end(s->next, sums, e);
}

static void
stage_sign_free(struct stage *s)
{
	struct stage_sign *x = (struct stage_sign *)s;

	sign_sum_free(x->sum);
	sign_key_free(x->key);
	sign_ring_free(x->ring);
}

const struct opt stage_sign_rows[] = {
	{ 'k', "key", "FILE", "sign with the Ed25519 key in FILE (PEM)",
	    OPT_PATH(struct stage_sign_opts, key, OPT_READ) },
	{ 0, "check", "FILE",
	    "pass only shards signed by a key in FILE (NAME KEY lines)",
	    OPT_PATH(struct stage_sign_opts, ring, OPT_READ) },
	OPT_END
};

static int
stage_sign_make(struct stage *s, void *opts, const struct filter *f, struct err *e)
{
	struct stage_sign_opts *o = opts;
	struct stage_sign *x = (struct stage_sign *)s;

	if ((o->key != NULL) == (o->ring != NULL))
		return err_set(e, ERR_USAGE, "%s", o->key != NULL ? "--key and --check exclude "
		    "each other: give one" : "expected one of --key and --check");
	o->f = f;
	x->o = o;
	if (o->key != NULL)
		x->key = sign_key_read(o->key, e);
	else
		x->ring = sign_ring_read(o->ring, e);
	if (x->key != NULL || x->ring != NULL)
		x->sum = sign_sum_new(e);
	return x->sum != NULL ? 0 : -(int)e->code;
}

const struct stage_kind stage_sign = {
	.size = sizeof(struct stage_sign),
	.values = STAGE_READS,
	.make = stage_sign_make,
	.begin = stage_sign_begin,
	.data = stage_sign_data,
	.note = stage_sign_note,
	.end = stage_sign_end,
	.free = stage_sign_free
};
