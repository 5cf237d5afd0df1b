#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "format/array.h"
#include "format/keys.h"
#include "report/changes.h"
#include "report/list.h"
#include "report/report.h"

enum { LIST_NOTES = 16, LIST_TEXT = 64 * 1024 };	/* limits: types; bytes of text */

/* A shard's row and annotations: counts by type, and the contents of pOLi, mEMb and mODL. */
struct list {
	struct report *p;
	struct report_row row;
	struct list_note {
		uint32_t type;
		uint64_t n, bytes;
	} note[LIST_NOTES];
	size_t notes;
	struct buf text;	/* lines "pOLi key=value" as printed, with -v */
	struct text_kv kv;
	struct array_names members;
	struct changes changes;
};

static void
list_provenance(struct report *p, const struct reader *r)
{
	const char *s = reader_provenance(r), *nl;
	const int json = p->s.form == RENDER_JSON;
	char line[1200];

	render_open(&p->s, "provenance", '[');
	for (; (nl = strchr(s, '\n')) != NULL; s = nl + 1) {
		(void)snprintf(line, sizeof(line), "%.*s", (int)(nl - s), s);
		if (json)
			json_out_string(&p->s.json, NULL, line);
		else
			(void)fprintf(p->s.f, "%-13s %s\n", "provenance", line);
	}
	render_close(&p->s);
}

static void
list_text(struct report *p, const struct reader *r, const struct report_row *x)
{
	const struct schema *sc = reader_schema(r);
	size_t i;

	p->s.in = REPORT_LIST;
	render_lines(&p->s, report_fields, x, 0);
	(void)fprintf(p->s.f, "%-13s %zu, %llu elements, %lu groups of %lu\n",
	    "tensors", sc->n, (unsigned long long)sc->total,
	    (unsigned long)sc->ngroups, (unsigned long)sc->group_size);
	if (!p->verbose)
		return;
	p->s.in = REPORT_MORE;
	render_lines(&p->s, report_fields, x, 0);
	for (i = 0; i < x->shard.kv.n; i++)
		(void)fprintf(p->s.f, "%-13s %s=%s\n", "key",
		    x->shard.kv.p[i].key, x->shard.kv.p[i].value);
	if (p->fresh)
		list_provenance(p, r);
}

static void
list_json(struct report *p, const struct reader *r, const struct report_row *x)
{
	struct json_out *j = &p->s.json;
	size_t i;

	report_object(p, x);
	report_put(p, REPORT_HEAD, x, 0);
	json_out_open(j, "keys", '{');
	for (i = 0; i < x->shard.kv.n; i++)
		json_out_string(j, x->shard.kv.p[i].key, x->shard.kv.p[i].value);
	json_out_close(j);
	list_provenance(p, r);
}

static int
list_tensor(void *arg, const struct schema_tensor *t, const struct tally *y,
    struct err *e)
{
	struct list *l = arg;
	struct report *p = l->p;

	report_tensor(&l->row, t, y);
	p->s.in = REPORT_NAMED | (p->s.form == RENDER_JSON ?
	    REPORT_SHAPED | REPORT_TALLY : REPORT_TENSOR);
	render_item(&p->s, report_fields, &l->row, 0);
	return ferror(p->s.f) ? report_flush(p, e) : 0;
}

/* ---- annotations ---- */

/* Append the lines of a pOLi frame to l->text, which is printed after the tensors. Omit
 * lines when it has LIST_TEXT bytes. */
static int
list_lines(struct list *l, const struct reader *r, struct err *e)
{
	const struct chain_frame *f = reader_frame(r);
	struct buf *b = &l->text;
	size_t i;
	int k;

	if ((k = text_get_lines(&l->kv, f->raw, f->raw_len, e)) < 0)
		return reader_place(r, err_after(e, k, " in a pOLi frame"), e);
	for (i = 0; i < l->kv.n && k == 0 && b->n < LIST_TEXT; i++)
		if ((k = buf_puts(b, "pOLi          ", e)) == 0 &&
		    (k = buf_puts(b, l->kv.p[i].key, e)) == 0 &&
		    (k = buf_puts(b, "=", e)) == 0 &&
		    (k = buf_puts(b, l->kv.p[i].value, e)) == 0)
			k = buf_puts(b, "\n", e);
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
	if (i == l->notes && i < LIST_NOTES) {
		memset(&l->note[i], 0, sizeof(l->note[i]));
		l->note[l->notes++].type = f->type;
	}
	if (i < l->notes) {	/* frames of further types are not counted */
		l->note[i].n++;
		l->note[i].bytes += f->raw_len;
	}
	if (l->p->verbose && l->p->s.form != RENDER_JSON && f->type == FRAME_POLI)
		return list_lines(l, r, e);
	if (f->type == FRAME_MEMB)
		return array_get_names(&l->members, f->raw, f->raw_len, e);
	return f->type == FRAME_MODL ? changes_note(&l->changes, r, e) : 0;
}

static void
list_notes(const struct list *l)
{
	struct report *p = l->p;
	char name[16];
	size_t i;

	render_open(&p->s, "annotations", '[');
	for (i = 0; i < l->notes; i++) {
		if (p->s.form == RENDER_JSON) {
			json_out_open(&p->s.json, NULL, '{');
			json_out_string(&p->s.json, "type",
			    frame_name(l->note[i].type, name));
			json_out_u64(&p->s.json, "frames", l->note[i].n);
			json_out_u64(&p->s.json, "bytes", l->note[i].bytes);
			json_out_close(&p->s.json);
		} else {
			(void)fprintf(p->s.f, "%-13s %s, %llu frames, %llu "
			    "bytes\n", "annotation",
			    frame_name(l->note[i].type, name),
			    (unsigned long long)l->note[i].n,
			    (unsigned long long)l->note[i].bytes);
		}
	}
	if (p->s.form == RENDER_JSON) {
		json_out_close(&p->s.json);
		return;
	}
	for (i = 0; i < l->members.n; i++)
		(void)fprintf(p->s.f, "%-13s %s\n", "mEMb", l->members.p[i]);
	if (l->text.n != 0)
		(void)fwrite(l->text.p, 1, l->text.n, p->s.f);
}

/* ---- a shard in detail ---- */

static void
list_end(struct list *l, const struct walk *w, const struct schema *sc)
{
	struct report *p = l->p;
	struct json_out *j = &p->s.json;
	double n = (double)w->total.elements;
	size_t i;

	report_tensor(&l->row, NULL, &w->total);
	if (p->s.form == RENDER_JSON) {
		json_out_close(j);
		json_out_open(j, "total", '{');
		report_put(p, REPORT_TALLY, &l->row, 0);
		json_out_close(j);
		json_out_u64(j, "framed_bytes", w->framed);
		report_put(p, REPORT_TAIL, &l->row, REPORT_ENDED);
		list_notes(l);
		json_out_open(j, "members", '[');
		for (i = 0; i < l->members.n; i++)
			json_out_string(j, NULL, l->members.p[i]);
		json_out_close(j);
		changes_put(&l->changes, p, sc);
		json_out_end(j);
		return;
	}
	report_put(p, REPORT_NAMED | REPORT_TENSOR, &l->row, 0);
	(void)fprintf(p->s.f, "%-13s %llu bytes, %.4f bits/value\n", "framed",
	    (unsigned long long)w->framed,
	    n > 0 ? 8 * (double)w->framed / n : 0);
	list_notes(l);
	changes_put(&l->changes, p, sc);
	p->s.in = REPORT_TAIL;
	if (p->verbose)
		render_lines(&p->s, report_fields, &l->row, REPORT_ENDED);
}

static int
list_shard(struct report *p, struct reader *r, struct err *e)
{
	struct list l = { .p = p, .text = BUF_INIT, .kv = TEXT_KV_INIT,
	    .members = ARRAY_NAMES_INIT, .changes = CHANGES_INIT };
	struct walk w = { .glob = p->glob, .tensor = list_tensor,
	    .note = list_note, .arg = &l };
	int k;

	if ((k = changes_begin(&l.changes, r, e)) < 0) {
		changes_release(&l.changes);
		return k;
	}
	w.sent = l.changes.sent;
	report_shard(p, &l.row, r);
	if (p->s.form == RENDER_JSON) {
		list_json(p, r, &l.row);
		json_out_open(&p->s.json, "tensors", '[');
	} else {
		if (p->begun++)
			(void)fputs("\n", p->s.f);
		list_text(p, r, &l.row);
		report_columns(p, reader_schema(r));
		report_head(p, REPORT_NAMED | REPORT_TENSOR);
	}
	p->fresh = 0;
	if ((k = walk_shard(&w, r, e)) >= 0) {
		l.row.end = *reader_end_of_shard(r);
		list_end(&l, &w, reader_schema(r));
		k = report_flush(p, e);
	}
	walk_release(&w);
	changes_release(&l.changes);
	buf_release(&l.text);
	array_release(&l.members);
	text_release(&l.kv);
	return k;
}

int
list_stream(struct report *p, struct reader *r, struct err *e)
{
	int k;

	(void)reader_skip_bodies(r, 1);
	while ((k = report_next(p, r, e)) > 0)
		if ((k = list_shard(p, r, e)) < 0)
			break;
	return report_fail(p, k, e);
}

/* ---- one line per shard ---- */

struct list_lines {
	struct report *p;
	struct report_row row;
	struct text_kv policy;
	unsigned have;
};

static void
list_heading(struct list_lines *x)
{
	struct report *p = x->p;

	if (p->begun && strcmp(p->run, x->row.run) == 0)
		return;
	(void)fprintf(p->s.f, "%srun ", p->begun ? "\n" : "");
	render_name(p->s.f, x->row.run);
	(void)fputc('\n', p->s.f);
	(void)snprintf(p->run, sizeof(p->run), "%s", x->row.run);
	report_head(p, REPORT_BRIEF);
}

static void
list_line(struct list_lines *x)
{
	struct report *p = x->p;

	if (p->s.form == RENDER_JSON) {
		report_object(p, &x->row);
		report_put(p, REPORT_OBJECT, &x->row, x->have);
		json_out_end(&p->s.json);
	} else if (p->s.form == RENDER_TSV) {
		if (!p->begun)
			report_head(p, REPORT_TABLE);
		report_put(p, REPORT_TABLE, &x->row, x->have);
	} else {
		list_heading(x);
		p->s.in = REPORT_BRIEF;
		render_row(&p->s, report_fields, &x->row, x->have);
		(void)fputs(x->row.error != NULL ? " damaged\n" : "\n", p->s.f);
	}
	p->begun = 1;
}

static int
list_policy(void *arg, const struct reader *r, struct err *e)
{
	struct list_lines *x = arg;

	(void)keys_add(&x->policy, r, NULL);	/* an error matters only to programs that obey it */
	return 0;
}

/* Complete the row after its shard was read without errors. */
static void
list_known(struct list_lines *x, const struct walk *w, const struct reader *r)
{
	struct report_row *v = &x->row;
	uint64_t steps = 0;

	v->end = *reader_end_of_shard(r);
	v->bits = w->total.elements != 0 ? 8 * (double)v->bytes /
	    (double)w->total.elements : 0;
	v->norm = sqrt(v->end.sums.sumsq);
	x->have = REPORT_ENDED;
	if (keys_real(&x->policy, KEYS_BANDWIDTH, &v->bandwidth, "", NULL) > 0)
		x->have |= REPORT_LINKED;
	if (keys_whole(&x->policy, KEYS_INTERVAL, &steps, "", NULL) > 0)
		x->have |= REPORT_PACED;
	v->interval = (double)steps;
}

int
list_brief(struct report *p, struct reader *r, struct err *e)
{
	struct list_lines x = { .p = p };
	struct walk w = { .glob = p->glob, .note = list_policy, .arg = &x };
	int k, was = p->quiet;

	p->quiet = 1;		/* print no receipts: they are not shards */
	(void)reader_skip_bodies(r, 1);
	while ((k = report_next(p, r, e)) > 0) {
		report_shard(p, &x.row, r);
		x.have = 0;
		k = walk_shard(&w, r, e);
		x.row.tally = w.total;
		x.row.bytes = p->glob != NULL ? w.total.bytes : w.framed;
		if (k >= 0)
			list_known(&x, &w, r);
		x.row.error = k < 0 ? ERR_MSG(e) : NULL;
		list_line(&x);
		text_release(&x.policy);
		x.policy = (struct text_kv)TEXT_KV_INIT;
		if (k < 0 || (k = report_flush(p, e)) < 0)
			break;
	}
	p->quiet = was;
	walk_release(&w);
	return k;
}
