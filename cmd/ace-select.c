/*
 * ace-select: chooses a codec for every group and writes the choice as an annotation.  The
 * values pass unchanged.
 */
#include "base/alloc.h"
#include "base/io.h"
#include "format/annotation.h"
#include "format/frame.h"
#include "format/plan_text.h"
#include "pipe/program.h"
#include "stage/stage_select.h"

/* ---- the plan as text ---- */

struct text {
	struct stage s;
	struct io *to;
	const struct schema *schema;
	struct buf line;
};

static int
text_out(struct text *x, int r, struct err *e)
{
	if (r == 0)
		r = io_write(x->to, x->line.p, x->line.n, e);
	x->line.n = 0;
	return r;
}

static int
text_begin(struct stage *s, const struct stage_shard *sh, struct err *e)
{
	struct text *x = (struct text *)s;

	x->schema = sh->schema;
	return text_out(x, plan_text_head(&x->line, sh->shard, e), e);
}

static int
text_data(struct stage *s, const struct stage_data *d, struct err *e)
{
	return 0;
}

static int
text_note(struct stage *s, const struct stage_note *n, struct err *e)
{
	struct text *x = (struct text *)s;
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
	return text_out(x, r, e);
}

static int
text_end(struct stage *s, const struct shard_sums *sums, struct err *e)
{
	return io_flush(((struct text *)s)->to, e);
}

static int
text_finish(struct stage *s, struct err *e)
{
	return io_commit(((struct text *)s)->to, IO_SYNC_FULL, e);
}

static void
text_free(struct stage *s)
{
	io_free(((struct text *)s)->to);
	buf_release(&((struct text *)s)->line);
}

static int
text_make(struct stage *s, void *unused, const struct filter *f, struct err *e)
{
	return io_create(&((struct text *)s)->to, f->output, 1, e);
}

static const struct stage_kind text = {
	.size = sizeof(struct text),
	.make = text_make,
	.begin = text_begin,
	.data = text_data,
	.note = text_note,
	.end = text_end,
	.finish = text_finish,
	.free = text_free
};

/* ---- the program ---- */

struct opts {
	struct filter *f;
	struct stage_select_opts select;
	int format;		/* index in formats */
};

static const char *const formats[] = { "stream", "text", NULL };
static const struct opt options[] = {
	OPT_PART(stage_select_rows, struct opts, select),
	{ 0, "format", "FORMAT", "stream, or text: print only the plan",
	    OPT_WORD(struct opts, format, formats), .def = "stream" },
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	OPT_END
};

/* Process a whole file: write the stream, or only its plans as text. */
static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct stage *s;
	struct reader *in = NULL;
	int r = stage_new(&s, &stage_select, &o->select, o->f, e);

	if (r == 0 && o->format == 0)
		r = stage_pass(o->f, s, NULL, *path, e);
	else if (r == 0 && (r = filter_in(o->f, &in, *path, e)) == 0 &&
	    (r = stage_new(&s->next, &text, NULL, o->f, e)) == 0)
		r = stage_run(in, s, NULL, NULL, e);
	reader_free(in);
	stage_free(s);
	return r;
}

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-select",
			.usage = "-b SIZE | --bits N | --policy | -p SHARE | "
			    "--plan FILE [--levels LIST]\n    [--format text] [FILE]",
			.about = "Chooses a codec for every group of a shard stream.",
			.examples = "ace-score edge1.aceg | ace-select -b 20k | "
			    "ace-compress >coded.aceg\n"
			    "ace-score edge1.aceg | ace-select -b 20k --format text\n",
			.opt = options,
			.one = 1
		},
		.run = run
	};
	struct opts o = { .f = &p.f };
	int status = program_main(&p, argc, argv, &o);

	plan_text_release(&o.select.given);
	return status;
}
