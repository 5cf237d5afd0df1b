#include "base/alloc.h"
#include "base/err.h"
#include "base/io.h"
#include "format/frame.h"
#include "format/note.h"
#include "format/plan_text.h"
#include "stage/stage_text.h"

struct stage_text {
	struct stage s;
	struct io *to;
	const struct schema *schema;
	struct buf line;
};

static int
stage_text_write(struct stage_text *x, int r, struct err *e)
{
	if (r == 0)
		r = io_write(x->to, x->line.p, x->line.n, e);
	x->line.n = 0;
	return r;
}

static int
stage_text_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct stage_text *x = (struct stage_text *)s;

	x->schema = sh->schema;
	return stage_text_write(x, plan_text_head(&x->line, sh->shard, e), e);
}

static int
stage_text_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	(void)s;
	(void)d;
	(void)e;
	return 0;
}

static int
stage_text_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	struct stage_text *x = (struct stage_text *)s;
	struct codec_plan p;
	struct note note;
	uint32_t i;
	int r;

	if (n->type != FRAME_PLAN)
		return 0;
	r = note_get(&note, n->p, n->n, NOTE_PLAN, x->schema->ngroups, e);
	for (i = 0; r == 0 && i < note.n; i++) {
		note_plan(&note, i, &p);
		r = plan_text_put(&x->line, x->schema, note.first + i, &p, e);
	}
	return stage_text_write(x, r, e);
}

static int
stage_text_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	(void)sums;
	return io_flush(((struct stage_text *)s)->to, e);
}

static int
stage_text_finish(struct stage *s, struct err *e)
{
	return io_commit(((struct stage_text *)s)->to, IO_SYNC_FULL, e);
}

static void
stage_text_free(struct stage *s)
{
	struct stage_text *x = (struct stage_text *)s;

	io_free(x->to);
	buf_release(&x->line);
	alloc_free(x);
}

int
stage_text_new(struct stage **out, struct io *to, struct err *e)
{
	struct stage_text *x = alloc_get(1, sizeof(*x), e);

	*out = NULL;
	if (x == NULL) {
		io_free(to);
		return -ERR_SYS;
	}
	x->to = to;
	x->s.begin = stage_text_begin;
	x->s.data = stage_text_data;
	x->s.note = stage_text_note;
	x->s.end = stage_text_end;
	x->s.finish = stage_text_finish;
	x->s.free = stage_text_free;
	*out = &x->s;
	return 0;
}
