/*
 * ace-edge: a device of a run.  It asks the cloud for the run's agreement, starts the
 * training program and the filters around it, and restarts them when the connection
 * breaks.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "front/cloud.h"
#include "front/tell.h"
#include "kern/kern.h"
#include "pipe/event.h"

enum { EDGE_PAUSE = 30 };	/* longest pause before a retry, in seconds */

struct edge {
	struct cli cli;
	const char *name, *dir, *through;
	int print;
	int events;		/* descriptor at which the trainer reads events */
	struct cloud cloud;
	struct place folder;
	struct tell tell;
	char where[PLACE_WHERE];
	char **command;		/* the trainer's words, then NULL; without words the
				 * trainer uses our standard input and output */
	char bits_text[32];
};

static const struct opt options[] = {
	{ 0, "name", "NAME", "this device's name (default the host's)",
	    OPT_TEXT(struct edge, name) },
	{ 'S', "state", "DIR", "this device's folder (default ./ace-NAME)",
	    OPT_PATH(struct edge, dir, OPT_DIR) },
	{ 0, "through", "SCRIPT", "connect by SCRIPT NAME WHAT [ID], not by ssh",
	    OPT_PATH(struct edge, through, OPT_READ) },
	OPT_PART(event_opts, struct edge, tell.to[0].events),
	{ 0, "print", NULL, "print the pipeline that this stands for, and exit",
	    OPT_FLAG(struct edge, print) },
	OPT_END
};

/* Set `name' to the host's name without its domain. Fail if that is not a valid name of a
 * device. */
static int
name_of_host(char name[PLACE_NAME + 1], struct err *e)
{
	if (gethostname(name, PLACE_NAME + 1) < 0)
		return err_sys(e, "cannot read the host's name");
	name[PLACE_NAME] = '\0';
	name[strcspn(name, ".")] = '\0';
	if (place_named(name, NULL) < 0)
		return err_set(e, ERR_USAGE, "the host's name '%s' is not valid as a "
		    "device's name: give one with --name", name);
	return 0;
}

/* Build the pipeline of a device, which begins and ends at the trainer if there is a command
 * for one, otherwise at standard input and output. */
static void
pipeline(struct edge *x, struct children *c)
{
	char *state = place_path(&x->folder, "state", c->e), **w = x->command;
	struct child *p;

	if (state == NULL)
		c->r = -ERR_SYS;
	c->circle = *w != NULL;
	if (c->circle) {
		p = child_add(c, NULL, *w, NULL);
		p->own_voice = 1;
		while (*++w != NULL)
			(void)child_add(c, p, *w, NULL);
	}
	(void)child_add(c, NULL, "ace-step", "-S", state, "--bits", x->bits_text,
	    "--window", "1", "--events", "2", NULL);
	cloud_connect(&x->cloud, c, "sync", x->folder.said.id);
	(void)child_add(c, NULL, "ace-ack", "-S", state, "--events", "2", NULL);
	(void)child_add(c, NULL, "ace-expand", "--feedback", state, "--events",
	    "2", NULL);
	alloc_free(state);
}

/* Classify a failed run of the pipeline. Return 1 if a retry may succeed, 0 if the trainer had
 * succeeded, an error in e if a retry cannot help. */
static int
broken(struct edge *x, const struct children *c, struct err *e)
{
	const struct child *p;
	char cause[ERR_LINE], *advice;
	const char *kind;
	int status, limit;

	/* some connections break when the trainer has ended and reads no answers; the run
	 * succeeded if ace-step read all that the trainer wrote */
	if (c->circle && child_cause(c) == 2 && x->tell.state != TELL_SENDS &&
	    child_status(&c->child[0]) == 0 && child_status(&c->child[1]) == 0)
		return 0;
	p = tell_cause(&x->tell, c, cause);
	kind = x->tell.kind;
	status = child_status(p);
	if (c->circle && p == &c->child[1] && status == ERR_DATA &&
	    x->tell.state == TELL_STARTS && (strcmp(kind, "truncated") == 0 ||
	    strcmp(kind, "corrupt") == 0) && strstr(cause, ", file '") == NULL)
		return err_set(e, ERR_DATA, "'%s' wrote no valid shard: expected one "
		    "per round on its standard output, and nothing else (see "
		    "ace-trainers(7)): %.300s", c->child[0].word[0], cause);
	if (p->own_voice)
		return err_set(e, ERR_NO, "'%s' ended with status %d%s in round %llu: see its "
		    "messages above, if any; run the same command again to continue", p->word[0],
		    status, status > 128 && status < 255 ?
		    " (128 + the signal's number)" : "",
		    (unsigned long long)x->tell.round);
	limit = strstr(cause, "(limits: ") != NULL;
	if (strncmp(cause, "ace-recv: mismatch", 18) == 0 ||
	    strstr(cause, " of another model than this state: ") != NULL)
		kind = "invalid";	/* with the cloud's run, not this device's */
	if (strcmp(kind, "mismatch") == 0 || strcmp(kind, "invalid") == 0) {
		if ((advice = strstr(cause, ": give ")) != NULL)
			*advice = '\0';	/* for users of that program */
		return err_set(e, status == ERR_REFUSED ? status : ERR_DATA, "%.500s: correct the "
		    "training program or, if it is right, %s; then run the command again",
		    cause, limit ? "raise that limit on the cloud and remove the file "
		    "'spool/STEP/NAME.no' there" : strcmp(kind, "invalid") == 0 ?
		    "begin a new run and give its folder" :
		    "remove 'state' in this device's folder");
	}
	if (strstr(cause, "(--bits ") != NULL)	/* so small a model needs more bits per value */
		return err_set(e, ERR_REFUSED, "%.500s: give this --bits to ace-cloud, for a new "
		    "run in another folder", cause);
	/* ace-step would refuse the same input again.  Try again if ssh lost the connection
	 * (255) or the cloud's folder is missing (ERR_USAGE), since it may come back. */
	if ((status == ERR_USAGE && p != &c->child[c->circle ? 2 : 1]) ||
	    status == ERR_REFUSED ||
	    p == &c->child[c->circle ? 1 : 0] || (status > 125 && status != 255))
		return err_set(e, status > 125 ? ERR_SYS : status, "%s", cause);
	tell_failed(&x->tell, cause);
	return 1;
}

/* Run the pipeline until the trainer succeeds or a retry cannot help; without a command, once. */
static int
train(struct edge *x, struct err *e)
{
	const struct child_ear ear = tell_ear(&x->tell);
	unsigned pause = 1;
	int r;

	for (;;) {
		struct children c = { .e = e, .inherit = x->events };
		const uint64_t done = x->tell.rounds;

		pipeline(x, &c);
		tell_start(&x->tell);
		if ((r = child_run(&c, &ear)) > 0)
			r = broken(x, &c, e);
		child_release(&c);
		if (r <= 0)
			return r;
		if (x->command[0] == NULL)
			return err_set(e, ERR_SYS, "interrupted: run the same "
			    "command again to continue");
		pause = x->tell.rounds > done ? 1 :
		    pause < EDGE_PAUSE / 2 ? 2 * pause : EDGE_PAUSE;
		tell_say(&x->tell, "trying again in %u s", pause);
		(void)sleep(pause);
		if ((r = statedir_there(&x->folder.held, e)) < 0)
			return r;
	}
}

/* Set *text, which the caller frees, to the command that connects to the cloud.  The trainer
 * uses it to ask for averages that it missed. */
static int
connection(const struct edge *x, char **text, struct err *e)
{
	struct children c = { .e = e };
	size_t n;
	FILE *f = open_memstream(text, &n);
	int r;

	if (f == NULL)
		return err_sys(e, "cannot set the environment");
	cloud_connect(&x->cloud, &c, "sync", x->folder.said.id);
	r = child_print(&c, f);
	return fclose(f) == 0 || r < 0 ? r : err_sys(e, "cannot set the environment");
}

/* Set the trainer's environment.  Events are dropped while their pipe is full, since the
 * trainer need not read them. */
static int
environment(struct edge *x, struct err *e)
{
	char rounds[32], events[16], *connect = NULL;
	int r = connection(x, &connect, e), end[2];

	if (r == 0 && (pipe2(end, O_CLOEXEC) < 0 ||
	    fcntl(end[1], F_SETFL, O_NONBLOCK) < 0))
		r = err_sys(e, "cannot create a pipe");
	if (r < 0)
		return r;
	x->events = end[0];
	x->tell.to[1].events = end[1];
	(void)snprintf(events, sizeof(events), "%d", x->events);
	(void)snprintf(rounds, sizeof(rounds), "%llu",
	    (unsigned long long)x->folder.said.rounds);
	if ((setenv("ACE_EVENTS", events, 1) < 0 || setenv("ACE_NAME", x->cloud.name, 1) < 0 ||
	    setenv("ACE_DIR", x->folder.dir, 1) < 0 ||
	    setenv("ACE_ROUNDS", rounds, 1) < 0 ||
	    setenv("ACE_CONNECT", connect, 1) < 0))
		r = err_sys(e, "cannot set the environment");
	free(connect);
	return r;
}

static int
begin(struct edge *x, struct err *e)
{
	const struct agreement *said = &x->folder.said;
	int r;

	if ((r = cloud_hello(&x->cloud, &x->folder, x->where, sizeof(x->where),
	    e)) < 0 || (r = place_save(&x->folder, e)) < 0)
		return r;
	(void)snprintf(x->bits_text, sizeof(x->bits_text), "%.17g", said->bits);
	x->tell.trainer = x->command[0];
	if ((r = environment(x, e)) == 0)
		tell_begin(&x->tell, &x->cli, "ace-edge", 0, &x->folder);
	return r;
}

static int
edge(struct edge *x, struct err *e)
{
	struct children c = { .e = e };
	char dir[PLACE_NAME + 8], text[64];
	int r;

	(void)snprintf(dir, sizeof(dir), "ace-%s", x->cloud.name);
	if ((r = place_open(&x->folder, x->dir != NULL ? x->dir : dir, 1, e)) < 0)
		return r;
	if (place_has(&x->folder, "devices"))
		return err_set(e, ERR_REFUSED, "'%s' is the folder of a cloud or a "
		    "relay: give another folder with --state", x->folder.where);
	if ((r = statedir_lock(&x->folder.held, STATE_LOCK, e)) < 0 ||
	    (r = begin(x, e)) < 0)
		return r;
	if (x->print) {
		pipeline(x, &c);
		return child_print(&c, stdout);
	}
	tell_say(&x->tell, "device '%s' of the run in %s: %s; its folder is %s",
	    x->cloud.name, x->where, place_agreed(&x->folder.said, text), x->folder.dir);
	if ((r = train(x, e)) == 0 && x->tell.rounds == 0 && x->tell.over)
		tell_say(&x->tell, "done: the run has ended already, after %llu round%s",
		    (unsigned long long)x->folder.said.rounds,
		    x->folder.said.rounds == 1 ? "" : "s");
	else if (r == 0)
		tell_say(&x->tell, "done: %llu round%s%s",
		    (unsigned long long)x->tell.rounds, x->tell.rounds == 1 ? "" : "s",
		    x->tell.rounds == 0 ? ": the training program ended before a new average "
		    "came" : "");
	return r;
}

static int
run(void *own, char **path, size_t n, struct err *e)
{
	struct edge *x = own;
	char name[PLACE_NAME + 1];
	int r;

	if (n == 0)
		return err_set(e, ERR_USAGE, "no folder of a cloud was given: "
		    "expected [[USER@]HOST:]DIR");
	x->command = path + 1;
	if (n > 1 && path[1][0] == '\0')
		return err_set(e, ERR_USAGE, "the command's name is empty: expected -- COMMAND "
		    "[argument ...]");
	x->cloud.through = x->through;
	x->cloud.name = x->name != NULL ? x->name : name;
	if ((x->name == NULL && (r = name_of_host(name, e)) < 0) ||
	    (r = place_named(x->cloud.name, e)) < 0 ||
	    (r = cloud_at(&x->cloud, path[0], e)) < 0)
		return r;
	r = edge(x, e);
	tell_end(&x->tell, r, e);
	place_close(&x->folder);
	cloud_release(&x->cloud);
	return r;
}

int
main(int argc, char **argv)
{
	struct edge x = {
		.cli = {
			.prog = "ace-edge",
			.usage = "[[USER@]HOST:]DIR [options] -- COMMAND "
			    "[argument ...]",
			.about = "Trains as a device of the run whose cloud is in "
			    "DIR: runs COMMAND and brings its shards there.",
			.examples = "ace-cloud run --devices 2 --print\n"
			    "ace-edge run --name edge1 --print -- ./train\n",
			.opt = options,
			.open = 1,
			.mixed = 1,
			.kernels = kern_name
		},
		.tell.to = { { .cli = &x.cli }, { .cli = &x.cli } },
		.cloud = CLOUD_INIT,
		.folder = PLACE_INIT
	};

	return cli_main(&x.cli, argc, argv, run, &x);
}
