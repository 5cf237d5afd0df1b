#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/room.h"
#include "base/temp.h"
#include "kern/kern.h"
#include "pipe/filter.h"
#include "pipe/gather.h"
#include "spool/rounds.h"
#include "spool/waiting.h"
#include "stage/aggregate.h"
#include "stage/stage_aggregate.h"

/* The most contributions that a rule looks at together; and the files that are
 * open besides. */
enum { STAGE_AGGREGATE_MOST = 4096, STAGE_AGGREGATE_OTHER = 64 };

/* ---- streams ---- */

/* An input that is skipped costs its device a step, and one that is waited for
 * costs all devices time: both are always reported. */
static void
stage_aggregate_always(void *arg, const char *what)
{
	cli_say(arg, 0, "%s", what);
}

static struct quorum
stage_aggregate_quorum(const struct stage_aggregate_opts *o)
{
	return (struct quorum){ (size_t)o->expect,
	    o->quorum != 0 ? (size_t)o->quorum : 1, o->deadline };
}

/* With a quorum or a deadline, no single input can hold up the others. */
static int
stage_aggregate_open_patient(struct aggregate *x, char **paths,
    size_t n, struct err *e)
{
	const struct stage_aggregate_opts *o = x->o;
	const struct intake_rule q = {
		.q = stage_aggregate_quorum(o), .out = filter_piped(o->f),
		.say = stage_aggregate_always,
		.arg = (void *)(uintptr_t)o->f->cli
	};

	return gather_patient(&x->g, paths, n, contrib_at_once(&o->who), &q,
	    &o->f->in, e);
}

static int
stage_aggregate_open_all(struct aggregate *x, char **paths, size_t n,
    uint64_t expect, struct err *e)
{
	int r = gather_open(&x->g, paths, n, contrib_at_once(&x->o->who), expect,
	    filter_piped(x->o->f), &x->o->f->in, e);

	if (r == 0 && contrib_active(&x->o->who))
		gather_twice(x->g);
	return r;
}

/* ---- many contributions ---- */

/* As many open files as the system allows; returns how many that is. */
static size_t
stage_aggregate_files_allowed(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return 256;
	if (l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
		(void)getrlimit(RLIMIT_NOFILE, &l);
	}
	return (size_t)l.rlim_cur;
}

/* How many contributions a step may have. Sums go on from one window of them to
 * the next, so that there is no limit; some rules have to see all at once. */
static size_t
stage_aggregate_most(const struct aggregate *x)
{
	const size_t files = stage_aggregate_files_allowed();
	const size_t most = files > STAGE_AGGREGATE_OTHER + 16 ?
	    files - STAGE_AGGREGATE_OTHER : 16;

	if (!contrib_at_once(&x->o->who))
		return SIZE_MAX;
	return most < STAGE_AGGREGATE_MOST ? most : STAGE_AGGREGATE_MOST;
}

/* Opens the step's contributions. A rule that sees all values at once says
 * before what it takes for that. */
static int
stage_aggregate_begin(struct aggregate *x, size_t most, struct err *e)
{
	const size_t n = gather_count(x->g);
	const uint64_t each = gather_window_memory(x->g);

	if (!contrib_at_once(&x->o->who))
		return gather_window(x->g, 0, e);
	if (n > most)
		return err_set(e, ERR_REFUSED, "limit: '%s' sees all values at "
		    "once, of %zu shards at most, and here are %zu: %llu MiB",
		    x->o->who.rule_text, most, n,
		    (unsigned long long)(n * each >> 20));
	if (n * each > room_limit() / 2)
		return err_set(e, ERR_REFUSED, "limit: '%s' sees all values at "
		    "once: %zu shards take %llu MiB, and there are %llu MiB in "
		    "all (RLIMIT_AS, memory.max)", x->o->who.rule_text, n,
		    (unsigned long long)(n * each >> 20),
		    (unsigned long long)(room_limit() >> 20));
	cli_say(x->o->f->cli, 1, "'%s' sees all values at once: %zu shards, %llu "
	    "MiB", x->o->who.rule_text, n,
	    (unsigned long long)(n * each >> 20));
	return gather_window(x->g, 0, e);
}

/* ---- a spool ---- */

/* Aggregates the shards of one step, each in a file of its own. *blame is the
 * place, plus one, of the shard that caused a failure. */
static int
stage_aggregate_paths(struct aggregate *x, char **paths, size_t n,
    size_t most, size_t *blame, struct err *e)
{
	int r = gather_many(&x->g, paths, n, contrib_at_once(&x->o->who),
	    &x->o->f->in, e);

	if (r == 0 && (r = gather_step(x->g, e)) > 0 &&
	    (r = stage_aggregate_begin(x, most, e)) == 0)
		r = aggregate_step(x, e);
	*blame = gather_blamed(x->g);
	gather_free(x->g);
	x->g = NULL;
	return r;
}

/* Does the same into a file, so that a failure leaves nothing behind in the
 * output. */
static int
stage_aggregate_try(struct aggregate *x, char **paths, size_t n,
    size_t most, size_t *blame, struct err *e)
{
	struct writer_opts wo = { x->o->f->tool, NULL, 0 };
	struct writer *out = x->out;
	struct io *io;
	int fd, r;

	*blame = 0;
	x->out = NULL;
	if ((r = temp_open(&fd, e)) == 0) {
		if ((r = io_create_fd(&io, fd, "<temporary>", e)) == 0 &&
		    (r = writer_open(&x->out, io, &wo, e)) == 0 &&
		    (r = stage_aggregate_paths(x, paths, n, most, blame,
		    e)) == 0 && (r = writer_finish(x->out, e)) == 0)
			r = filter_copy_fd(fd, &x->o->f->in, out, e);
		(void)close(fd);
	}
	writer_free(x->out);
	x->out = out;
	return r;
}

/* Sets aside the shard that caused the failure, or all shards when no single
 * one is to blame, and reports it. */
static int
stage_aggregate_aside(struct aggregate *x, struct rounds *steps,
    size_t at, size_t count, const char *why, char ***paths, size_t *n,
    struct err *e)
{
	int r;

	cli_say(x->o->f->cli, 0, "%zu of %zu shards of a step set aside: %s",
	    count, *n, why);
	if ((r = rounds_aside(steps, at, count, why, paths, n, e)) == 0 &&
	    *n == 0)
		cli_say(x->o->f->cli, 0, "no aggregate of this step: too few "
		    "shards are left");
	return r;
}

/* Aggregates a step of a spool without the shards that cannot be used. A shard
 * that was accepted must not stop the step: it would do so for ever, since a
 * closed step stays closed. */
static int
stage_aggregate_round(struct aggregate *x, struct rounds *steps,
    size_t most, struct err *e)
{
	struct err bad = ERR_INIT;
	char **paths, why[120];
	size_t n, blame;
	int r = rounds_next(steps, &paths, &n, e);

	if (r == 0 && n > most) {
		(void)snprintf(why, sizeof(why), "limit: a rule looks at %zu "
		    "shards of a step at most", most);
		r = stage_aggregate_aside(x, steps, most, n - most, why,
		    &paths, &n, e);
	}
	while (r == 0 && n != 0 && (r = stage_aggregate_try(x, paths, n, most,
	    &blame, &bad)) != 0) {
		if (r != -ERR_DATA && r != -ERR_REFUSED)
			return err_move(e, &bad);
		r = stage_aggregate_aside(x, steps, blame != 0 ? blame - 1 : 0,
		    blame != 0 ? 1 : n, ERR_MSG(&bad), &paths, &n, e);
		err_clear(&bad);
	}
	return r < 0 ? r : rounds_done(steps, e);
}

/* The norms of the steps before are kept in the spool, so that a program that
 * is started again decides the same. */
static int
stage_aggregate_remember(struct aggregate *x, char *path, struct err *e)
{
	return path == NULL ? -ERR_SYS : norms_open(&x->c.norms, path,
	    x->o->f->sync, e);
}

static int
stage_aggregate_spool(struct aggregate *x, struct err *e)
{
	const struct stage_aggregate_opts *o = x->o;
	struct waiting wait = { .say = stage_aggregate_always,
	    .asked = o->asked, .arg = (void *)(uintptr_t)o->f->cli };
	const struct rounds_opts ro = { o->spool, o->run,
	    o->f->sync, stage_aggregate_quorum(o), o->published, o->keep,
	    o->create, &wait, filter_piped(o->f), o->f->cli->confined };
	const size_t most = stage_aggregate_most(x);
	struct rounds *steps;
	uint64_t i = 0;
	int r;

	r = rounds_open(&steps, &ro, e);
	/* who is started again makes those that the run lacks */
	if (r == 0 && o->published)
		r = rounds_made(steps, &i, e);
	if (r == 0 && o->who.rule.max_running > 0)
		r = stage_aggregate_remember(x,
		    rounds_file(steps, "norms", e), e);
	for (; r == 0 && (o->steps == 0 || i < o->steps); i++)
		r = stage_aggregate_round(x, steps, most, e);
	rounds_free(steps);
	return r;
}

static int
stage_aggregate_files(struct aggregate *x, char **paths, size_t n,
    struct err *e)
{
	const size_t most = stage_aggregate_most(x);
	int r;

	r = x->o->quorum != 0 || x->o->deadline > 0 ?
	    stage_aggregate_open_patient(x, paths, n, e) :
	    stage_aggregate_open_all(x, paths, n, x->o->expect, e);
	if (r < 0)
		return r;
	while ((r = gather_step(x->g, e)) > 0)
		if ((r = stage_aggregate_begin(x, most, e)) < 0 ||
		    (r = aggregate_step(x, e)) < 0)
			break;
	return r;
}

int
stage_aggregate_run(const struct stage_aggregate_opts *o, char **paths,
    size_t n, struct err *e)
{
	struct aggregate x;
	const struct kern *kern = kern_get(e);
	int r;

	if (kern == NULL)
		return -ERR_USAGE;
	if ((r = aggregate_init(&x, o, kern, e)) == 0 &&
	    (r = filter_out(o->f, &x.out, e)) == 0) {
		r = o->spool != NULL ? stage_aggregate_spool(&x, e) :
		    stage_aggregate_files(&x, paths, n, e);
		r = filter_end(x.out, r, e);
	}
	gather_free(x.g);
	writer_free(x.out);
	aggregate_release(&x);
	return r;
}
