#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/limits_file.h"
#include "base/opt.h"
#include "format/array.h"
#include "format/checks.h"
#include "format/reader.h"
#include "format/values.h"
#include "kern/kern.h"
#include "spool/clients.h"
#include "spool/limits.h"
#include "spool/manifest.h"
#include "spool/spool.h"
#include "spool/steps.h"

/* ---- the limits ---- */

static const struct opt limits_rows[] = {
	{ 0, "shard", "SIZE", "Shards with more bytes than this are invalid.",
	    OPT_SIZE(struct limits, shard), .def = "256Mi" },
	{ 0, "weight", "X", "Shards with a larger weight are invalid.  If all "
	    "devices have weight 1, give 1.",
	    OPT_F64(struct limits, weight, 1e-300, LIMITS_WEIGHT_MOST),
	    .def = "1e6" },
	{ 0, "contributors", "N", "Shards of more devices than this are invalid: "
	    "1 for a device; a relay counts\n# its devices.",
	    OPT_U64(struct limits, contributors, 1, 1 << 20), .def = "1024" },
	{ 0, "ahead", "N", "Shards more than N steps after the last closed step "
	    "have to wait.", OPT_U64(struct limits, ahead, 1, LIMITS_STEP_MOST),
	    .def = "10000" },
	{ 0, "open", "N", "Shards of a device with shards in this many open steps have to wait.",
	    OPT_U64(struct limits, open, 1, 1 << 20), .def = "64" },
	{ 0, "timeout", "TIME", "A connection ends when nothing comes for this "
	    "long within a shard.",
	    OPT_TIME(struct limits, silence), .def = "60s" },
	{ 0, "idle", "TIME", "A connection ends when nothing comes for this long "
	    "before a shard.",
	    OPT_TIME(struct limits, idle), .def = "2h" },
	{ 0, "time", "TIME", "A connection ends when a shard, or reading its "
	    "answer, takes longer.", OPT_TIME(struct limits, time), .def = "24h" },
	{ 0, "clients", "N", "More open connections than this are refused.",
	    OPT_U64(struct limits, clients, 1, CLIENTS_LIMIT), .def = "256" },
	{ 0, "each", "N", "More open connections of one device than this are refused.",
	    OPT_U64(struct limits, each, 1, CLIENTS_LIMIT), .def = "16" },
	OPT_END
};

int
limits_read(struct limits *a, const struct spool *s, const char *device,
    struct err *e)
{
	struct limits other;
	char path[SPOOL_PATH];
	int k = opt_defaults(limits_rows, a, e);

	other = *a;
	spool_path(s, NULL, LIMITS_FILE, path);
	if (k == 0)
		k = limits_file_read(path, limits_rows, a, &other, NULL, e);
	if (k == 0 && device != NULL)
		k = limits_file_read(path, limits_rows, a, &other, device, e);
	return k != -ERR_USAGE ? k : err_after(e, k, ": see ace-recv(1), Limits");
}

int
limits_init(const struct spool *s, struct err *e)
{
	static const char head[] =
	    "# The limits of this spool; ace-recv reads them when it starts.  A line "
	    "is\n# NAME VALUE, or NAME VALUE DEVICE for connections of that "
	    "device alone\n# (ace-recv --device), which counts before a line for all.  "
	    "If a name has several\n# lines, the last one counts; if it has none, its "
	    "default.  SIZE is bytes: 64M,\n# 256Mi; TIME is 500ms, 60s, 2h.\n";
	char path[SPOOL_PATH];

	return limits_file_write(spool_path(s, NULL, LIMITS_FILE, path), head,
	    limits_rows, s->sync, e);
}

/* ---- what a shard says ---- */

void
limits_refuse(struct receipt *r, const char *fmt, ...)
{
	va_list ap;

	if (r->verdict != RECEIPT_ACCEPTED)
		return;
	r->verdict = RECEIPT_INVALID;
	va_start(ap, fmt);
	(void)vsnprintf(r->reason, 151, fmt, ap);
	va_end(ap);
}

int
limits_because(struct receipt *r, struct err *e)
{
	char line[ERR_LINE];

	if (e->code == ERR_SYS)
		return -e->code;
	limits_refuse(r, "%.150s", err_format(e, line));
	err_clear(e);
	return 0;
}

/* Check the numbers in the head that do not depend on the model. */
static void
limits_numbers(const struct limits *a, const struct shard *sh, struct receipt *r)
{
	if (!(sh->weight >= LIMITS_WEIGHT_LEAST))
		limits_refuse(r, "limit: the weight is %.9g, expected at least %g",
		    sh->weight, LIMITS_WEIGHT_LEAST);
	if (!(sh->weight <= a->weight))
		limits_refuse(r, "limit: the weight is %.9g, expected at most %.9g "
		    "(limits: weight)", sh->weight, a->weight);
	if (sh->step == UINT64_MAX)	/* struct closed has the step after it */
		limits_refuse(r, "limit: the step is 2^64 - 1, expected at most 2^64 - 2");
	if (sh->contributors == 0 || sh->contributors > a->contributors)
		limits_refuse(r, "limit: the shard has %lu contributors, expected at "
		    "least 1 and at most %llu (limits: contributors)",
		    (unsigned long)sh->contributors, (unsigned long long)a->contributors);
	if (sh->incarnation > SHARD_INCARNATIONS)
		limits_refuse(r, "limit: the incarnation is %lu, expected at most 2^31 - 1",
		    (unsigned long)sh->incarnation);
	if (sh->samples > LIMITS_SAMPLES_MOST)
		limits_refuse(r, "limit: the shard has %llu samples, expected at most 2^40",
		    (unsigned long long)sh->samples);
	if (sh->base_version > sh->step)
		limits_refuse(r, "mismatch: step %llu was computed with model version "
		    "%llu, which is later than the step", (unsigned long long)sh->step,
		    (unsigned long long)sh->base_version);
}

void
limits_head(const struct limits *a, const struct shard *sh,
    const struct schema *sc, struct receipt *r)
{
	struct err e = ERR_INIT;
	char why[256];
	size_t i;

	for (i = 0; i < sc->n; i++)
		if (schema_bits(sc->t[i].dtype))
			limits_refuse(r, "unsupported: tensor '%.60s' is %s, which "
			    "cannot be averaged: leave it out of the shard",
			    sc->t[i].name, schema_dtype_name(sc->t[i].dtype));
	if (sh->kind == SHARD_RESIDUAL || sh->kind == SHARD_MODEL ||
	    sh->kind == SHARD_HISTORY)
		limits_refuse(r, "mismatch: kind %s is not accepted, "
		    "expected gradient, delta, sum or mean",
		    shard_kind_name(sh->kind));
	/* the spool keeps the reconstruction of a difference, as f32 */
	if ((sh->flags & SHARD_PREDICTED) != 0 &&
	    sc->total / LIMITS_BEYOND > a->shard / sizeof(float))
		limits_refuse(r, "limit: the difference is for a model of %llu values, which "
		    "as f32 take more than %d times %llu bytes (limits: shard)",
		    (unsigned long long)sc->total, LIMITS_BEYOND,
		    (unsigned long long)a->shard);
	limits_numbers(a, sh, r);
	if (checks_shard(sh, &e) < 0)
		(void)limits_because(r, &e);
	if (a->schema != NULL && schema_diff(sc, a->schema, why) != 0)
		limits_refuse(r, "mismatch: the shard is for another model than ace-recv "
		    "--schema: %s%.85s", strlen(why) > 85 ? "..." : "",
		    why + (strlen(why) > 85 ? strlen(why) - 82 : 0));
}

void
limits_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r)
{
	struct err e = ERR_INIT;

	if (values_bounded(k, t, first, x, n, &e) < 0)
		(void)limits_because(r, &e);
}

/* If the limit is one contributor, refuse a list of contributors unless it names the sender
 * alone. */
static int
limits_names(const struct limits *a, const struct reader *in, struct receipt *r,
    struct err *e)
{
	const struct chain_frame *f = reader_frame(in);
	const char *device = spool_device_of(reader_shard(in));
	struct array_names l = ARRAY_NAMES_INIT;
	int k = 0;

	if (a->contributors == 1 && f->type == FRAME_MEMB &&
	    (k = array_get_names(&l, f->raw, f->raw_len, e)) == 0 &&
	    (l.n != 1 || strcmp(l.p[0], device) != 0))
		limits_refuse(r, "limit: the list of contributors has %zu name%s (first: "
		    "'%.40s'), expected only the sender's (limits: contributors)", l.n,
		    l.n == 1 ? "" : "s", l.n != 0 ? l.p[0] : "");
	array_release(&l);
	return k;
}

int
limits_note(const struct limits *a, struct checks *c, const struct reader *in,
    struct receipt *r, struct err *e)
{
	int k = r->verdict == RECEIPT_ACCEPTED ? checks_note(c, in, e) : 0;

	if (k == 0 && r->verdict == RECEIPT_ACCEPTED)
		k = limits_names(a, in, r, e);
	return k < 0 ? limits_because(r, e) : 0;
}

/* ---- room for a shard ---- */

/*
 * DIR/device/DEVICE.open lists the steps in which the device may have a file, one per
 * line, so that the number of open steps need not be counted in their directories.  A
 * power cut may damage the list: then a wrong number is counted until those steps are
 * closed.  The file also shows that the device is known (verdict_stranger).
 *
 * Open the list, locked as `how' says, and read its steps that are still open.  With
 * LOCK_SH the list may be absent.  The caller closes *fd unless it is -1, also after a
 * failure.
 */
static int
limits_list(const struct spool *s, const struct shard *sh, int how,
    const struct closed *d, struct steps *l, int *fd, struct err *e)
{
	char path[SPOOL_PATH], *text = NULL, *at, *end;
	struct stat st;
	uint64_t step;
	size_t n;
	int k;

	*fd = -1;
	spool_of(s, NULL, spool_device_of(sh), "open", path);
	if (how == LOCK_SH && (k = spool_there(path, e)) <= 0)
		return k;
	if ((k = fd_lock(path, how, fd, e)) < 0)
		return k;
	if (fstat(*fd, &st) < 0)
		return err_sys(e, "'%s'", path);
	if ((text = alloc_get((size_t)st.st_size + 1, 1, e)) == NULL)
		return -ERR_SYS;
	k = fd_read_at(*fd, 0, text, (size_t)st.st_size, &n, path, e);
	for (at = text; k == 0 && *at != '\0'; at = end + strspn(end, "\n")) {
		step = strtoull(at, &end, 10);
		if (end != at && step >= d->open)
			k = steps_add(l, step, e);
		end += strcspn(end, "\n");
	}
	alloc_free(text);
	return k;
}

static int
limits_listed(const struct steps *l, uint64_t step)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (l->step[i] == step)
			return 1;
	return 0;
}

int
limits_took(const struct spool *s, const struct shard *sh, const struct closed *d,
    struct err *e)
{
	struct steps l = STEPS_INIT;
	struct buf b = BUF_INIT;
	char line[32], path[SPOOL_PATH];
	size_t i;
	int fd, k = limits_list(s, sh, LOCK_EX, d, &l, &fd, e);

	if (k == 0 && !limits_listed(&l, sh->step)) {
		k = steps_add(&l, sh->step, e);
		for (i = 0; i < l.n && k == 0; i++)
			k = buf_put(&b, line, (size_t)snprintf(line, sizeof(line),
			    "%llu\n", (unsigned long long)l.step[i]), e);
		spool_of(s, NULL, spool_device_of(sh), "open", path);
		if (k == 0)
			k = fd_write_at(fd, 0, b.p, b.n, path, e);
		if (k == 0 && ftruncate(fd, (off_t)b.n) < 0)
			k = err_sys(e, "cannot truncate '%s'", path);
	}
	buf_release(&b);
	steps_release(&l);
	if (fd >= 0)
		(void)close(fd);
	return k;
}

int
limits_room(const struct limits *a, const struct spool *s, const struct shard *sh,
    const struct schema *sc, struct err *e)
{
	/* the spool keeps the reconstruction of each difference */
	const uint64_t kept = (sh->flags & SHARD_PREDICTED) != 0 ?
	    sc->total * sizeof(float) / LIMITS_BEYOND : 0;
	struct steps l = STEPS_INIT;
	struct closed d;
	uint64_t last;
	int fd, many, k = manifest_closed(s, &d, e);

	if (k < 0 || sh->step < d.open)
		return k < 0 ? k : 1;
	last = d.open != 0 ? d.open - 1 : 0;
	if (sh->step - last > a->ahead)
		return err_set(e, ERR_REFUSED, "limit: step %llu of '%.80s' is more than %llu "
		    "step%s after %s %llu (limits: ahead): for a run that begins later, "
		    "raise the limit", (unsigned long long)sh->step,
		    shard_device(sh), (unsigned long long)a->ahead, a->ahead == 1 ? "" : "s",
		    d.open != 0 ? "the last closed step," : "step", (unsigned long long)last);
	k = limits_list(s, sh, LOCK_SH, &d, &l, &fd, e);
	many = l.n >= a->open;
	if (k == 0 && (many || (l.n > 0 && kept > a->shard / (l.n + 1))) &&
	    !limits_listed(&l, sh->step))
		k = err_set(e, ERR_REFUSED, "limit: steps of '%.80s' that wait for an average: "
		    "%zu%s (limits: %s): see that ace-aggregate runs, or raise the limit",
		    shard_device(sh), l.n, many ? ", as many as may wait" : ", and with "
		    "this step, the values as f32 exceed 8 times the limit", many ? "open"
		    : "shard");
	steps_release(&l);
	if (fd >= 0)
		(void)close(fd);
	return k;
}
