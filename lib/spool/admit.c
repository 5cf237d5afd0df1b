#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/opt.h"
#include "format/array.h"
#include "format/checks.h"
#include "format/reader.h"
#include "format/values.h"
#include "kern/kern.h"
#include "spool/admit.h"
#include "spool/clients.h"
#include "spool/inbox.h"

/* ---- the limits ---- */

/* Kinds, in the order of enum shard_kind. */
static const char *const admit_words[] = { "gradient", "delta", "sum", "mean",
	"residual", "model", "history", "difference", NULL };

/* Parse kinds between commas, one of which may be "difference". */
static int
admit_kinds(void *arg, const struct opt *row, const char *list, struct err *e)
{
	struct admit *a = arg;
	char word[NUM_ITEM];
	int i, r;

	(void)row;
	a->kinds = 0;
	a->differences = 0;
	while ((r = num_item(&list, word, "kind", e)) > 0 &&
	    (r = num_choice(&i, word, admit_words, "kind", e)) == 0) {
		a->kinds |= i < SHARD_NKIND ? 1u << i : 0;
		a->differences |= i == SHARD_NKIND;
	}
	return r;
}

static int
admit_stale(void *arg, const struct opt *row, const char *val, struct err *e)
{
	struct admit *a = arg;

	a->stale = UINT64_MAX;
	return strcmp(val, "any") == 0 ? 0 :
	    num_u64(&a->stale, val, 0, 1u << 30, row->name, e);
}

static const struct opt admit_rows[] = {
	{ 0, "kind", "LIST", "Kinds let in, between commas: gradient, delta, "
	    "sum, mean, residual,\n# model, history, and difference (to a "
	    "history); others are invalid.", OPT_CALL(admit_kinds),
	    .def = "gradient,delta,sum,mean,difference" },
	{ 0, "shard", "SIZE", "Larger shards, on the wire, are invalid.",
	    OPT_SIZE(struct admit, shard), .def = "256Mi" },
	{ 0, "weight", "X", "Heavier ones are invalid.  Where all devices weigh "
	    "1, say 1.",
	    OPT_F64(struct admit, weight, 1e-300, ADMIT_WEIGHT_MOST),
	    .def = "1e6" },
	{ 0, "contributors", "N", "Those of more devices are invalid: 1 for a "
	    "device, for a relay its edges.",
	    OPT_U64(struct admit, contributors, 1, 1 << 20), .def = "1024" },
	{ 0, "ahead", "N", "Those more than N steps after the last closed one "
	    "have to wait.", OPT_U64(struct admit, ahead, 1, ADMIT_STEP_MOST),
	    .def = "10000" },
	{ 0, "staleness", "N", "Those computed at a model more than N steps "
	    "older are late; any: all come.", OPT_CALL(admit_stale),
	    .def = "any" },
	{ 0, "quota", "SIZE", "So have those of a device with so much in open "
	    "steps,", OPT_SIZE(struct admit, quota), .def = "4Gi" },
	{ 0, "open", "N", "and those of one with shards in so many open steps.",
	    OPT_U64(struct admit, open, 1, 1 << 20), .def = "1024" },
	{ 0, "out", "SIZE", "In a day a device is given no more of averages for "
	    "questions, and for\n# shards that come twice.",
	    OPT_SIZE(struct admit, out), .def = "16Gi" },
	{ 0, "timeout", "TIME", "A connection ends when nothing comes for so "
	    "long within a shard.",
	    OPT_TIME(struct admit, silence), .def = "60s" },
	{ 0, "idle", "TIME", "It ends when nothing comes for so long before "
	    "a shard.",
	    OPT_TIME(struct admit, idle), .def = "2h" },
	{ 0, "time", "TIME", "It ends when no shard is whole, or no answer "
	    "taken, after so long.", OPT_TIME(struct admit, time), .def = "24h" },
	{ 0, "clients", "N", "More connections at a time are refused.",
	    OPT_U64(struct admit, clients, 1, CLIENTS_LIMIT), .def = "256" },
	{ 0, "each", "N", "And so are more of one device.",
	    OPT_U64(struct admit, each, 1, CLIENTS_LIMIT), .def = "16" },
	OPT_END
};

int
admit_defaults(struct admit *a, struct err *e)
{
	return opt_defaults(admit_rows, a, e);
}

static int
admit_lines(struct admit *a, const struct inbox *s, const char *device,
    struct err *e)
{
	char *path = statedir_path(&s->state, LIMITS_FILE, e);
	struct admit other = *a;
	int k = path == NULL ? -ERR_SYS :
	    limits_read(path, admit_rows, a, &other, device, e);

	alloc_free(path);
	return k;
}

int
admit_read(struct admit *a, const struct inbox *s, const char *device,
    struct err *e)
{
	int k = admit_lines(a, s, NULL, e);

	return k < 0 || device == NULL ? k : admit_lines(a, s, device, e);
}

int
admit_init(const struct inbox *s, struct err *e)
{
	static const char head[] =
	    "# What this spool lets in; ace-recv reads it when it starts.  A line "
	    "is\n# NAME VALUE, or NAME VALUE DEVICE for connections of that "
	    "device alone\n# (ace-recv --device).  Of several lines the last one "
	    "counts, and one of the\n# device before one of all; where there is "
	    "none, the default.  SIZE is bytes:\n# 64M, 256Mi; TIME 500ms, 60s, "
	    "2h.\n";
	char *path = statedir_path(&s->state, LIMITS_FILE, e);
	int k = path == NULL ? -ERR_SYS :
	    limits_write(path, head, admit_rows, s->sync, e);

	alloc_free(path);
	return k;
}

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

/* Refuse in r with the text of the error as the reason. */
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

/* Check the numbers that will be added. */
static void
admit_numbers(const struct admit *a, const struct shard *sh, struct receipt *r)
{
	if (!(sh->weight <= a->weight))
		admit_refuse(r, "limit: weight %g, at most %g (limits: weight)",
		    sh->weight, a->weight);
	if (sh->contributors == 0 || sh->contributors > a->contributors)
		admit_refuse(r, "limit: %lu contributors, at most %llu "
		    "(limits: contributors)", (unsigned long)sh->contributors,
		    (unsigned long long)a->contributors);
	if (sh->incarnation > SHARD_INCARNATIONS)
		admit_refuse(r, "limit: incarnation %lu is too large",
		    (unsigned long)sh->incarnation);
	if (sh->samples > ADMIT_SAMPLES_MOST)
		admit_refuse(r, "limit: %llu samples are too many",
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
		    "(limits: kind)", shard_kind_name(sh->kind));
	if (!a->differences && (sh->flags & SHARD_PREDICTED) != 0)
		admit_refuse(r, "mismatch: the shard is a difference to a history "
		    "(limits: kind)");
	admit_numbers(a, sh, r);
	if (checks_shard(sh, &e) < 0)
		(void)admit_because(r, &e);
	if (a->schema != NULL && schema_diff(a->schema, sc, why) != 0)
		admit_refuse(r, "mismatch: the shard is for another model than "
		    "--schema: %.100s", why);
}

void
admit_values(const struct kern *k, const struct schema_tensor *t,
    uint64_t first, const float *x, size_t n, struct receipt *r)
{
	struct err e = ERR_INIT;

	if (values_bounded(k, t, first, x, n, &e) < 0)
		(void)admit_because(r, &e);
}

/* With a limit of one contributor, refuse a list that names another device. */
static int
admit_names(const struct admit *a, const struct reader *in, struct receipt *r,
    struct err *e)
{
	const struct chain_frame *f = reader_frame(in);
	const char *device = inbox_device_of(reader_shard(in));
	struct array_names l = ARRAY_NAMES_INIT;
	int k = 0;

	if (a->contributors == 1 && f->type == FRAME_MEMB &&
	    (k = array_get_names(&l, f->raw, f->raw_len, e)) == 0 &&
	    (l.n != 1 || strcmp(l.p[0], device) != 0))
		admit_refuse(r, "limit: speaks for '%.80s' (limits: "
		    "contributors)", l.n != 0 ? l.p[0] : "");
	array_release(&l);
	return k;
}

int
admit_note(const struct admit *a, struct checks *c, const struct reader *in,
    struct receipt *r, struct err *e)
{
	int k = r->verdict == RECEIPT_ACCEPTED ? checks_note(c, in, e) : 0;

	if (k == 0 && r->verdict == RECEIPT_ACCEPTED)
		k = admit_names(a, in, r, e);
	return k < 0 ? admit_because(r, e) : 0;
}

/* ---- what goes out ---- */

int
admit_out(const struct admit *a, const struct inbox *s, const char *device,
    uint64_t bytes, struct err *e)
{
	const uint64_t day = inbox_clock() / (UINT64_C(86400) * 1000000000);
	char *path = inbox_of(s, NULL, device, "given", e);
	unsigned long long was = 0, all = 0;
	char text[64] = "";
	size_t n;
	int fd = -1, k = path != NULL ? fd_lock(path, LOCK_EX, &fd, e) : -ERR_SYS;

	if (k == 0 && (k = fd_read_at(fd, 0, text, sizeof(text) - 1, &n, path,
	    e)) == 0) {
		if (sscanf(text, "%llu %llu", &was, &all) != 2 || was != day)
			all = 0;
		if (bytes > a->out || all > a->out - bytes)
			k = err_set(e, ERR_REFUSED, "limit: device '%.80s' received "
			    "%llu bytes of old averages today and requests %llu "
			    "more (limits: out)", device, all,
			    (unsigned long long)bytes);
	}
	if (k == 0) {
		n = (size_t)snprintf(text, sizeof(text), "%llu %llu\n",
		    (unsigned long long)day, all + (unsigned long long)bytes);
		if ((k = fd_write_at(fd, 0, text, n, path, e)) == 0 &&
		    ftruncate(fd, (off_t)n) < 0)
			k = err_sys(e, "'%s'", path);
	}
	if (fd >= 0)
		(void)close(fd);
	alloc_free(path);
	return k;
}
