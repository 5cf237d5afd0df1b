#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/text.h"
#include "pipe/json_out.h"

void
json_out_init(struct json_out *j, FILE *f)
{
	memset(j, 0, sizeof(*j));
	j->f = f;
}

static void
json_out_text(struct json_out *j, const char *s)
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
json_out_place(struct json_out *j, const char *key)
{
	if (j->used[j->depth] && j->depth != 0)
		(void)fputc(',', j->f);
	j->used[j->depth] = 1;
	if (key == NULL)
		return;
	json_out_text(j, key);
	(void)fputc(':', j->f);
}

void
json_out_open(struct json_out *j, const char *key, char bracket)
{
	json_out_place(j, key);
	(void)fputc(bracket, j->f);
	if (j->depth == JSON_OUT_DEPTH)
		return;			/* no caller opens more levels */
	j->depth++;
	j->used[j->depth] = 0;
	j->end[j->depth] = bracket == '{' ? '}' : ']';
}

void
json_out_close(struct json_out *j)
{
	if (j->depth == 0)
		return;
	(void)fputc(j->end[j->depth], j->f);
	j->depth--;
}

void
json_out_string(struct json_out *j, const char *key, const char *s)
{
	json_out_place(j, key);
	json_out_text(j, s);
}

void
json_out_bool(struct json_out *j, const char *key, int v)
{
	json_out_place(j, key);
	(void)fputs(v ? "true" : "false", j->f);
}

void
json_out_u64(struct json_out *j, const char *key, uint64_t v)
{
	json_out_place(j, key);
	(void)fprintf(j->f, "%llu", (unsigned long long)v);
}

/* Write the number with the fewest digits, but at least `digits', that restore it exactly
 * (single 1: as f32); null if it is not finite. */
static void
json_out_number(struct json_out *j, const char *key, double v, int digits, int single)
{
	char s[32];
	int most = single ? 9 : 17;

	json_out_place(j, key);
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
json_out_f64(struct json_out *j, const char *key, double v)
{
	json_out_number(j, key, v, 15, 0);
}

void
json_out_f32(struct json_out *j, const char *key, float v)
{
	json_out_number(j, key, (double)v, 6, 1);
}

void
json_out_unwind(struct json_out *j, int depth)
{
	while (j->depth > depth)
		json_out_close(j);
}

void
json_out_end(struct json_out *j)
{
	json_out_unwind(j, 0);
	(void)fputc('\n', j->f);
	j->used[0] = 0;
}
