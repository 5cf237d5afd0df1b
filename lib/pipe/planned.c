#include "base/err.h"
#include "base/io.h"
#include "format/note.h"
#include "format/plan_text.h"
#include "pipe/filter.h"
#include "pipe/planned.h"

int
planned_shard(struct planned *p, struct err *e)
{
	int r;

	if (p->out != NULL)
		return filter_shard(p->in, p->out, NULL, e);
	p->note.n = 0;
	r = plan_text_head(&p->note, reader_shard(p->in), e);
	return r < 0 ? r : io_write(p->text, p->note.p, p->note.n, e);
}

static int
planned_some(struct planned *p, uint32_t first, const struct codec_plan *plan,
    uint32_t n, struct err *e)
{
	uint32_t i;
	int r = 0;

	p->note.n = 0;
	if (p->out != NULL) {
		if ((r = note_put_plan(&p->note, first, plan, n, NULL, e)) < 0)
			return r;
		return writer_note(p->out, FRAME_PLAN, p->note.p, p->note.n,
		    e);
	}
	for (i = 0; i < n && r == 0; i++)
		r = plan_text_put(&p->note, reader_schema(p->in), first + i,
		    &plan[i], e);
	return r < 0 ? r : io_write(p->text, p->note.p, p->note.n, e);
}

int
planned_groups(struct planned *p, uint32_t first,
    const struct codec_plan *plan, uint32_t n, struct err *e)
{
	uint32_t i, k;
	int r = 0;

	for (i = 0; i < n && r == 0; i += k) {
		k = n - i < PLANNED_MOST ? n - i : PLANNED_MOST;
		r = planned_some(p, first + i, plan + i, k, e);
	}
	return r;
}

int
planned_frame(struct planned *p, int event, struct err *e)
{
	if (p->out == NULL)
		return 0;
	if (event == READER_DATA)
		return writer_pass(p->out, p->in, e);
	if (event != READER_NOTE || reader_frame(p->in)->type == FRAME_PLAN)
		return 0;
	return filter_pass(p->in, p->out, 0, e);
}

int
planned_send(struct planned *p, struct err *e)
{
	if (p->out == NULL)
		return io_flush(p->text, e);
	return writer_send(p->out, &reader_end_of_shard(p->in)->sums, e);
}

int
planned_end(struct planned *p, int r, struct err *e)
{
	if (p->text == NULL)
		return filter_end(p->out, r, e);
	return r < 0 ? r : io_commit(p->text, IO_SYNC_FULL, e);
}

void
planned_release(struct planned *p)
{
	buf_release(&p->note);
	io_free(p->text);
	writer_free(p->out);
	p->text = NULL;
	p->out = NULL;
}
