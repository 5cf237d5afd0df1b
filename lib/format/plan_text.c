#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/io.h"
#include "base/num.h"
#include "format/plan_text.h"
#include "format/schema.h"
#include "format/shard.h"

int
plan_text_head(struct buf *out, const struct shard *s, struct err *e)
{
	char line[400];
	int n = snprintf(line, sizeof(line), "# shard '%.300s/%llu'\n",
	    shard_device(s), (unsigned long long)s->step);

	return buf_put(out, line, (size_t)n, e);
}

int
plan_text_put(struct buf *out, const struct schema *sc, uint32_t g,
    const struct codec_plan *p, struct err *e)
{
	char line[400], codec[CODEC_TEXT];
	int n = snprintf(line, sizeof(line), "%lu %s %.300s\n", (unsigned long)g,
	    codec_format(p, codec), schema_name(sc, g));

	return buf_put(out, line, (size_t)n, e);
}

/* Parse "GROUP CODEC ...". Groups between the last line's group and this one are not
 * sent. */
static int
plan_text_line(struct plan_text *t, char *line, struct err *e)
{
	static const struct codec_plan none = { CODEC_NONE, 0, 0 };
	char *save = NULL, *group = strtok_r(line, " \t\r", &save);
	char *codec = strtok_r(NULL, " \t\r", &save);
	struct codec_plan p;
	uint64_t g;
	int r;

	if (group == NULL || group[0] == '#')
		return 0;
	if ((r = num_u64(&g, group, 0, (1 << 26) - 1, "group", e)) < 0)
		return r;
	if (g < t->n)
		return err_set(e, ERR_USAGE, "group %s follows group %zu: expected "
		    "rising numbers, the plan of one shard", group, (size_t)t->n - 1);
	if (codec == NULL)
		return err_set(e, ERR_USAGE, "group %s has no codec: expected GROUP CODEC", group);
	if ((r = codec_parse(codec, &p, e)) < 0 || (r = alloc_grow(&t->p,
	    &t->cap, (size_t)g + 1, sizeof(*t->p), e)) < 0)
		return r;
	while (t->n < g)
		t->p[t->n++] = none;
	t->p[t->n++] = p;
	return 0;
}

static int
plan_text_lines(struct plan_text *t, char *text, const char *path, struct err *e)
{
	unsigned long n = 0;
	char *line, *next;
	int r = 0;

	for (line = text; line != NULL && r == 0; line = next) {
		n++;
		if ((next = strchr(line, '\n')) != NULL)
			*next++ = '\0';
		if ((r = plan_text_line(t, line, e)) < 0)
			(void)err_before(e, r, "plan '%s', line %lu: ", path,
			    n);
	}
	return r;
}

int
plan_text_read(struct plan_text *t, const char *path, struct err *e)
{
	struct buf b = BUF_INIT;
	int r;

	*t = (struct plan_text)PLAN_TEXT_INIT;
	if ((r = io_named_text(&b, path, PLAN_TEXT_MAX, e)) == 0)
		r = plan_text_lines(t, (char *)b.p, path, e);
	if (r < 0)
		plan_text_release(t);
	buf_release(&b);
	return r;
}

void
plan_text_release(struct plan_text *t)
{
	alloc_free(t->p);
	*t = (struct plan_text)PLAN_TEXT_INIT;
}
