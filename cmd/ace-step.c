/*
 * ace-step: does in one process the work of one side of a training step between trainer
 * and network: expand, score, policy, select, compress.  Its output and its state are the
 * same as those of the five programs in a pipe; --print shows that pipe.
 *
 * Every option but --print is an option of some of these programs, with the same name and
 * meaning.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "front/child.h"
#include "pipe/event.h"
#include "pipe/program.h"
#include "stage/stage_compress.h"
#include "stage/stage_expand.h"
#include "stage/stage_policy.h"
#include "stage/stage_score.h"
#include "stage/stage_select.h"

enum { EXPAND, SCORE, POLICY, SELECT, COMPRESS, PARTS, INPUT = PARTS, OUTPUT,
    TABLES };
enum { WORDS = 64 };

static const struct opt expand_rows[] = { OPT_ROWS(stage_expand_rows),
    OPT_ROWS(filter_opts_sync), OPT_ROWS(filter_opts_threads), OPT_END };
static const struct opt compress_rows[] = { OPT_ROWS(stage_compress_rows),
    OPT_ROWS(filter_opts_sync), OPT_ROWS(filter_opts_threads), OPT_END };

struct opts {
	struct filter *f;
	struct stage_expand_opts expand;
	struct stage_score_opts score;
	struct stage_policy_opts policy;
	struct stage_select_opts select;
	struct stage_compress_opts compress;
	int print;
	const char *schema, *state;	/* schema of the input; state directory of all */
	char *word[PARTS][WORDS];	/* command line of each program */
	int words[PARTS];
	int asked[PARTS];		/* 1: an option of this program alone was given */
};

#define AT(part) offsetof(struct opts, part)

/* The programs in the order of the pipe, with their options. */
static const struct {
	const char *name;
	const struct opt *row;
	const struct stage_kind *stage;
	size_t at;		/* offset of the stage's options in struct opts */
} table[TABLES] = {
	[EXPAND] = { "ace-expand", expand_rows, &stage_expand, AT(expand) },
	[SCORE] = { "ace-score", stage_score_rows, &stage_score, AT(score) },
	[POLICY] = { "ace-policy", stage_policy_rows, &stage_policy, AT(policy) },
	[SELECT] = { "ace-select", stage_select_rows, &stage_select, AT(select) },
	[COMPRESS] = { "ace-compress", compress_rows, &stage_compress, AT(compress) },
	[INPUT] = { NULL, filter_opts_in, NULL, 0 },
	[OUTPUT] = { NULL, filter_opts_out, NULL, 0 },
};

static const struct opt options[] = {
	{ 'S', "state", "DIR", "keep the residual and all other state in DIR",
	    OPT_PATH(struct opts, state, OPT_DIR) },
	OPT_PART(stage_expand_rows, struct opts, expand),
	FILTER_OPT_SYNC,
	FILTER_OPT_EVENTS,
	FILTER_OPT_THREADS,
	OPT_PART(stage_score_rows, struct opts, score),
	OPT_PART(stage_policy_rows, struct opts, policy),
	OPT_PART(stage_select_rows, struct opts, select),
	OPT_PART(stage_compress_rows, struct opts, compress),
	FILTER_OPTS_IN,
	FILTER_OPTS_OUT,
	{ 0, "print", NULL, "print the pipe that this stands for, and end",
	    OPT_FLAG(struct opts, print) },
	OPT_END
};

/* ---- options ---- */

static int
add_word(struct opts *o, int t, const char *s, struct err *e)
{
	if (o->words[t] == WORDS)
		return err_set(e, ERR_USAGE, "%s has more than %d words of options: "
		    "leave some out", table[t].name, WORDS);
	if ((o->word[t][o->words[t]] = alloc_dup(s, e)) == NULL)
		return -ERR_SYS;
	o->words[t]++;
	return 0;
}

/* Add an option to the words of program t. */
static int
tell(struct opts *o, int t, const struct opt *row, const char *val,
    struct err *e)
{
	char word[64];
	int r;

	if (row->letter != 0)
		(void)snprintf(word, sizeof(word), "-%c", row->letter);
	else
		(void)snprintf(word, sizeof(word), "--%.60s", row->name);
	r = add_word(o, t, word, e);
	return r < 0 || row->arg == NULL ? r : add_word(o, t, val, e);
}

/* Give an option to the programs that it concerns.  Limits on the input are for every
 * program, and options of the output for the last one.  tell_late gives --schema, and -S to
 * ace-policy. */
static int
tell_whom(struct opts *o, int t, const struct opt *row, const char *val,
    struct err *e)
{
	int i, r;

	if (t == POLICY && row->letter == 'S')
		return 0;
	if (t < PARTS)
		return tell(o, t, row, val, e);
	if (t == OUTPUT)
		return tell(o, COMPRESS, row, val, e);
	if (strcmp(row->name, "schema") == 0) {
		o->schema = val;
		return 0;
	}
	for (i = 0; i < PARTS; i++)
		if ((r = tell(o, i, row, val, e)) < 0)
			return r;
	return 0;
}

/* Give an option to every program that has an option of that name. */
static int
heard(void *arg, const struct opt *any, const char *val, struct err *e)
{
	struct opts *o = arg;
	const struct opt *row;
	int t, r, have = 0, last = 0;

	for (t = 0; t < TABLES; t++) {
		if ((row = opt_named(table[t].row, any->name)) == NULL)
			continue;
		if ((r = tell_whom(o, t, row, val, e)) < 0)
			return r;
		have++;
		last = t;
	}
	if (have == 1 && last < PARTS)
		o->asked[last] = 1;
	return 0;
}

/* ---- the programs and their options ---- */

static int
wanted(const struct opts *o, int t)
{
	switch (t) {
	case EXPAND:
		return o->expand.dir != NULL || o->asked[t];
	case POLICY:
		return o->asked[t] || o->select.mode == STAGE_SELECT_POLICY;
	case SCORE:
	case SELECT:
		return !o->compress.have_codec;
	default:
		return 1;
	}
}

static int
check(struct opts *o, struct err *e)
{
	int t, r;

	for (t = 0; t < PARTS; t++) {
		const struct stage_kind *k = table[t].stage;

		if (o->asked[t] && !wanted(o, t))
			return err_set(e, ERR_USAGE, "-c CODEC works without %s: leave out "
			    "-c, or all options of %s", table[t].name, table[t].name);
		if (wanted(o, t) && k->check != NULL &&
		    (r = k->check((char *)o + table[t].at, e)) < 0)
			return r;
	}
	if (o->state == NULL && stage_select_waits(&o->select))
		return err_set(e, ERR_USAGE, "-p with @ needs -S DIR, which "
		    "keeps the groups until their step");
	return 0;
}

/* After all options, give -S to ace-policy, and --schema to the first program, whose input may
 * have no schema. */
static int
tell_late(struct opts *o, struct err *e)
{
	int t = 0, r;

	if (o->state != NULL && (r = tell(o, POLICY,
	    opt_named(stage_policy_rows, "state"), o->state, e)) < 0)
		return r;
	if (o->schema == NULL)
		return 0;
	while (!wanted(o, t))
		t++;
	return tell(o, t, opt_named(filter_opts_in, "schema"), o->schema, e);
}

static void
print(const struct opts *o, const char *path)
{
	int t, i, n = 0;

	for (t = 0; t < PARTS; t++) {
		if (!wanted(o, t))
			continue;
		(void)fputs(n > 0 ? " | " : "", stdout);
		for (i = 0; i < o->words[t]; i++) {
			(void)fputs(i > 0 ? " " : "", stdout);
			child_quote(o->word[t][i], stdout);
		}
		if (n++ == 0 && path != NULL) {
			(void)putchar(' ');
			child_quote(path, stdout);
		}
	}
	(void)putchar('\n');
}

/* ---- the chain ---- */

/* Append the provenance lines of the wanted programs, without ace-compress, and a NUL. */
static int
lines(const struct opts *o, struct buf *b, struct err *e)
{
	char line[FILTER_LINE];
	int t, r = 0;

	for (t = 0; t < COMPRESS && r == 0; t++) {
		if (!wanted(o, t))
			continue;
		filter_line(table[t].name, o->words[t], o->word[t], line);
		if ((r = buf_puts(b, line, e)) == 0)
			r = buf_put(b, "\n", 1, e);
	}
	return r < 0 ? r : buf_put(b, "", 1, e);
}

static int
run(void *arg, char **path, size_t n, struct err *e)
{
	struct opts *o = arg;
	struct stage *first = NULL, **end = &first;
	struct buf before = BUF_INIT;
	int t, r = check(o, e);

	if (r < 0 || (r = tell_late(o, e)) < 0)
		return r;
	if (o->print) {
		print(o, *path);
		return 0;
	}
	o->expand.alone = o->score.alone = 1;
	o->select.kept = o->state != NULL ? 1 : -1;
	/* in the provenance, this program's line is that of ace-compress */
	o->f->tool = table[COMPRESS].name;
	o->f->words = o->words[COMPRESS];
	o->f->argv = o->word[COMPRESS];
	r = lines(o, &before, e);
	for (t = 0; t < PARTS && r == 0; t++)
		if (wanted(o, t) && (r = stage_new(end, table[t].stage,
		    (char *)o + table[t].at, o->f, e)) == 0)
			end = &(*end)->next;
	if (r == 0)
		r = stage_pass(o->f, first, (const char *)before.p, *path, e);
	stage_free(first);
	buf_release(&before);
	return r;
}

/* Set each program's name as its first word. */
static int
begin(struct opts *o, struct err *e)
{
	int t, r = 0;

	for (t = 0; t < PARTS && r == 0; t++)
		r = add_word(o, t, table[t].name, e);
	return r;
}

int
main(int argc, char **argv)
{
	struct opts o = { .policy = STAGE_POLICY_INIT,
	    .compress = STAGE_COMPRESS_INIT };
	struct program p = {
		.cli = {
			.prog = "ace-step",
			.usage = "[-S DIR] -b SIZE | --bits N | -p SHARE | --plan FILE | "
			    "--policy | -c CODEC [--print] [FILE]",
			.about = "Expands, scores, selects and compresses a shard "
			    "stream in one process, by the policy if asked.",
			.examples = "ace-step -S state -b 100k edge1.aceg >coded.aceg\n"
			    "ace-step -S state -b 100k --print\n",
			.opt = options,
			.heard = heard,
			.one = 1
		},
		.run = run
	};
	struct err e = ERR_INIT;
	int t, r = begin(&o, &e);

	o.f = &p.f;
	r = r < 0 ? cli_exit(&p.cli, r, &e) : program_main(&p, argc, argv, &o);
	for (t = 0; t < PARTS; t++)
		while (o.words[t] > 0)
			alloc_free(o.word[t][--o.words[t]]);
	plan_text_release(&o.select.given);
	return r;
}
