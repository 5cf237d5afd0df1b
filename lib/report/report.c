#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/scan.h"
#include "format/receipt.h"
#include "format/shard.h"
#include "pipe/pick.h"
#include "report/report.h"
#include "spool/spool.h"

void
report_init(struct report *p, FILE *f, const struct kern *k)
{
	memset(p, 0, sizeof(*p));
	p->s.f = f;
	p->kern = k;
	json_out_init(&p->s.json, f);
}

static void
report_receipt_json(struct report *p, const struct receipt *rc, const char *device)
{
	struct json_out *j = &p->s.json;
	char hex[33];

	json_out_open(j, NULL, '{');
	if (p->file != NULL)
		json_out_string(j, "file", p->file);
	json_out_string(j, "verdict", receipt_verdict_name(rc->verdict));
	json_out_string(j, "reason", rc->reason);
	if (device != NULL)
		json_out_string(j, "device", device);
	json_out_u64(j, "step", rc->step);
	shard_hex(rc->run, hex);
	json_out_string(j, "run_id", hex);
	shard_hex(rc->device, hex);
	json_out_string(j, "device_id", hex);
	shard_hex(rc->digest, hex);
	json_out_string(j, "digest", hex);
	json_out_u64(j, "clock", rc->clock);
	json_out_u64(j, "version", rc->version);
	json_out_end(j);
}

/* A search for the name of a device, of which a receipt has only the hash.  In a spool, some
 * file names begin with the device's name: those in a step's directory, as DEVICE.no with the
 * receipts of rejected shards, and those in DIR/device.  Manifests are in DIR or DIR/done. */
struct report_names {
	const unsigned char *id;
	char *out;
};

static int
report_names_each(void *arg, const char *path, const char *file, struct err *e)
{
	struct report_names *x = arg;
	char name[SHARD_NAME + 1];
	unsigned char id[SHARD_ID];

	if (!spool_device(file, name, id) || name[0] == '\0' ||
	    memcmp(id, x->id, SHARD_ID) != 0)
		return 0;
	(void)snprintf(x->out, SHARD_NAME + 1, "%s", name);
	return 1;
}

/* Search the files around path. Return 1 with out the name whose hash is id, or 0 with out
 * the hash in hexadecimal. */
static int
report_device(const char *path, const unsigned char id[SHARD_ID],
    char out[SHARD_NAME + 1])
{
	static const char *const around[] = { ".", "device", "../device" };
	struct report_names x = { id, out };
	const char *slash = strrchr(path, '/');
	const int n = slash != NULL ? (int)(slash - path) + 1 : 0;
	char dir[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(around) / sizeof(around[0]); i++)
		if (snprintf(dir, sizeof(dir), "%.*s%s", n, path, around[i]) <
		    PATH_MAX && scan(dir, 0, report_names_each, &x, NULL) == 1)
			return 1;
	shard_hex(id, out);
	return 0;
}

static void
report_receipt(struct report *p, const struct reader *r)
{
	const struct receipt *rc = reader_receipt(r);
	char device[SHARD_NAME + 1], hex[33];
	int named;

	if (p->quiet)
		return;
	named = report_device(reader_name(r), rc->device, device);
	if (p->s.form == RENDER_JSON) {
		report_receipt_json(p, rc, named ? device : NULL);
		return;
	}
	(void)fprintf(p->s.f, "%-13s ", "receipt");
	if (p->file != NULL) {
		render_name(p->s.f, p->file);
		(void)fputs(": ", p->s.f);
	}
	render_name(p->s.f, device);
	(void)fprintf(p->s.f, " step %llu: %s%s%s\n",
	    (unsigned long long)rc->step, receipt_verdict_name(rc->verdict),
	    rc->reason[0] != '\0' ? ": " : "", rc->reason);
	if (p->verbose) {
		shard_hex(rc->digest, hex);
		(void)fprintf(p->s.f, "%-13s digest %s, version %llu, at %llu\n",
		    "", hex, (unsigned long long)rc->version,
		    (unsigned long long)rc->clock);
	}
}

int
report_wants(struct report *p, const struct reader *r)
{
	const struct schema *sc = reader_schema(r);
	size_t i;

	if (p->pick != NULL && !pick_wants(p->pick, reader_shard(r)))
		return 0;
	p->picked = 1;
	for (i = 0; i < sc->n && !p->named; i++)
		p->named = pick_tensor(p->glob, sc->t[i].name);
	return 1;
}

int
report_next(struct report *p, struct reader *r, struct err *e)
{
	int k;

	while ((k = reader_next(r, e)) > 0) {
		if (k == READER_HEAD)
			p->fresh = 1;
		if (k == READER_SHARD) {
			p->shard++;
			if (report_wants(p, r))
				return 1;
			if ((k = pick_pass(r, e)) < 0)
				return k;
			continue;
		}
		if (k == READER_RCPT && p->pick == NULL)
			report_receipt(p, r);
	}
	return k;
}

int
report_flush(struct report *p, struct err *e)
{
	if (fflush(p->s.f) == 0 && !ferror(p->s.f))
		return 0;
	if (e != NULL && errno == EPIPE)
		e->quiet = 1;
	return err_sys(e, "'<stdout>'");
}

void
report_shard(const struct report *p, struct report_row *x, const struct reader *r)
{
	const struct schema *sc = reader_schema(r);

	memset(x, 0, sizeof(*x));
	x->shard = *reader_shard(r);
	x->file = p->file;
	x->nth = p->shard;
	x->run = shard_run(&x->shard);
	x->device = shard_device(&x->shard);
	x->kind = shard_kind_name(x->shard.kind);
	memcpy(x->schema, sc->id, sizeof(x->schema));
	x->group_size = sc->group_size;
}

/* Format a shape, as in "24x8"; "scalar" for rank 0. */
static const char *
report_shape(const struct schema_tensor *t, char buf[200])
{
	size_t n = 0;
	unsigned d;

	(void)snprintf(buf, 200, "scalar");
	for (d = 0; d < t->ndim && n < 200; d++)
		n += (size_t)snprintf(buf + n, 200 - n, "%s%llu",
		    d != 0 ? "x" : "", (unsigned long long)t->dim[d]);
	return buf;
}

void
report_tensor(struct report_row *x, const struct schema_tensor *t,
    const struct tally *y)
{
	x->tensor = t;
	x->name = t != NULL ? t->name : "total";
	x->dtype = t != NULL ? schema_dtype_name(t->dtype) : "";
	x->schema_kind = t != NULL ? schema_kind_name(t->kind) : "";
	if (t != NULL)
		(void)report_shape(t, x->shape);
	else
		x->shape[0] = '\0';
	x->tally = *y;
	x->bits_each = walk_bits(y);
	(void)snprintf(x->groups, sizeof(x->groups), "%llu/%llu",
	    (unsigned long long)y->sent_groups, (unsigned long long)y->groups);
}

void
report_put(struct report *p, unsigned in, const struct report_row *x, unsigned have)
{
	p->s.in = in;
	render_row(&p->s, report_fields, x, have);
	if (p->s.form != RENDER_JSON)
		(void)fputc('\n', p->s.f);
}

enum { REPORT_WNAME, REPORT_WSHAPE, REPORT_WNUM, REPORT_WBYTES };

void
report_head(struct report *p, unsigned in)
{
	p->s.in = in;
	render_head(&p->s, report_fields);
}

void
report_heading(const struct report *p, const struct report_row *x)
{
	if (p->file != NULL) {
		render_name(p->s.f, p->file);
		(void)fputs(": ", p->s.f);
	}
	(void)fprintf(p->s.f, "shard %llu '%s/%llu'",
	    (unsigned long long)p->shard, x->device,
	    (unsigned long long)x->shard.step);
}

void
report_object(struct report *p, const struct report_row *x)
{
	json_out_open(&p->s.json, NULL, '{');
	report_put(p, REPORT_ID, x, 0);
}

/* ---- tables ---- */

void
report_columns(struct report *p, const struct schema *sc)
{
	int *wide = p->s.wide, n;
	char shape[200];
	uint64_t sum = 0;
	size_t i;

	wide[REPORT_WNAME] = (int)sizeof("tensor") - 1;
	wide[REPORT_WSHAPE] = (int)sizeof("shape") - 1;
	for (i = 0; i < sc->n; i++) {
		if (!pick_tensor(p->glob, sc->t[i].name))
			continue;
		n = render_chars(sc->t[i].name);
		wide[REPORT_WNAME] = n > wide[REPORT_WNAME] ? n : wide[REPORT_WNAME];
		n = (int)strlen(report_shape(&sc->t[i], shape));
		wide[REPORT_WSHAPE] = n > wide[REPORT_WSHAPE] ? n : wide[REPORT_WSHAPE];
		sum += sc->t[i].numel;
	}
	n = snprintf(NULL, 0, "%llu", (unsigned long long)sum);
	wide[REPORT_WNUM] = n > 8 ? n : 8;
	wide[REPORT_WBYTES] = wide[REPORT_WNUM] + 1;
}

static const char *
report_codec(unsigned c, char buf[16])
{
	const char *name = codec_name(c);

	if (name != NULL)
		return name;
	(void)snprintf(buf, 16, "codec-%u", c);
	return buf;
}

/* Print each codec of the tally with its number in n, largest first: as an object, or
 * as text with `between' before the number.  Text omits a number equal to `all', and is "-"
 * if nothing was sent. */
static void
report_codecs(struct render *x, const struct render_field *f, const struct tally *y,
    const uint64_t n[CODEC_MAX], uint64_t all, const char *between)
{
	char name[16], done[CODEC_MAX] = { 0 };
	const char *sep = "";
	unsigned c, best;

	render_open(x, f->name, '{');
	for (;; sep = ",") {
		best = CODEC_MAX;
		for (c = 0; c < CODEC_MAX; c++)
			if (y->codec[c] != 0 && !done[c] &&
			    (best == CODEC_MAX || n[c] > n[best]))
				best = c;
		if (best == CODEC_MAX)
			break;
		done[best] = 1;
		if (x->form == RENDER_JSON)
			json_out_u64(&x->json, report_codec(best, name), n[best]);
		else if (n[best] == all)
			(void)fprintf(x->f, "%s%s", sep, report_codec(best, name));
		else
			(void)fprintf(x->f, "%s%s%s%llu", sep, report_codec(best, name),
			    between, (unsigned long long)n[best]);
	}
	render_close(x);
	if (x->form != RENDER_JSON && *sep == '\0')
		(void)fputc('-', x->f);
}

/* ---- fields that are not numbers ---- */

static const struct {
	uint32_t flag;
	const char *name;
} report_flags[] = {
	{ SHARD_ERROR_FEEDBACK, "error-feedback" },
	{ SHARD_CLIPPED, "clipped" },
	{ SHARD_PREDICTED, "predicted" }
};
enum { NFLAGS = sizeof(report_flags) / sizeof(report_flags[0]) };

static void
report_put_flags(struct render *x, const struct render_field *f, const void *row)
{
	const uint32_t flags = ((const struct report_row *)row)->shard.flags;
	const char *sep = "";
	unsigned i;

	render_open(x, f->name, '[');
	for (i = 0; i < NFLAGS; i++) {
		if ((flags & report_flags[i].flag) == 0)
			continue;
		if (x->form == RENDER_JSON)
			json_out_string(&x->json, NULL, report_flags[i].name);
		else
			(void)fprintf(x->f, "%s%s", sep, report_flags[i].name);
		sep = ", ";
	}
	render_close(x);
	if (x->form != RENDER_JSON && *sep == '\0')
		(void)fputc('-', x->f);
}

static void
report_put_shape(struct render *x, const struct render_field *f, const void *row)
{
	const struct schema_tensor *t = ((const struct report_row *)row)->tensor;
	unsigned d;

	json_out_open(&x->json, f->name, '[');
	for (d = 0; d < t->ndim; d++)
		json_out_u64(&x->json, NULL, t->dim[d]);
	json_out_close(&x->json);
}

/* Print codecs and their numbers of groups: "f32", "topk:5,q8:3". */
static void
report_put_codecs(struct render *x, const struct render_field *f, const void *row)
{
	const struct tally *y = &((const struct report_row *)row)->tally;

	report_codecs(x, f, y, y->codec, y->sent_groups, ":");
}

/* Print codecs and the bytes of their bodies: "ecq 1200,f32 64". */
static void
report_put_coded(struct render *x, const struct render_field *f, const void *row)
{
	const struct tally *y = &((const struct report_row *)row)->tally;

	report_codecs(x, f, y, y->coded, UINT64_MAX, x->form == RENDER_TSV ? ":" : " ");
}

/* ---- all fields ---- */

enum {
	LIST = REPORT_LIST, MORE = REPORT_MORE, HEAD = REPORT_HEAD,
	TAIL = REPORT_TAIL, ID = REPORT_ID, BRIEF = REPORT_BRIEF,
	TABLE = REPORT_TABLE, OBJECT = REPORT_OBJECT,
	PLACE = REPORT_PLACE, NAMED = REPORT_NAMED, SHAPED = REPORT_SHAPED,
	TENSOR = REPORT_TENSOR, TALLY = REPORT_TALLY, STATS = REPORT_STATS,
	DIFF = REPORT_DIFF, VALUES = REPORT_VALUES,
	ALL = ID | LIST | TABLE | PLACE
};
#define FIELD_AS(field, what, member, reports, ...) { .name = (field), \
	.type = RENDER_##what, .at = offsetof(struct report_row, member), \
	.in = (reports), __VA_ARGS__ }
#define FIELD(field, what, member, reports) \
	FIELD_AS(field, what, member, reports, .width = 0)
#define CALL(field, fn, reports, ...) { .name = (field), .put = (fn), \
	.type = RENDER_CALL, .in = (reports), __VA_ARGS__ }
#define WIDE(w) .width = RENDER_WIDE + REPORT_W##w
#define LEFT(w) .width = -RENDER_WIDE - REPORT_W##w
#define ENDED .need = REPORT_ENDED
#define VALUE(field, what) FIELD_AS(#field, what, field, STATS | VALUES | PLACE, \
	.width = 9, .gap = 1, .text = "%.3g")

/* The fields in the order of columns: those of a shard, then of a tensor, of its values and
 * of a difference, and last a tensor's codecs. */
const struct render_field report_fields[] = {
	FIELD("file", NAME, file, ALL),
	FIELD("shard", U64, nth, ID | LIST),
	FIELD("run", NAME, run, ALL),
	FIELD_AS("step", U64, shard.step, TABLE | PLACE | BRIEF, .width = 7),
	FIELD_AS("device", NAME, device, ALL | BRIEF, .width = -10, .gap = 1),
	FIELD("step", U64, shard.step, ID | LIST),
	FIELD_AS("kind", NAME, kind, ALL | BRIEF, .width = -8, .gap = 1),
	FIELD("weight", F64, shard.weight, LIST | HEAD | TABLE),
	FIELD("samples", U64, shard.samples, LIST | HEAD | TABLE),
	FIELD("base_version", U64, shard.base_version, LIST | HEAD | TABLE),
	FIELD("contributors", U32, shard.contributors, LIST | HEAD | TABLE),
	CALL("flags", report_put_flags, LIST | HEAD, .width = 0),
	FIELD("schema", ID, schema, LIST | HEAD),
	FIELD("group_size", U32, group_size, HEAD),
	FIELD("run_id", ID, shard.run, MORE | HEAD),
	FIELD("device_id", ID, shard.device, MORE | HEAD),
	FIELD("incarnation", U32, shard.incarnation, MORE | HEAD),
	FIELD("dropped", U64, end.sums.dropped, TAIL),
	FIELD("sum", F64, end.sums.sum, TAIL),
	FIELD("sum_of_squares", F64, end.sums.sumsq, TAIL),
	FIELD("digest", ID, end.digest, TAIL),
	FIELD_AS("elements", U64, tally.elements, TABLE | OBJECT, ENDED),
	FIELD_AS("bytes", U64, bytes, TABLE | OBJECT | BRIEF, .width = 10, .gap = 1),
	FIELD_AS("bits_per_value", F64, bits, TABLE | OBJECT | BRIEF, ENDED,
	    .head = "bits", .width = 7, .gap = 1, .text = "%.3f"),
	FIELD_AS("norm", F64, norm, TABLE | OBJECT | BRIEF, ENDED, .width = 9,
	    .gap = 1, .text = "%.4g"),
	FIELD_AS("max_abs", F32, end.sums.max_abs, TABLE | OBJECT | TAIL, ENDED),
	FIELD_AS("nonzero", U64, end.sums.nonzero, TABLE | OBJECT | TAIL, ENDED),
	CALL("codecs", report_put_coded, TABLE | OBJECT | BRIEF, ENDED),
	FIELD("error", NAME, error, TABLE | OBJECT),
	FIELD_AS("bandwidth", RATE, bandwidth, TABLE | OBJECT, .need = REPORT_LINKED),
	FIELD_AS("interval", F64, interval, TABLE | OBJECT, .need = REPORT_PACED),

	FIELD_AS("name", NAME, name, NAMED | PLACE, .head = "tensor", LEFT(NAME)),
	FIELD_AS("dtype", NAME, dtype, TENSOR | SHAPED | PLACE, .width = -5),
	FIELD("kind", NAME, schema_kind, SHAPED),
	FIELD_AS("shape", CHARS, shape, TENSOR | PLACE, LEFT(SHAPE)),
	CALL("shape", report_put_shape, SHAPED, .width = 0),
	FIELD_AS("elements", U64, tally.elements, TENSOR | STATS | DIFF | TALLY |
	    PLACE, WIDE(NUM)),
	FIELD_AS("groups", CHARS, groups, TENSOR, WIDE(NUM)),
	FIELD("groups", U64, tally.groups, TALLY | PLACE),
	FIELD("groups_sent", U64, tally.sent_groups, TALLY | PLACE),
	FIELD_AS("bytes", U64, tally.bytes, TENSOR | TALLY | PLACE, WIDE(BYTES)),
	VALUE(min, F32),
	VALUE(max, F32),
	VALUE(mean, F64),
	VALUE(std, F64),
	FIELD("l2", F64, l2, VALUES | PLACE),
	FIELD("max_abs", F32, max_abs, VALUES | PLACE),
	FIELD_AS("zeros", U64, zeros, STATS | VALUES | PLACE, WIDE(NUM), .gap = 1),
	FIELD_AS("nan", U64, nan, STATS | VALUES | PLACE, .width = 3, .gap = 1),
	FIELD_AS("inf", U64, inf, STATS | VALUES | PLACE, .width = 3, .gap = 1),
	FIELD_AS("bits", F64, bits_each, STATS, .width = 5, .gap = 1, .text = "%.2f"),
	FIELD_AS("bits_per_value", F64, bits_each, TENSOR | TALLY | PLACE,
	    .head = "bits/value", .width = 10, .text = "%.4f"),
	FIELD_AS("differ", U64, differ, DIFF, WIDE(NUM)),
	FIELD_AS("max_abs_difference", F64, largest, DIFF,
	    .head = "max |x-y|", .width = 12, .text = "%.5g"),
	FIELD_AS("nmse", F64, nmse, DIFF, .width = 12, .text = "%.5g"),
	FIELD_AS("cosine", F64, cosine, DIFF, .width = 11, .text = "%.8f"),
	CALL("codecs", report_put_codecs, TENSOR | TALLY | PLACE, .head = "codec"),
	{ .name = NULL }
};

int
report_fail(struct report *p, int k, const struct err *e)
{
	if (k >= 0 || p->s.form != RENDER_JSON || p->s.json.depth == 0)
		return k;
	json_out_unwind(&p->s.json, 1);
	json_out_string(&p->s.json, "error", ERR_MSG(e));
	json_out_end(&p->s.json);
	return k;
}
