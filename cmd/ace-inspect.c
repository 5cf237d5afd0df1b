/*
 * ace-inspect: shows what shard streams contain, as text, table or JSON: a listing,
 * statistics, a check, or a comparison.  It also checks that a device's inputs equal what
 * its receiver has plus what is left.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "device/residual.h"
#include "kern/kern.h"
#include "pipe/pick.h"
#include "pipe/program.h"
#include "pipe/source.h"
#include "report/conserve.h"
#include "report/list.h"
#include "report/report.h"
#include "report/stats.h"
#include "report/verify.h"

struct opts {
	struct report p;
	struct filter *f;
	struct pick pick;
	int form;		/* index in forms */
	const char *state, *spool;	/* audit: the two directories */
	const char *other;		/* diff: path of the original stream */
	/* look: called per stream or, with `whole', once for all files of an operand */
	int (*look)(struct report *p, struct reader *r, struct err *e);
	int whole;
};

/* ---- one file ---- */

static int
look_diff(struct report *p, struct reader *r, struct err *e)
{
	struct opts *o = (struct opts *)p;	/* p is the first member of opts */
	struct reader *y = NULL;
	struct io *io;
	int k = source_io(&io, o->other, e);

	if (k == 0 && (k = reader_open(&y, io, &o->f->in, e)) == 0)
		k = stats_diff(p, r, y, e);
	reader_free(y);
	return k;
}

/* Run the command on an open file, and free io. */
static int
look_file(struct opts *o, struct io *io, struct err *e)
{
	struct reader *r = NULL;
	int k = reader_open(&r, io, &o->f->in, e);

	o->p.shard = 0;
	o->p.io = io;
	if (k == 0)
		k = o->look(&o->p, r, e);
	reader_free(r);
	return k;
}

/* ---- operands ---- */

/* Return 1 if an operand is a folder, an archive or compressed.  Do not open input that can
 * be read only once. */
static int
is_many(char **path, size_t n)
{
	struct source *s;
	struct stat st;
	size_t i;
	int many = 0;

	for (i = 0; i < n && !many; i++)
		if (stat(path[i], &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) &&
		    source_open(&s, path[i], NULL) == 0) {
			many = source_many(s);
			source_free(s);
		}
	return many;
}

/* Report the error of a file and remember the worst one.  For a residual, say what to do. */
static void
say(const struct opts *o, struct err *own, int r, const char *name, int *worst)
{
	const char *slash = name != NULL ? strrchr(name, '/') : NULL;

	if (r >= 0)
		return;
	*worst = r < *worst ? r : *worst;
	if ((own->kind == ERR_CORRUPT || own->kind == ERR_TRUNCATED) && slash != NULL &&
	    strcmp(slash + 1, RESIDUAL_FILE) == 0)
		(void)err_after(own, r, " (ace-ack --restart N begins with an empty "
		    "residual)");
	(void)err_file(own, r, name);
	if (own->code != ERR_OK && !own->quiet)
		(void)fprintf(stderr, "%s: %s\n", o->f->cli->prog, ERR_MSG(own));
}

/* Read all files of an operand.  An error of one does not end the reading. */
static int
look_source(struct opts *o, struct source *s, int *worst)
{
	struct err own;
	struct io *io;
	int k, r;

	do {
		own = (struct err)ERR_INIT;
		if ((r = k = source_next(s, &io, &own)) > 0) {
			if (source_many(s))
				o->p.file = source_name(s);
			r = look_file(o, io, &own);
		}
		say(o, &own, r, source_name(s), worst);
		if (ferror(stdout))
			return r;
	} while (k > 0 || source_left(s));
	return 0;
}

/* Read a single operand that is one file or, with `whole', is read as one, so that its error
 * is the result.  Otherwise return 1; the caller then reads it file by file. */
static int
look_single(struct opts *o, struct source *s, const char *path, struct err *e)
{
	struct io *io;
	int r;

	if (!source_many(s))
		r = source_next(s, &io, e);
	else if (o->whole)
		r = source_io(&io, path, e);
	else
		return 1;
	return r < 0 ? r : look_file(o, io, e);
}

/* Try every file, report each failure, and return the worst error.  Do not report that of a
 * single plain file, but return it in e. */
static int
look_each(struct opts *o, char **path, size_t n, struct err *e)
{
	const char *name;
	struct source *s;
	struct err own;
	int r, worst = 0;
	size_t i = 0;

	do {
		own = (struct err)ERR_INIT;
		name = n != 0 ? path[i] : NULL;
		r = source_open(&s, name, &own);
		if (n < 2 && r == 0 && (r = look_single(o, s, name, &own)) <= 0) {
			source_free(s);
			(void)err_move(e, &own);
			return r;
		}
		if (n < 2 && r < 0)
			return err_move(e, &own);
		o->p.file = name;
		if (r >= 0) {
			r = look_source(o, s, &worst);
			source_free(s);
		}
		say(o, &own, r, name, &worst);
	} while (++i < n && !ferror(stdout));
	e->quiet = 1;		/* the errors are already printed */
	return worst;
}

/* Print all operands.  -ERR_NO if options select shards or tensors, and none is found. */
static int
look_all(struct opts *o, char **path, size_t n, struct err *e)
{
	const struct report *p = &o->p;
	int r = look_each(o, path, n, e);

	if (r < 0 || (p->picked ? p->glob == NULL || p->named :
	    p->pick == NULL && p->glob == NULL))
		return r;
	e->quiet = 0;
	return pick_none(&o->pick, p->picked ? p->glob : NULL, e);
}

/* ---- the commands ---- */

/* Set up what all commands need. */
static int
begin(struct opts *o, struct err *e)
{
	struct report *p = &o->p;

	if ((p->kern = kern_get(e)) == NULL)
		return -ERR_USAGE;
	p->cli = o->f->cli;
	p->verbose = o->f->cli->verbose;
	p->quiet = o->f->cli->quiet;
	p->s.columns = cli_columns(STDOUT_FILENO, NULL);
	p->pick = pick_given(&o->pick) ? &o->pick : NULL;
	p->s.form = (enum render_form[]){ RENDER_TEXT, RENDER_JSON,
	    RENDER_TSV }[o->form];
	return 0;
}

/* Show one line per shard in a table and, as text without -v, for folders, archives and
 * compressed files; otherwise show details. */
static int
bare(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	int r = begin(o, e);

	if (r < 0)
		return r;
	o->look = o->p.s.form == RENDER_TSV || (o->p.s.form == RENDER_TEXT &&
	    !o->p.verbose && is_many(path, n)) ? list_brief : list_stream;
	return look_all(o, path, n, e);
}

#define COMMAND(name, fn) \
static int \
name(void *arg, char **path, size_t n, struct err *e) \
{ \
	struct opts *o = arg; \
	int r = begin(o, e); \
\
	o->look = fn; \
	return r < 0 ? r : look_all(o, path, n, e); \
}
COMMAND(list, list_stream)
COMMAND(brief, list_brief)
COMMAND(stats, stats_stream)
COMMAND(verify, verify_file)
#undef COMMAND

static int
diff(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	int r;

	if (n == 0 || n > 2)
		return err_set(e, ERR_USAGE, "diff: expected OTHER and at most one FILE, "
		    "found %zu operands", n);
	o->other = path[0];
	if (strcmp(o->other, "-") == 0 && (n == 1 || strcmp(path[1], "-") == 0))
		return err_set(e, ERR_USAGE, "diff: both streams are '-', standard "
		    "input: give a file for OTHER or FILE");
	o->look = look_diff;
	o->whole = 1;
	r = begin(o, e);
	return r < 0 ? r : look_all(o, path + 1, n - 1, e);
}

static void
audit_json(struct json_out *j, const struct conserve *c, int k, const struct err *e)
{
	json_out_open(j, NULL, '{');
	json_out_string(j, "device", c->device);
	json_out_bool(j, "ok", k == 0);
	json_out_u64(j, "step", c->step);
	json_out_u64(j, "inputs", c->steps);
	json_out_u64(j, "accepted", c->accepted);
	json_out_u64(j, "pending", c->pending);
	json_out_u64(j, "elements", c->elements);
	json_out_u64(j, "inexact", c->off);
	json_out_u64(j, "violated", c->violated);
	json_out_f64(j, "largest", c->worst);
	json_out_u64(j, "status", (uint64_t)-k);
	if (k < 0)
		json_out_string(j, "error", ERR_MSG(e));
	json_out_end(j);
}

/* Check that every value was delivered or kept, and that none was delivered twice. */
static int
audit(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	char *dash = (char[]){ "-" };
	const struct conserve_in in = { o->state, o->spool, n != 0 ? path : &dash,
	    n != 0 ? n : 1, &o->f->in };
	struct conserve c;
	int k = begin(o, e);

	if (k < 0)
		return k;
	if (o->state == NULL || o->spool == NULL)
		return err_set(e, ERR_USAGE, "audit needs both -S DIR, the "
		    "device's state, and --spool DIR");
	k = conserve_check(&c, &in, e);
	if (o->p.s.form == RENDER_JSON) {
		audit_json(&o->p.s.json, &c, k, e);
	} else if (k == 0 && !o->p.quiet) {
		(void)printf("%s: %s, %llu inputs up to step %llu, "
		    "%llu accepted, %llu pending", c.device, c.off == 0 ?
		    "exact" : "within the bound",
		    (unsigned long long)c.steps, (unsigned long long)c.step,
		    (unsigned long long)c.accepted,
		    (unsigned long long)c.pending);
		if (c.off != 0)
			(void)printf(", off by at most %.3g", c.worst);
		(void)putchar('\n');
	}
	return k < 0 ? k : report_flush(&o->p, e);
}

/* ---- the command line ---- */

static const char *const forms[] = { "text", "json", "tsv", NULL };
static const char *const documents[] = { "text", "json", NULL };
static const struct opt form_opt[] = {
	{ 0, "format", "FORMAT", NULL, OPT_WORD(struct opts, form, documents),
	    .def = "text" },
	OPT_END
};
static const struct opt pick_opt[] = {
	OPT_PART(pick_opts, struct opts, pick),
	{ 0, "tensor", "GLOB", "only tensors whose name matches",
	    OPT_TEXT(struct opts, p.glob) },
	FILTER_OPTS_IN,
	OPT_END
};
static const struct opt list_opt[] = {
	OPT_ROWS(form_opt),
	OPT_ROWS(pick_opt),
	OPT_END
};
static const struct opt table_opt[] = {
	{ 0, "format", "FORMAT", NULL, OPT_WORD(struct opts, form, forms),
	    .def = "text" },
	OPT_ROWS(pick_opt),
	OPT_END
};
static const struct opt verify_opt[] = {
	OPT_ROWS(form_opt),
	OPT_PART(pick_opts, struct opts, pick),
	FILTER_OPTS_IN,
	OPT_END
};
static const struct opt diff_opt[] = {
	{ 0, "tolerance", "NMSE", "largest NMSE that counts as equal",
	    OPT_F64(struct opts, p.tolerance, 0, 1e300) },
	OPT_ROWS(list_opt),
	OPT_END
};
static const struct opt audit_opt[] = {
	{ 'S', "state", "DIR", "the device's state",
	    OPT_PATH(struct opts, state, OPT_DIR) },
	{ 0, "spool", "DIR", "the receiver's spool", OPT_PATH(struct opts, spool, OPT_DIR) },
	OPT_ROWS(form_opt),
	FILTER_OPTS_IN,
	OPT_END
};

static const struct cli_command commands[] = {
	{ "list", "[options] [FILE...]",
	    "Lists shards and tensors in detail (default for files)", list_opt, list, 0 },
	{ "brief", "[options] [FILE...]",
	    "Prints one line per shard (default for folders)", table_opt, brief, 0 },
	{ "stats", "[options] [FILE...]", "Prints statistics of the values", table_opt,
	    stats, 0 },
	{ "verify", "[options] [FILE...]",
	    "Decodes all, and compares it with the sums", verify_opt, verify, 0 },
	{ "diff", "[options] OTHER [FILE]",
	    "Compares FILE with OTHER, the original", diff_opt, diff, 0 },
	{ "audit", "-S DIR --spool DIR [options] [FILE...]",
	    "Checks that inputs FILE, state and spool balance", audit_opt, audit, 0 },
	{ NULL, NULL, NULL, NULL, NULL, 0 }
};

int
main(int argc, char **argv)
{
	struct program p = {
		.cli = {
			.prog = "ace-inspect",
			.usage = "[COMMAND] [options] [FILE...]",
			.about = "Shows what is in gradient-shard streams.",
			.examples = "ace-inspect edge1.aceg\n"
			    "ace-inspect verify edge1.aceg edge2.aceg\n",
			.opt = table_opt,
			.commands = commands,
			.bare = 1
		},
		.open = source_io,
		.run = bare
	};
	struct opts o = { .f = &p.f, .pick = PICK_INIT };

	report_init(&o.p, stdout, NULL);
	return program_main(&p, argc, argv, &o);
}
