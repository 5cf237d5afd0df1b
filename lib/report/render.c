#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "format/shard.h"
#include "format/text.h"
#include "report/render.h"

void
render_name(FILE *f, const char *name)
{
	int clean = text_clean(name, strlen(name));

	for (; *name != '\0'; name++)
		(void)fputc(clean || (*name >= 0x20 && *name < 0x7f) ? *name : '?', f);
}

int
render_chars(const char *s)
{
	int n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

const char *
render_ago(double secs, char out[32])
{
	if (!(secs > 0))
		secs = 0;
	if (secs < 120)
		(void)snprintf(out, 32, "%.0f s", secs);
	else if (secs < 7200)
		(void)snprintf(out, 32, "%.0f m", secs / 60);
	else if (secs < 172800)
		(void)snprintf(out, 32, "%.1f h", secs / 3600);
	else
		(void)snprintf(out, 32, "%.1f d", secs / 86400);
	return out;
}

/* The value of a field as a number or name. */
union render_value {
	uint64_t u;
	double f;
	const char *s;
};

static union render_value
render_get(const struct render_field *f, const void *row, char hex[33])
{
	const char *at = (const char *)row + f->at;
	union render_value v = { 0 };
	uint32_t u;
	float x;

	switch (f->type) {
	case RENDER_U32: case RENDER_FLAG:
		memcpy(&u, at, sizeof(u));
		v.u = u;
		break;
	case RENDER_F32:
		memcpy(&x, at, sizeof(x));
		v.f = (double)x;
		break;
	case RENDER_ID:
		shard_hex((const unsigned char *)at, hex);
		v.s = hex;
		break;
	case RENDER_CHARS:
		v.s = at;
		break;
	case RENDER_CALL:
		break;
	default:
		memcpy(&v, at, sizeof(v));
	}
	return v;
}

/* ---- metrics ---- */

/* Append s to a sample; quoted: as the value of a label.  In a label that is not clean text
 * each byte that is not printable ASCII becomes a question mark, since one invalid byte would
 * make Prometheus reject the whole file. */
static void
render_put(struct render *x, struct buf *to, const char *s, int quoted)
{
	const int clean = !quoted || text_clean(s, strlen(s));
	char c[2] = "\\";

	for (; *s != '\0' && x->failed == 0; s++) {
		c[1] = clean || (*s >= 0x20 && *s < 0x7f) ? *s : '?';
		x->failed = quoted && (c[1] == '"' || c[1] == '\\') ?
		    buf_put(to, c, 2, x->e) : buf_put(to, c + 1, 1, x->e);
	}
}

void
render_sample(struct render *x, const struct render_field *f, double v)
{
	static const char *const key[RENDER_LABELS] = { "{directory=\"",
		",run=\"", ",device=\"", ",verdict=\"" };
	char number[40];
	struct buf *to;
	size_t i;

	for (i = 0; i < x->families && x->family[i] != f; i++)
		;
	if (i == x->families)
		x->family[x->families++] = f;
	to = &x->sample[i];
	render_put(x, to, f->family, 0);
	for (i = 0; i < RENDER_LABELS; i++) {
		if (x->label[i] == NULL)
			continue;
		render_put(x, to, key[i], 0);
		render_put(x, to, x->label[i], 1);
		render_put(x, to, "\"", 0);
	}
	(void)snprintf(number, sizeof(number), "} %.15g\n", v);
	render_put(x, to, number, 0);
}

int
render_metrics(struct render *x)
{
	const char *name;
	size_t i;

	for (i = 0; i < x->families; i++) {
		name = x->family[i]->family;
		if (x->failed == 0 && x->sample[i].n != 0) {
			(void)fprintf(x->f, "# HELP %s %s\n# TYPE %s %s\n", name,
			    x->family[i]->help, name, strstr(name, "_total") !=
			    NULL ? "counter" : "gauge");
			(void)fwrite(x->sample[i].p, 1, x->sample[i].n, x->f);
		}
		buf_release(&x->sample[i]);
	}
	/* a file without this line is incomplete */
	if (x->failed == 0)
		(void)fputs("# EOF\n", x->f);
	return x->failed;
}

/* Return a field's value as the number of a metric. */
static double
render_real(const struct render_field *f, union render_value v)
{
	return f->type == RENDER_RATE ? v.f / 8 : f->type == RENDER_F64 ||
	    f->type == RENDER_F32 || f->type == RENDER_AGO ? v.f : (double)v.u;
}

/* Format a field's number as text or for a table with tabs. */
static const char *
render_number(const struct render_field *f, int tsv, union render_value v, char out[64])
{
	switch (f->type) {
	case RENDER_SIZE:
		if (!tsv)
			return num_text((double)v.u, "B", out);
		/* FALLTHROUGH */
	case RENDER_U64: case RENDER_U32: case RENDER_FLAG:
		(void)snprintf(out, 64, "%llu", (unsigned long long)v.u);
		break;
	case RENDER_AGO: case RENDER_RATE:
		if (!tsv && f->type == RENDER_AGO)
			return render_ago(v.f, out);
		(void)snprintf(out, 64, tsv ? "%.9g" : "%.1f", tsv ? v.f : v.f / 1e6);
		break;
	default:
		(void)snprintf(out, 64, tsv || f->text == NULL ? "%.9g" : f->text, v.f);
	}
	return out;
}

static void
render_member(struct render *x, const struct render_field *f, const void *row)
{
	char hex[33];
	union render_value v = render_get(f, row, hex);
	struct json_out *j = &x->json;

	if (f->type == RENDER_CALL) {
		f->put(x, f, (const char *)row + f->at);
		return;
	}
	if (x->form == RENDER_METRICS) {
		if (f->family != NULL)
			render_sample(x, f, render_real(f, v));
		return;
	}
	switch (f->type) {
	case RENDER_U64: case RENDER_U32: case RENDER_SIZE:
		json_out_u64(j, f->name, v.u);
		break;
	case RENDER_F64: case RENDER_AGO: case RENDER_RATE:
		json_out_f64(j, f->name, v.f);
		break;
	case RENDER_F32:
		json_out_f32(j, f->name, (float)v.f);
		break;
	case RENDER_FLAG:
		json_out_bool(j, f->name, v.u != 0);
		break;
	default:
		if (v.s != NULL)
			json_out_string(j, f->name, v.s);
	}
}

/* Print a field, right-aligned in `to' columns if to > 0, and return how many columns it took
 * (0 for RENDER_CALL). */
static int
render_cell(struct render *x, const struct render_field *f, const void *row, int to)
{
	char hex[33], out[64];
	union render_value v = render_get(f, row, hex);
	const char *s = v.s;
	int n = 0;

	if (f->type == RENDER_CALL) {
		f->put(x, f, (const char *)row + f->at);
		return 0;
	}
	if (f->type != RENDER_NAME && f->type != RENDER_CHARS && f->type != RENDER_ID)
		s = render_number(f, x->form == RENDER_TSV, v, out);
	if (s == NULL)
		s = "";
	n = render_chars(s);
	if (to > n)
		(void)fprintf(x->f, "%*s", to - n, "");
	render_name(x->f, s);
	return to > n ? to : n;
}

/* ---- tables ---- */

static int
render_is_table(const struct render *x)
{
	return x->form == RENDER_TEXT || x->form == RENDER_TSV;
}

static int
render_shows(const struct render *x, const struct render_field *f)
{
	return (f->in & x->in) != 0;
}

/* Return the width of a column, < 0 if it is left-aligned. */
static int
render_wide(const struct render *x, const struct render_field *f)
{
	return f->width < RENDER_WIDE && f->width > -RENDER_WIDE ? f->width :
	    f->width > 0 ? x->wide[f->width - RENDER_WIDE] :
	    -x->wide[-f->width - RENDER_WIDE];
}

/* Narrow x->wide[0], the width of the first column or of none, so that a line fits into the
 * terminal. */
static void
render_fit(struct render *x, const struct render_field *f)
{
	int all = 0, head, wide;

	for (; f->name != NULL; f++) {
		if (!render_shows(x, f))
			continue;
		wide = abs(render_wide(x, f));
		head = (int)strlen(f->head != NULL ? f->head : f->name);
		all += (all == 0 ? 0 : f->gap != 0 ? f->gap : 2) +
		    (wide > head ? wide : head);
	}
	all -= x->columns > 0 ? x->columns : 80;
	if (all > 0)
		x->wide[0] = x->wide[0] > all ? x->wide[0] - all : 1;
}

/* Print a line of a table; row NULL: the head. Left-aligned text is padded only if something
 * follows. If the first column is left-aligned and its text too wide, the text has its own line. */
static void
render_line(struct render *x, const struct render_field *f, const void *row,
    unsigned have)
{
	int any = 0, blanks = 0, wide = 0, n = 0;

	for (; f->name != NULL; f++) {
		if (!render_shows(x, f))
			continue;
		if (x->form == RENDER_TSV) {
			if (any++)
				(void)fputc('\t', x->f);
			if (row == NULL)
				(void)fputs(f->name, x->f);
			else if ((f->need & ~have) == 0)
				(void)render_cell(x, f, row, 0);
			continue;
		}
		if (any == 1 && wide < 0 && n > -wide) {
			(void)fputc('\n', x->f);
			blanks = -wide;
		}
		if (any++)
			(void)fprintf(x->f, "%*s", blanks + (f->gap != 0 ?
			    f->gap : 2), "");
		wide = render_wide(x, f);
		if (row == NULL || (f->need & ~have) != 0)
			n = fprintf(x->f, "%*s", wide > 0 ? wide : 0,
			    row != NULL ? "-" : f->head != NULL ? f->head : f->name);
		else
			n = render_cell(x, f, row, wide);
		blanks = wide < 0 && -wide > n ? -wide - n : 0;
	}
}

void
render_head(struct render *x, const struct render_field *t)
{
	if (!render_is_table(x))
		return;
	if (x->form == RENDER_TEXT)
		render_fit(x, t);
	render_line(x, t, NULL, 0);
	(void)fputc('\n', x->f);
}

void
render_row(struct render *x, const struct render_field *t, const void *row,
    unsigned have)
{
	if (render_is_table(x)) {
		render_line(x, t, row, have);
		return;
	}
	for (; t->name != NULL; t++)
		if (render_shows(x, t) && (t->need & ~have) == 0)
			render_member(x, t, row);
}

void
render_open(struct render *x, const char *key, char bracket)
{
	if (x->form == RENDER_JSON)
		json_out_open(&x->json, key, bracket);
}

void
render_close(struct render *x)
{
	if (x->form == RENDER_JSON)
		json_out_close(&x->json);
}

void
render_item(struct render *x, const struct render_field *t, const void *row,
    unsigned have)
{
	render_open(x, NULL, '{');
	render_row(x, t, row, have);
	render_close(x);
	if (render_is_table(x))
		(void)fputc('\n', x->f);
}

void
render_lines(struct render *x, const struct render_field *f, const void *row,
    unsigned have)
{
	char hex[33];
	const char *s;

	for (; f->name != NULL; f++) {
		if (!render_shows(x, f) || (f->need & ~have) != 0 ||
		    (f->type == RENDER_NAME && render_get(f, row, hex).s == NULL))
			continue;
		for (s = f->name; *s != '\0'; s++)
			(void)fputc(*s == '_' ? ' ' : *s, x->f);
		(void)fprintf(x->f, "%*s", strlen(f->name) < 14 ?
		    14 - (int)strlen(f->name) : 1, "");
		(void)render_cell(x, f, row, 0);
		(void)fputc('\n', x->f);
	}
}
