#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "stream/text.h"

void
json_init(struct json *j, FILE *f)
{
	memset(j, 0, sizeof(*j));
	j->f = f;
}

static void
json_text(struct json *j, const char *s)
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

/* The comma before and the name of what comes now. */
static void
json_place(struct json *j, const char *key)
{
	if (j->used[j->depth] && j->depth != 0)
		(void)fputc(',', j->f);
	j->used[j->depth] = 1;
	if (key == NULL)
		return;
	json_text(j, key);
	(void)fputc(':', j->f);
}

void
json_open(struct json *j, const char *key, char bracket)
{
	json_place(j, key);
	(void)fputc(bracket, j->f);
	if (j->depth == JSON_DEPTH)
		return;			/* no caller goes so deep */
	j->depth++;
	j->used[j->depth] = 0;
	j->end[j->depth] = bracket == '{' ? '}' : ']';
}

void
json_close(struct json *j)
{
	if (j->depth == 0)
		return;
	(void)fputc(j->end[j->depth], j->f);
	j->depth--;
}

void
json_string(struct json *j, const char *key, const char *s)
{
	json_place(j, key);
	json_text(j, s);
}

void
json_bool(struct json *j, const char *key, int v)
{
	json_place(j, key);
	(void)fputs(v ? "true" : "false", j->f);
}

void
json_u64(struct json *j, const char *key, uint64_t v)
{
	json_place(j, key);
	(void)fprintf(j->f, "%llu", (unsigned long long)v);
}

void
json_f64(struct json *j, const char *key, double v)
{
	char s[32];
	int digits = 15;

	json_place(j, key);
	if (!isfinite(v)) {
		(void)fputs("null", j->f);
		return;
	}
	do
		(void)snprintf(s, sizeof(s), "%.*g", digits, v);
	while (strtod(s, NULL) != v && ++digits <= 17);
	(void)fputs(s, j->f);
}

void
json_f32(struct json *j, const char *key, float v)
{
	char s[32];
	int digits = 6;

	json_place(j, key);
	if (!isfinite(v)) {
		(void)fputs("null", j->f);
		return;
	}
	do
		(void)snprintf(s, sizeof(s), "%.*g", digits, (double)v);
	while (strtof(s, NULL) != v && ++digits <= 9);
	(void)fputs(s, j->f);
}

void
json_unwind(struct json *j, int depth)
{
	while (j->depth > depth)
		json_close(j);
}

void
json_end(struct json *j)
{
	json_unwind(j, 0);
	(void)fputc('\n', j->f);
	j->used[0] = 0;
}
