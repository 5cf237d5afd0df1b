#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/array.h"
#include "report/list.h"
#include "report/report.h"

enum { LIST_NOTES = 16, LIST_TEXT = 64 * 1024 };

/* The annotations of a shard, counted by type; the text of some of them. */
struct list {
	struct report *p;
	struct list_note {
		uint32_t type;
		uint64_t n, bytes;
	} note[LIST_NOTES];
	size_t notes;
	struct buf text;	/* "pOLi key=value\n"... */
	struct text_kv kv;
	struct array_names members;
};

static const char *const flag_names[] = {
	"error-feedback", "momentum-corrected", "clipped", "recovered",
	"predicted"
};
enum { NFLAGS = sizeof(flag_names) / sizeof(flag_names[0]) };

/* ---- the shard itself ---- */

static void
list_row(const struct report *p, const char *key, const char *value)
{
	(void)fprintf(p->f, "%-13s %s\n", key, value);
}

static void
list_num(const struct report *p, const char *key, uint64_t v)
{
	(void)fprintf(p->f, "%-13s %llu\n", key, (unsigned long long)v);
}

static void
list_hex(struct report *p, const char *key, const unsigned char id[16])
{
	char hex[33];

	shard_hex(id, hex);
	if (p->as_json)
		emit_string(&p->json, key, hex);
	else
		list_row(p, key, hex);
}

static void
list_flags(struct report *p, uint32_t flags)
{
	const char *sep = "";
	unsigned i;

	if (p->as_json)
		emit_open(&p->json, "flags", '[');
	else
		(void)fprintf(p->f, "%-13s ", "flags");
	for (i = 0; i < NFLAGS; i++) {
		if ((flags & (uint32_t)1 << i) == 0)
			continue;
		if (p->as_json)
			emit_string(&p->json, NULL, flag_names[i]);
		else
			(void)fprintf(p->f, "%s%s", sep, flag_names[i]);
		sep = ", ";
	}
	if (p->as_json)
		emit_close(&p->json);
	else
		(void)fprintf(p->f, "%s\n", *sep == '\0' ? "-" : "");
}

/* Provenance, once for every stream. */
static void
list_provenance(struct report *p, const struct reader *r)
{
	const char *s = reader_provenance(r), *nl;
	char line[1200];

	if (p->as_json)
		emit_open(&p->json, "provenance", '[');
	for (; (nl = strchr(s, '\n')) != NULL; s = nl + 1) {
		(void)snprintf(line, sizeof(line), "%.*s", (int)(nl - s), s);
		if (p->as_json)
			emit_string(&p->json, NULL, line);
		else
			list_row(p, "provenance", line);
	}
	if (p->as_json)
		emit_close(&p->json);
}

static void
list_more(struct report *p, const struct shard *s)
{
	size_t i;

	list_hex(p, "run id", s->run);
	list_hex(p, "device id", s->device);
	list_hex(p, "base model", s->base_model);
	list_hex(p, "policy id", s->policy_id);
	list_hex(p, "previous", s->previous);
	list_num(p, "incarnation", s->incarnation);
	list_num(p, "created", s->created);
	list_num(p, "deadline", s->deadline);
	for (i = 0; i < s->kv.n; i++)
		(void)fprintf(p->f, "%-13s %s=%s\n", "key", s->kv.p[i].key,
		    s->kv.p[i].value);
}

static void
list_text(struct report *p, const struct reader *r)
{
	const struct shard *s = reader_shard(r);
	const struct schema *sc = reader_schema(r);

	if (p->file != NULL) {
		(void)fprintf(p->f, "%-13s ", "file");
		report_path(p, p->file);
		(void)fputc('\n', p->f);
	}
	list_num(p, "shard", p->shard);
	list_row(p, "run", shard_run(s));
	list_row(p, "device", shard_device(s));
	list_num(p, "step", s->step);
	list_row(p, "kind", shard_kind_name(s->kind));
	(void)fprintf(p->f, "%-13s %.17g\n", "weight", s->weight);
	list_num(p, "samples", s->samples);
	list_num(p, "base version", s->base_version);
	list_num(p, "contributors", s->contributors);
	list_flags(p, s->flags);
	list_hex(p, "schema", sc->id);
	(void)fprintf(p->f, "%-13s %zu, %llu elements, %lu groups of %lu\n",
	    "tensors", sc->n, (unsigned long long)sc->total,
	    (unsigned long)sc->ngroups, (unsigned long)sc->group_size);
	if (!p->verbose)
		return;
	list_more(p, s);
	if (p->fresh)
		list_provenance(p, r);
}

static void
list_json(struct report *p, const struct reader *r)
{
	const struct shard *s = reader_shard(r);
	const struct schema *sc = reader_schema(r);
	struct emit *j = &p->json;
	size_t i;

	report_object(p, s);
	emit_f64(j, "weight", s->weight);
	emit_u64(j, "samples", s->samples);
	emit_u64(j, "base_version", s->base_version);
	emit_u64(j, "contributors", s->contributors);
	emit_u64(j, "incarnation", s->incarnation);
	emit_u64(j, "created", s->created);
	emit_u64(j, "deadline", s->deadline);
	list_flags(p, s->flags);
	list_hex(p, "run_id", s->run);
	list_hex(p, "device_id", s->device);
	list_hex(p, "base_model", s->base_model);
	list_hex(p, "policy_id", s->policy_id);
	list_hex(p, "previous", s->previous);
	list_hex(p, "schema", sc->id);
	emit_u64(j, "group_size", sc->group_size);
	emit_open(j, "keys", '{');
	for (i = 0; i < s->kv.n; i++)
		emit_string(j, s->kv.p[i].key, s->kv.p[i].value);
	emit_close(j);
	list_provenance(p, r);
}

/* ---- tensors ---- */

static void
list_columns(const struct report *p)
{
	report_name(p, "tensor");
	(void)fprintf(p->f, "  %-5s  %-*s  %*s  %*s  %*s  %10s  %s\n", "dtype",
	    p->wshape, "shape", p->wnum, "elements", p->wnum, "groups",
	    p->wnum + 1, "bytes", "bits/param", "codec");
}

static void
list_line(const struct report *p, const char *name, const char *dtype,
    const char *shape, const struct tally *y)
{
	char codecs[512], groups[64];

	(void)snprintf(groups, sizeof(groups), "%llu/%llu",
	    (unsigned long long)y->sent_groups, (unsigned long long)y->groups);
	report_name(p, name);
	(void)fprintf(p->f, "  %-5s  %-*s  %*llu  %*s  %*llu  %10.4f  %s\n",
	    dtype, p->wshape, shape, p->wnum, (unsigned long long)y->elements,
	    p->wnum, groups, p->wnum + 1, (unsigned long long)y->bytes,
	    walk_bits(y), report_codecs(y, codecs));
}

static int
list_tensor(void *arg, const struct schema_tensor *t, const struct tally *y,
    struct err *e)
{
	struct list *l = arg;
	struct report *p = l->p;
	char shape[200];

	if (p->as_json) {
		emit_open(&p->json, NULL, '{');
		report_tensor(p, t);
		report_tally(p, y);
		emit_close(&p->json);
	} else {
		list_line(p, t->name, schema_dtype_name(t->dtype),
		    report_shape(t, shape), y);
	}
	return ferror(p->f) ? report_flush(p, e) : 0;
}

/* ---- annotations ---- */

/* The lines of a pOLi, lINk or tEXt frame, for later. */
static int
list_lines(struct list *l, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	char name[16], line[2 * TEXT_MAX_KEY];
	size_t i;
	int k;

	if ((k = text_get_lines(&l->kv, f->raw, f->raw_len, e)) < 0)
		return reader_place(r, err_after(e, k, " in a %s frame",
		    frame_name(f->type, name)), e);
	for (i = 0; i < l->kv.n && l->text.n < LIST_TEXT; i++) {
		(void)snprintf(line, sizeof(line), "%-13s %s=",
		    frame_name(f->type, name), l->kv.p[i].key);
		if ((k = buf_put(&l->text, line, strlen(line), e)) < 0 ||
		    (k = buf_put(&l->text, l->kv.p[i].value,
		    strlen(l->kv.p[i].value), e)) < 0 ||
		    (k = buf_put(&l->text, "\n", 1, e)) < 0)
			return k;
	}
	return 0;
}

static int
list_say(struct list *l, const char *type, const char *name,
    const char *value, struct err *e)
{
	char line[16];
	int r;

	(void)snprintf(line, sizeof(line), "%-13s ", type);
	if (l->text.n >= LIST_TEXT)
		return 0;
	if ((r = buf_put(&l->text, line, strlen(line), e)) < 0 ||
	    (r = buf_put(&l->text, name, strlen(name), e)) < 0 ||
	    (r = buf_put(&l->text, value, strlen(value), e)) < 0)
		return r;
	return buf_put(&l->text, "\n", 1, e);
}

/* Names, for the end. */
static int
list_members(struct list *l, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	size_t i = l->members.n;
	int k = array_get_names(&l->members, f->raw, f->raw_len, e);

	for (; k == 0 && i < l->members.n; i++)
		k = list_say(l, "mEMb", l->members.p[i], "", e);
	return k;
}

static int
list_times(struct list *l, const struct reader *r, struct err *e)
{
	const struct schema *sc = reader_schema(r);
	double *v = alloc_get(sc->n, sizeof(*v), e);
	char value[32];
	size_t i;
	int k = v == NULL ? -ERR_SYS : array_get_times(reader_frame(r)->raw,
	    reader_frame(r)->raw_len, sc->n, v, e);

	for (i = 0; k == 0 && i < sc->n; i++) {
		(void)snprintf(value, sizeof(value), "=%.9g", v[i]);
		k = list_say(l, "tIMe", sc->t[i].name, value, e);
	}
	alloc_free(v);
	return k;
}

static int
list_note(void *arg, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct list *l = arg;
	size_t i;

	for (i = 0; i < l->notes; i++)
		if (l->note[i].type == f->type)
			break;
	if (i == LIST_NOTES)
		return 0;	/* so many kinds: nobody would read them */
	if (i == l->notes) {
		memset(&l->note[i], 0, sizeof(l->note[i]));
		l->note[l->notes++].type = f->type;
	}
	l->note[i].n++;
	l->note[i].bytes += f->raw_len;
	if (l->p->verbose && !l->p->as_json && (f->type == FRAME_POLI ||
	    f->type == FRAME_LINK || f->type == FRAME_TEXT))
		return list_lines(l, r, e);
	if (f->type == FRAME_MEMB)
		return list_members(l, r, e);
	return f->type == FRAME_TIME ? list_times(l, r, e) : 0;
}

static void
list_notes(const struct list *l)
{
	struct report *p = l->p;
	char name[16];
	size_t i;

	if (p->as_json)
		emit_open(&p->json, "annotations", '[');
	for (i = 0; i < l->notes; i++) {
		if (p->as_json) {
			emit_open(&p->json, NULL, '{');
			emit_string(&p->json, "type",
			    frame_name(l->note[i].type, name));
			emit_u64(&p->json, "frames", l->note[i].n);
			emit_u64(&p->json, "bytes", l->note[i].bytes);
			emit_close(&p->json);
		} else {
			(void)fprintf(p->f, "%-13s %s, %llu frames, %llu "
			    "bytes\n", "annotation",
			    frame_name(l->note[i].type, name),
			    (unsigned long long)l->note[i].n,
			    (unsigned long long)l->note[i].bytes);
		}
	}
	if (p->as_json)
		emit_close(&p->json);
	else
		(void)fwrite(l->text.p != NULL ? l->text.p :
		    (const unsigned char *)"", 1, l->text.n, p->f);
}

/* ---- */

static void
list_end(struct list *l, const struct walk *w, const struct shard_end *end)
{
	struct report *p = l->p;
	struct emit *j = &p->json;
	double n = (double)w->total.elements;
	size_t i;

	if (p->as_json) {
		emit_close(j);
		emit_open(j, "total", '{');
		report_tally(p, &w->total);
		emit_close(j);
		emit_u64(j, "framed_bytes", w->framed);
		emit_u64(j, "nonzero", end->sums.nonzero);
		emit_u64(j, "dropped", end->sums.dropped);
		emit_f64(j, "sum", end->sums.sum);
		emit_f64(j, "sum_of_squares", end->sums.sumsq);
		emit_f32(j, "max_abs", end->sums.max_abs);
		list_hex(p, "digest", end->digest);
		list_notes(l);
		emit_open(j, "members", '[');
		for (i = 0; i < l->members.n; i++)
			emit_string(j, NULL, l->members.p[i]);
		emit_close(j);
		emit_end(j);
		return;
	}
	list_line(p, "total", "", "", &w->total);
	(void)fprintf(p->f, "%-13s %llu bytes, %.4f bits/param\n", "framed",
	    (unsigned long long)w->framed,
	    n > 0 ? 8 * (double)w->framed / n : 0);
	list_notes(l);
	if (!p->verbose)
		return;
	(void)fprintf(p->f, "%-13s %llu nonzero, %llu dropped, sum %.9g, sum "
	    "of squares %.9g, max_abs %.9g\n", "end",
	    (unsigned long long)end->sums.nonzero,
	    (unsigned long long)end->sums.dropped, end->sums.sum,
	    end->sums.sumsq, (double)end->sums.max_abs);
	list_hex(p, "digest", end->digest);
}

static int
list_shard(struct report *p, struct reader *r, struct err *e)
{
	struct list l = { .p = p, .text = BUF_INIT, .kv = TEXT_KV_INIT,
	    .members = ARRAY_NAMES_INIT };
	struct walk w = { .glob = p->glob, .tensor = list_tensor,
	    .note = list_note, .arg = &l };
	int k;

	if (p->as_json) {
		list_json(p, r);
		emit_open(&p->json, "tensors", '[');
	} else {
		if (p->listed++)
			(void)fputs("\n", p->f);
		list_text(p, r);
		report_columns(p, reader_schema(r));
		list_columns(p);
	}
	p->fresh = 0;
	if ((k = walk_shard(&w, r, e)) >= 0) {
		list_end(&l, &w, reader_end_of_shard(r));
		k = report_flush(p, e);
	}
	walk_release(&w);
	buf_release(&l.text);
	array_release(&l.members);
	text_release(&l.kv);
	return k;
}

int
list_stream(struct report *p, struct reader *r, struct err *e)
{
	int k;

	(void)reader_skim(r, 1);
	while ((k = report_next(p, r, e)) > 0)
		if ((k = list_shard(p, r, e)) < 0)
			break;
	return report_fail(p, k, e);
}
