#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "base/scan.h"
#include "format/receipt.h"
#include "format/shard.h"
#include "format/text.h"
#include "pipe/pick.h"
#include "pipe/source.h"
#include "report/report.h"
#include "spool/inbox.h"

void
report_init(struct report *p, FILE *f, const struct kern *k)
{
	memset(p, 0, sizeof(*p));
	p->f = f;
	p->kern = k;
	p->width = 80;
	emit_init(&p->json, f);
}

int
report_take(struct report_in *in, struct io *io, const struct reader_opts *o,
    struct err *e)
{
	in->io = io;
	return reader_open(&in->r, io, o, e);
}

int
report_open(struct report_in *in, const char *path,
    const struct reader_opts *o, struct err *e)
{
	int k = source_io(&in->io, path, e);

	in->r = NULL;
	return k < 0 ? k : report_take(in, in->io, o, e);
}

void
report_close(struct report_in *in)
{
	reader_free(in->r);
	in->r = NULL;
	in->io = NULL;
}

static void
report_receipt_json(struct report *p, const struct receipt *rc,
    const char *device)
{
	struct emit *j = &p->json;
	char hex[33];

	emit_open(j, NULL, '{');
	if (p->file != NULL)
		emit_string(j, "file", p->file);
	emit_string(j, "verdict", receipt_verdict_name(rc->verdict));
	emit_string(j, "reason", rc->reason);
	if (device != NULL)
		emit_string(j, "device", device);
	emit_u64(j, "step", rc->step);
	shard_hex(rc->run, hex);
	emit_string(j, "run_id", hex);
	shard_hex(rc->device, hex);
	emit_string(j, "device_id", hex);
	shard_hex(rc->digest, hex);
	emit_string(j, "digest", hex);
	emit_u64(j, "clock", rc->clock);
	emit_u64(j, "version", rc->version);
	emit_end(j);
}

/*
 * A receipt has only a hash of its device's name, but in a spool the files of shards
 * beside it begin with the name itself, as in DEVICE.(...).
 */
struct report_names {
	const unsigned char *id;
	char *out;
};

static int
report_names_each(void *arg, const char *file, struct err *e)
{
	struct report_names *x = arg;
	char name[SHARD_NAME + 1];
	unsigned char id[SHARD_ID];

	(void)e;
	if (!inbox_device(file, name, id) || name[0] == '\0' ||
	    memcmp(id, x->id, SHARD_ID) != 0)
		return 0;
	(void)snprintf(x->out, SHARD_NAME + 1, "%s", name);
	return 1;
}

/* In the directory of the file at path: 1 with the name whose hash is id, or 0 with
 * the hash in hex. */
static int
report_device(const char *path, const unsigned char id[SHARD_ID],
    char out[SHARD_NAME + 1])
{
	struct report_names x = { id, out };
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) + 1 : 0;
	char *dir = alloc_get(n + 2, 1, NULL);
	int found = 0;

	if (dir != NULL) {
		memcpy(dir, n != 0 ? path : ".", n != 0 ? n : 1);
		found = scan(dir, report_names_each, &x, NULL) == 1;
	}
	alloc_free(dir);
	if (!found)
		shard_hex(id, out);
	return found;
}

static int
report_receipt(struct report *p, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	char device[SHARD_NAME + 1], hex[33];
	struct receipt rc;
	int k, named;

	if ((k = receipt_decode(&rc, f->raw, f->raw_len, e)) < 0 || p->quiet)
		return k;
	named = report_device(reader_name(r), rc.device, device);
	if (p->as_json) {
		report_receipt_json(p, &rc, named ? device : NULL);
		return 0;
	}
	(void)fprintf(p->f, "%-13s ", "receipt");
	if (p->file != NULL) {
		report_path(p, p->file);
		(void)fputs(": ", p->f);
	}
	report_path(p, device);
	(void)fprintf(p->f, " step %llu: %s%s%s\n",
	    (unsigned long long)rc.step, receipt_verdict_name(rc.verdict),
	    rc.reason[0] != '\0' ? ": " : "", rc.reason);
	if (p->verbose) {
		shard_hex(rc.digest, hex);
		(void)fprintf(p->f, "%-13s digest %s, version %llu, at %llu\n",
		    "", hex, (unsigned long long)rc.version,
		    (unsigned long long)rc.clock);
	}
	return 0;
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
			if (p->pick == NULL || pick_wants(p->pick,
			    reader_shard(r)))
				return 1;
			if ((k = pick_pass(r, e)) < 0)
				return k;
			continue;
		}
		if (k == READER_RCPT && p->pick == NULL && (k = report_receipt(p, r, e)) < 0)
			return k;
	}
	return k;
}

int
report_flush(struct report *p, struct err *e)
{
	if (fflush(p->f) == 0 && !ferror(p->f))
		return 0;
	if (e != NULL && errno == EPIPE)
		e->quiet = 1;
	return err_sys(e, "'<stdout>'");
}

void
report_path(const struct report *p, const char *name)
{
	int clean = text_clean(name, strlen(name));

	for (; *name != '\0'; name++)
		(void)fputc(clean || (*name >= 0x20 && *name < 0x7f) ?
		    *name : '?', p->f);
}

void
report_heading(const struct report *p, const struct shard *s)
{
	if (p->file != NULL) {
		report_path(p, p->file);
		(void)fputs(": ", p->f);
	}
	(void)fprintf(p->f, "shard %llu '%s/%llu'",
	    (unsigned long long)p->shard, shard_device(s),
	    (unsigned long long)s->step);
}

void
report_object(struct report *p, const struct shard *s)
{
	struct emit *j = &p->json;

	emit_open(j, NULL, '{');
	if (p->file != NULL)
		emit_string(j, "file", p->file);
	emit_u64(j, "shard", p->shard);
	emit_string(j, "run", shard_run(s));
	emit_string(j, "device", shard_device(s));
	emit_u64(j, "step", s->step);
	emit_string(j, "kind", shard_kind_name(s->kind));
}

/* ---- tables ---- */

int
report_chars(const char *s)
{
	int n = 0;

	for (; *s != '\0'; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

static int
report_digits(uint64_t v)
{
	int n = 1;

	while (v >= 10) {
		v /= 10;
		n++;
	}
	return n;
}

void
report_columns(struct report *p, const struct schema *sc)
{
	char shape[200];
	uint64_t sum = 0;
	size_t i;
	int n;

	p->wname = (int)sizeof("tensor") - 1;
	p->wshape = (int)sizeof("shape") - 1;
	for (i = 0; i < sc->n; i++) {
		if (!walk_wants(p->glob, &sc->t[i]))
			continue;
		n = report_chars(sc->t[i].name);
		p->wname = n > p->wname ? n : p->wname;
		n = (int)strlen(report_shape(&sc->t[i], shape));
		p->wshape = n > p->wshape ? n : p->wshape;
		sum += sc->t[i].numel;
	}
	n = report_digits(sum);
	p->wnum = n > 8 ? n : 8;
}

void
report_name(const struct report *p, const char *name)
{
	(void)fprintf(p->f, "%s%*s", name, p->wname - report_chars(name), "");
}

const char *
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

const char *
report_codec(unsigned c, char buf[16])
{
	const char *name = codec_name(c);

	if (name != NULL)
		return name;
	(void)snprintf(buf, 16, "codec-%u", c);
	return buf;
}

const char *
report_codecs(const struct tally *y, char buf[512])
{
	char name[16];
	size_t n = 0;
	unsigned c;

	(void)snprintf(buf, 512, "-");
	for (c = 0; c < CODEC_MAX && n < 480; c++) {
		if (y->codec[c] == 0)
			continue;
		n += (size_t)snprintf(buf + n, 512 - n, "%s%s",
		    n != 0 ? "," : "", report_codec(c, name));
		if (y->codec[c] != y->sent_groups)
			n += (size_t)snprintf(buf + n, 512 - n, ":%llu",
			    (unsigned long long)y->codec[c]);
	}
	return buf;
}

void
report_tensor(struct report *p, const struct schema_tensor *t)
{
	struct emit *j = &p->json;
	unsigned d;

	emit_string(j, "name", t->name);
	emit_string(j, "dtype", schema_dtype_name(t->dtype));
	emit_string(j, "kind", schema_kind_name(t->kind));
	emit_open(j, "shape", '[');
	for (d = 0; d < t->ndim; d++)
		emit_u64(j, NULL, t->dim[d]);
	emit_close(j);
}

void
report_tally(struct report *p, const struct tally *y)
{
	struct emit *j = &p->json;
	char name[16];
	unsigned c;

	emit_u64(j, "elements", y->elements);
	emit_u64(j, "groups", y->groups);
	emit_u64(j, "groups_sent", y->sent_groups);
	emit_u64(j, "bytes", y->bytes);
	emit_f64(j, "bits_per_parameter", walk_bits(y));
	emit_open(j, "codecs", '{');
	for (c = 0; c < CODEC_MAX; c++)
		if (y->codec[c] != 0)
			emit_u64(j, report_codec(c, name), y->codec[c]);
	emit_close(j);
}

int
report_fail(struct report *p, int k, const struct err *e)
{
	if (k >= 0 || !p->as_json || p->json.depth == 0)
		return k;
	emit_unwind(&p->json, 1);
	emit_string(&p->json, "error", ERR_MSG(e));
	emit_end(&p->json);
	return k;
}
