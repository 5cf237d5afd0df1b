#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/scan.h"
#include "format/array.h"
#include "format/keys.h"
#include "format/reader.h"
#include "kern/kern.h"
#include "spool/admit.h"
#include "spool/inbox.h"
#include "spool/ledger.h"
#include "spool/steps.h"

/* ---- the kinds ---- */

/* Takes one word of the list, n bytes long, as the name of a kind of shard. */
static int
admit_kind(struct admit *a, const char *word, size_t n, struct err *e)
{
	const char *name;
	unsigned k;

	for (k = 0; k < SHARD_NKIND; k++) {
		name = shard_kind_name(k);
		if (strlen(name) == n && memcmp(name, word, n) == 0) {
			a->kinds |= 1u << k;
			return 0;
		}
	}
	if (n != strlen("difference") || memcmp(word, "difference", n) != 0)
		return err_set(e, ERR_USAGE, "--kind '%.*s': gradient, delta, "
		    "sum, mean, residual, model, history or difference",
		    (int)(n < 80 ? n : 80), word);
	a->differences = 1;
	return 0;
}

/* Kinds by commas, and "difference". */
static int
admit_kinds(void *arg, const struct opt *row, const char *list, struct err *e)
{
	struct admit *a = arg;
	size_t n;
	int r = 0;

	(void)row;
	a->kinds = 0;
	a->differences = 0;
	for (; r == 0; list += n + 1) {
		n = strcspn(list, ",");
		r = admit_kind(a, list, n, e);
		if (list[n] == '\0')
			break;
	}
	return r;
}

static const char *const admit_words[] = { "gradient", "delta", "sum", "mean",
	"residual", "model", "history", "difference", NULL };
const struct opt admit_rows[] = {
	{ 0, "kind", "LIST", "of these kinds only", OPT_CALL(admit_kinds),
	    .words = admit_words, .several = 1,
	    .def = "gradient,delta,sum,mean" },
	{ 0, "max-shard", "SIZE", "refuse larger ones, on the wire",
	    OPT_SIZE(struct admit, shard), .def = "256Mi" },
	{ 0, "max-weight", "X", "heavier ones",
	    OPT_F64(struct admit, weight, 1e-300, ADMIT_WEIGHT_MOST),
	    .def = "1e6" },
	{ 0, "max-contributors", "N", "those of more devices",
	    OPT_U64(struct admit, contributors, 1, 1 << 20), .def = "1024" },
	{ 0, "max-ahead", "N",
	    "those of more than N steps after the last closed one",
	    OPT_U64(struct admit, ahead, 1, ADMIT_STEP_MOST),
	    .def = "10000" },
	{ 0, "quota", "SIZE",
	    "those of a device with so much in open steps",
	    OPT_SIZE(struct admit, quota), .def = "4Gi" },
	{ 0, "max-open", "N", "or with shards in so many of them",
	    OPT_U64(struct admit, open, 1, 1 << 20), .def = "1024" },
	OPT_END
};

/* ---- what a shard says ---- */

void
admit_refuse(struct receipt *r, const char *fmt, ...)
{
	va_list ap;

	if (r->verdict != RECEIPT_ACCEPTED)
		return;
	r->verdict = RECEIPT_INVALID;
	va_start(ap, fmt);
	(void)vsnprintf(r->reason, 151, fmt, ap);
	va_end(ap);
}

/* Takes the text of an error as the reason for refusing. */
static int
admit_because(struct receipt *r, struct err *e)
{
	char line[ERR_LINE];

	if (e->code != ERR_DATA)
		return -e->code;
	admit_refuse(r, "%.150s", err_format(e, line));
	err_clear(e);
	return 0;
}

/* Checks the numbers that are going to be added up. */
static void
admit_numbers(const struct admit *a, const struct shard *sh, struct receipt *r)
{
	if (!(sh->weight <= a->weight))
		admit_refuse(r, "limit: weight %g, at most %g (--max-weight)",
		    sh->weight, a->weight);
	if (sh->contributors == 0 || sh->contributors > a->contributors)
		admit_refuse(r, "limit: %lu contributors, at most %llu "
		    "(--max-contributors)", (unsigned long)sh->contributors,
		    (unsigned long long)a->contributors);
	if (sh->incarnation > SHARD_INCARNATIONS)
		admit_refuse(r, "limit: incarnation %lu",
		    (unsigned long)sh->incarnation);
	if (sh->samples > ADMIT_SAMPLES_MOST)
		admit_refuse(r, "limit: %llu samples",
		    (unsigned long long)sh->samples);
	if (sh->base_version > sh->step)
		admit_refuse(r, "mismatch: step %llu was computed at model "
		    "version %llu", (unsigned long long)sh->step,
		    (unsigned long long)sh->base_version);
}

void
admit_head(const struct admit *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r)
{
	struct err e = ERR_INIT;
	char why[256];

	if ((sh->flags & SHARD_RECOVERED) != 0)
		admit_refuse(r, "recovered from a damaged file");
	if ((a->kinds >> sh->kind & 1) == 0)
		admit_refuse(r, "mismatch: a shard of kind %s is not for a sum "
		    "(--kind)", shard_kind_name(sh->kind));
	if (!a->differences && (sh->flags & SHARD_PREDICTED) != 0)
		admit_refuse(r, "mismatch: a difference to a history (--kind)");
	admit_numbers(a, sh, r);
	if (keys_check(&sh->kv, &e) < 0)
		(void)admit_because(r, &e);
	if (a->schema != NULL && schema_diff(a->schema, sc, why) != 0)
		admit_refuse(r, "mismatch: not of the model of --schema: "
		    "%.100s", why);
}

void
admit_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r)
{
	const float most = ADMIT_VALUE_MOST;
	size_t at;

	if (k->max_bits(x, n) <= bytes_u32(most))
		return;
	if ((at = k->first_nonfinite(x, n)) != n) {
		admit_refuse(r, "non-finite value in tensor '%.80s' at index "
		    "%llu", t->name, (unsigned long long)(first + at));
		return;
	}
	for (at = 0; x[at] <= most && x[at] >= -most; at++)
		;
	admit_refuse(r, "limit: %g in tensor '%.60s' at index %llu, at most "
	    "%g", (double)x[at], t->name, (unsigned long long)(first + at),
	    (double)most);
}

/* A shard must name as many contributors as it says it has, and no more. */
static int
admit_names(const struct reader *in, size_t *names, struct err *e)
{
	const struct chain_frame *f = reader_frame(in);
	struct array_names l = ARRAY_NAMES_INIT;
	int k = array_get_names(&l, f->raw, f->raw_len, e);

	*names += l.n;
	array_release(&l);
	if (k == 0 && *names > reader_shard(in)->contributors)
		k = err_set(e, ERR_DATA, "corrupt: %zu names of %lu "
		    "contributors", *names,
		    (unsigned long)reader_shard(in)->contributors);
	return k;
}

int
admit_note(const struct reader *in, size_t *names, struct receipt *r,
    struct err *e)
{
	struct text_kv kv = TEXT_KV_INIT;
	int k = 0;

	if (r->verdict != RECEIPT_ACCEPTED)
		return 0;
	if (reader_frame(in)->type == FRAME_MEMB) {
		k = admit_names(in, names, e);
	} else {
		k = keys_add(&kv, in, e);
		text_release(&kv);
	}
	return k < 0 ? admit_because(r, e) : 0;
}

/* ---- room in the spool ---- */

struct admit_place {
	const struct inbox *s;
	const struct shard *sh;
	int any;			/* no step is closed yet */
	uint64_t floor;
	uint64_t most;			/* bytes that a shard may have */
	uint64_t steps, bytes;		/* of the device, in open steps */
	int known;			/* it has a verdict already */
};

/* Looks for the device's file of a step: 1 and its size, or 0 when there is
 * none. */
static int
admit_file(const struct admit_place *p, uint64_t step, const char *end,
    uint64_t *bytes, struct err *e)
{
	char file[INBOX_FILE], *path;
	struct stat st;
	int there;

	inbox_file(p->sh, end, file);
	path = inbox_path(p->s, inbox_run_of(p->sh), &step, file, e);
	if (path == NULL)
		return -ERR_SYS;
	there = stat(path, &st) == 0;
	if (there)
		*bytes += (uint64_t)st.st_size;
	alloc_free(path);
	return there;
}

/* Is another process just now writing a shard of the device to this file?  Of
 * what a killed one left nobody has the lock. */
static int
admit_written(const struct admit_place *p, const char *name, struct err *e)
{
	char *path = inbox_path(p->s, inbox_run_of(p->sh), NULL, name, e);
	int fd, k;

	if (path == NULL)
		return -ERR_SYS;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	alloc_free(path);
	if (fd < 0)
		return 0;		/* it is whole by now, or gone */
	k = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	(void)close(fd);
	return k;
}

/* Adds up what of the device is on its way: a shard may become as large as it
 * likes, up to the limit. */
static int
admit_temp(void *arg, const char *name, struct err *e)
{
	struct admit_place *p = arg;
	char temp[INBOX_FILE];
	int k;

	inbox_file(p->sh, "new-", temp);
	if (strncmp(name, temp, strlen(temp)) != 0)
		return 0;
	if ((k = admit_written(p, name, e)) > 0)
		p->bytes += p->most;
	return k < 0 ? k : 0;
}

/* Looks at one open step. */
static int
admit_step(struct admit_place *p, uint64_t step, struct err *e)
{
	int k, no;

	if ((k = admit_file(p, step, "aceg", &p->bytes, e)) < 0 ||
	    (no = admit_file(p, step, "no", &p->bytes, e)) < 0)
		return -ERR_SYS;
	p->steps += (k | no) != 0;
	if (step == p->sh->step)
		p->known = (k | no) != 0;
	return 0;
}

int
admit_place(const struct admit *a, const struct inbox *s,
    const struct shard *sh, struct receipt *r, struct err *e)
{
	struct admit_place p = { .s = s, .sh = sh, .most = a->shard };
	struct steps open = STEPS_INIT;
	char *dir;
	size_t i;
	int k = inbox_floor(s, inbox_run_of(sh), &p.floor, e);

	if (k < 0)
		return k;
	p.any = k == 0;
	if (!p.any && sh->step <= p.floor)
		return sh->step < p.floor;
	if (sh->step > p.floor && sh->step - p.floor > a->ahead) {
		admit_refuse(r, "limit: step %llu is more than %llu after %llu, "
		    "the last that is closed (--max-ahead)",
		    (unsigned long long)sh->step, (unsigned long long)a->ahead,
		    (unsigned long long)p.floor);
		return 0;
	}
	k = steps_list(&open, s, inbox_run_of(sh), "", p.any ? 0 : p.floor + 1,
	    e);
	for (i = 0; i < open.n && k == 0; i++)
		k = admit_step(&p, open.step[i], e);
	steps_release(&open);
	if (k < 0 || p.known)
		return k;
	if ((dir = inbox_path(s, inbox_run_of(sh), NULL, "", e)) == NULL)
		return -ERR_SYS;
	k = scan(dir, admit_temp, &p, e);
	alloc_free(dir);
	if (k < 0)
		return k;
	if (p.steps >= a->open)
		admit_refuse(r, "limit: %llu steps of this device are open "
		    "(--max-open)", (unsigned long long)p.steps);
	if (p.bytes >= a->quota)
		admit_refuse(r, "limit: %llu bytes of this device wait for "
		    "their steps (--quota)", (unsigned long long)p.bytes);
	return 0;
}

/* ---- the run ---- */

struct admit_other {
	const struct inbox *s;
	const char *want;
	char run[INBOX_NAME];	/* the directory of the one asked about */
	char *other;		/* the name of another one, allocated */
};

/* Is this directory of the spool another run of those that are wanted?  1 when it
 * is. The run itself is passed over: its first shard may have been accepted by
 * another process between the look for it and this one. */
static int
admit_is_other(void *arg, const char *name, struct err *e)
{
	struct admit_other *o = arg;
	size_t n = strlen(o->s->state.dir) + strlen(name) + 32;
	char *path;
	int k;

	if (strcmp(name, o->run) == 0)
		return 0;
	if ((path = alloc_get(n, 1, e)) == NULL)
		return -ERR_SYS;
	(void)snprintf(path, n, "%s/%s/schema.aceg", o->s->state.dir, name);
	k = access(path, F_OK) == 0 ? ledger_run(path, &o->other, e) : 0;
	alloc_free(path);
	if (k < 0 || o->other == NULL || inbox_fits(o->want, o->other))
		return k < 0 ? k : o->other != NULL;
	alloc_free(o->other);
	o->other = NULL;
	return 0;
}

int
admit_run(const struct inbox *s, const char *want, const char *run,
    struct err *e)
{
	struct admit_other o = { .s = s, .want = want };
	char *path;
	int k;

	if (!inbox_fits(want, run))
		return err_set(e, ERR_DATA, "mismatch: a shard of run '%.80s', "
		    "not '%.80s'", run, want);
	if (want != NULL && strcmp(want, run) == 0)
		return 0;
	if ((path = inbox_path(s, run, NULL, "schema.aceg", e)) == NULL)
		return -ERR_SYS;
	k = access(path, F_OK) == 0;
	alloc_free(path);
	if (k)
		return 0;
	inbox_name(run, o.run);
	k = scan(s->state.dir, admit_is_other, &o, e);
	if (k > 0)
		k = err_set(e, ERR_DATA, "mismatch: a shard of run '%.80s', and "
		    "the spool is of run '%.80s' (--run)", run, o.other);
	alloc_free(o.other);
	return k;
}
