#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/text.h"
#include "pipe/emit.h"

void
emit_init(struct emit *j, FILE *f)
{
	memset(j, 0, sizeof(*j));
	j->f = f;
}

static void
emit_text(struct emit *j, const char *s)
{
	size_t left = strlen(s), k;

	(void)fputc('"', j->f);
	while (left != 0) {
		for (k = 1; k < 4 && k < left && !text_clean(s, k);)
			k++;
		if (*s == '"' || *s == '\\') {
			(void)fprintf(j->f, "\\%c", *s);
		} else if ((unsigned char)*s < 0x20) {
			(void)fprintf(j->f, "\\u%04x", (unsigned)*s);
			k = 1;
		} else if (text_clean(s, k)) {
			(void)fwrite(s, 1, k, j->f);
		} else {
			(void)fputs("\\ufffd", j->f);
			k = 1;
		}
		s += k;
		left -= k;
	}
	(void)fputc('"', j->f);
}

/* Write the comma before a member, and its name. */
static void
emit_place(struct emit *j, const char *key)
{
	if (j->used[j->depth] && j->depth != 0)
		(void)fputc(',', j->f);
	j->used[j->depth] = 1;
	if (key == NULL)
		return;
	emit_text(j, key);
	(void)fputc(':', j->f);
}

void
emit_open(struct emit *j, const char *key, char bracket)
{
	emit_place(j, key);
	(void)fputc(bracket, j->f);
	if (j->depth == EMIT_DEPTH)
		return;			/* no caller goes so deep */
	j->depth++;
	j->used[j->depth] = 0;
	j->end[j->depth] = bracket == '{' ? '}' : ']';
}

void
emit_close(struct emit *j)
{
	if (j->depth == 0)
		return;
	(void)fputc(j->end[j->depth], j->f);
	j->depth--;
}

void
emit_string(struct emit *j, const char *key, const char *s)
{
	emit_place(j, key);
	emit_text(j, s);
}

void
emit_bool(struct emit *j, const char *key, int v)
{
	emit_place(j, key);
	(void)fputs(v ? "true" : "false", j->f);
}

void
emit_u64(struct emit *j, const char *key, uint64_t v)
{
	emit_place(j, key);
	(void)fprintf(j->f, "%llu", (unsigned long long)v);
}

/* Write the number with the fewest digits that restore it. */
static void
emit_number(struct emit *j, const char *key, double v, int digits, int single)
{
	char s[32];
	int most = single ? 9 : 17;

	emit_place(j, key);
	if (!isfinite(v)) {
		(void)fputs("null", j->f);
		return;
	}
	do
		(void)snprintf(s, sizeof(s), "%.*g", digits, v);
	while ((single ? (double)strtof(s, NULL) : strtod(s, NULL)) != v &&
	    ++digits <= most);
	(void)fputs(s, j->f);
}

void
emit_f64(struct emit *j, const char *key, double v)
{
	emit_number(j, key, v, 15, 0);
}

void
emit_f32(struct emit *j, const char *key, float v)
{
	emit_number(j, key, (double)v, 6, 1);
}

void
emit_unwind(struct emit *j, int depth)
{
	while (j->depth > depth)
		emit_close(j);
}

void
emit_end(struct emit *j)
{
	emit_unwind(j, 0);
	(void)fputc('\n', j->f);
	j->used[0] = 0;
}
