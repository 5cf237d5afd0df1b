#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/scan.h"
#include "pipe/event.h"
#include "pipe/filter.h"
#include "spool/clients.h"
#include "spool/decide.h"
#include "spool/inbox.h"
#include "spool/ledger.h"
#include "spool/roster.h"
#include "spool/progress.h"
#include "spool/steps.h"

void
progress_begin(struct progress *w)
{
	if (w == NULL)
		return;
	w->since = clock_now();
	w->said = 0;
}

int
progress_due(struct progress *w)
{
	sig_atomic_t asked;

	if (w == NULL)
		return 0;
	asked = *w->asked;
	if (asked == w->answered && (w->said || clock_now() - w->since <
	    (w->f->events == 0 ? WAITING_SILENT : WAITING_EVENT)))
		return 0;
	w->answered = asked;
	w->said = 1;
	return 1;
}

void
progress_say(const struct progress *w, const char *fmt, ...)
{
	char what[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	cli_say(w->f->cli, 0, "%s", what);
}

void
progress_wait(const struct progress *w, uint64_t round, const char *missing,
    const char *fmt, ...)
{
	char what[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (w->f->events == 0)
		cli_say(w->f->cli, 0, "%s", what);
	event_say(w->f, EVENT_WAITS, round, missing[0] != '\0' ?
	    missing + 2 : "", what);
}

/* Names of devices. */
struct progress_names {
	char text[400];
	size_t n;
};

/* Appends a name: 1 when there is no room for more. */
static int
progress_add(struct progress_names *c, const char *name)
{
	const char *sep = c->n == 0 ? ": " : ", ";

	if (c->n + strlen(name) + 8 > sizeof(c->text)) {
		(void)snprintf(c->text + c->n, sizeof(c->text) - c->n,
		    ", ...");
		return 1;
	}
	c->n += (size_t)snprintf(c->text + c->n, sizeof(c->text) - c->n,
	    "%s%s", sep, name);
	return 0;
}

static int
progress_each(void *arg, const char *name, struct err *e)
{
	char device[SHARD_NAME + 1];

	(void)e;
	if (!inbox_is_shard(name))
		return 0;
	(void)inbox_device(name, device, NULL);
	return progress_add(arg, device);
}

/* ---- for a device ---- */

/* The file of a device in a step: 1 and how old it is in seconds, 0: none. */
static int
progress_age(const struct inbox *s, const char *run, uint64_t step,
    const char *device, double *age)
{
	char *path = inbox_of(s, run, &step, device, "aceg", NULL);
	struct timespec now = { 0, 0 };
	struct stat st;
	const int there = path != NULL && fstatat(AT(path), &st, 0) == 0;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (there)
		*age = (double)(now.tv_sec - st.st_mtim.tv_sec);
	alloc_free(path);
	return there;
}

/* Fill t with the devices that a step waits for: those of the list, or those of the
 * last closed step.  Return 1 when there is a list. */
static int
progress_expected(const struct inbox *s, const char *run,
    const struct decided *d, struct roster *t)
{
	char *dir;

	if (roster_read(t, s, run, NULL) > 0)
		return 1;
	if (d->has_last && (dir = inbox_path(s, run, &d->last, "",
	    NULL)) != NULL) {
		(void)scan(dir, roster_each_file, t, NULL);
		roster_sort(t);
		alloc_free(dir);
	}
	return 0;
}

/* Those of t that have no shard in the step, as text, with the time since their
 * shard of the step `last'. */
static void
progress_absent(const struct inbox *s, const char *run, uint64_t step,
    uint64_t last, const struct roster *t, struct progress_names *c)
{
	struct roster missing = ROSTER_INIT;
	char one[SHARD_NAME + 64];
	double age;
	size_t i;

	if (roster_missing(t, s, run, step, &missing, NULL) < 0)
		missing.n = 0;
	for (i = 0; i < missing.n; i++) {
		(void)snprintf(one, sizeof(one), "%s", missing.name[i]);
		if (progress_age(s, run, last, missing.name[i], &age))
			(void)snprintf(one, sizeof(one), "%s (sent last %.0f s "
			    "ago)", missing.name[i], age > 0 ? age : 0);
		if (progress_add(c, one) != 0)
			break;
	}
	roster_release(&missing);
}

void
progress_device(const struct inbox *s, const char *run, uint64_t step)
{
	struct progress_names here = { "", 0 }, missing = { "", 0 };
	struct roster t = ROSTER_INIT;
	struct decided d = { .any = 0 };
	char *dir;
	int closed;

	if (decide_load(s, run, &d, NULL) < 0)
		d.any = d.has_last = 0;
	closed = d.any && step <= d.closed;
	if ((dir = inbox_path(s, run, &step, "", NULL)) != NULL)
		(void)scan(dir, progress_each, &here, NULL);
	alloc_free(dir);
	if (!closed) {
		(void)progress_expected(s, run, &d, &t);
		progress_absent(s, run, step, d.last, &t, &missing);
	}
	progress_wait(s->wait, step, missing.text, "waiting for step %llu of run "
	    "'%s': %s%s%s%s%s", (unsigned long long)step, run, closed ? "all shards are there, and "
	    "its aggregate is not" : "there are shards", closed ? "" : here.text,
	    missing.n != 0 ? "; missing" : "", missing.text,
	    clients_summed(s, run) ? "" : "; no ace-aggregate runs");
	roster_release(&t);
}

/* ---- for ace-aggregate ---- */

/* Who is missing; and, where there is a list of devices, how many shards that makes
 * in all. */
static void
progress_missing(const struct inbox *s, const char *run, uint64_t step,
    size_t *want, size_t n, struct progress_names *c)
{
	struct roster t = ROSTER_INIT, missing = ROSTER_INIT;
	struct decided d = { .any = 0 };
	size_t i;
	int listed;

	if (decide_load(s, run, &d, NULL) < 0)
		d.has_last = 0;
	listed = progress_expected(s, run, &d, &t);
	if (roster_missing(&t, s, run, step, &missing, NULL) == 0) {
		if (listed)
			*want = n + missing.n;
		for (i = 0; i < missing.n; i++)
			if (progress_add(c, missing.name[i]) != 0)
				break;
	}
	roster_release(&t);
	roster_release(&missing);
}

void
progress_step(const struct inbox *s, const char *run, uint64_t step, size_t n,
    size_t want)
{
	struct progress_names names = { "", 0 }, missing = { "", 0 };
	char *dir;

	if (n == 0 && step == UINT64_MAX) {
		progress_wait(s->wait, 0, "", "waiting for the first shard of run "
		    "'%s'", run);
		return;
	}
	progress_missing(s, run, n == 0 ? step + 1 : step, &want, n, &missing);
	if (n == 0) {
		progress_wait(s->wait, step + 1, missing.text, "waiting for a shard of run "
		    "'%s' after step %llu", run, (unsigned long long)step);
		return;
	}
	if ((dir = inbox_path(s, run, &step, "", NULL)) != NULL)
		(void)scan(dir, progress_each, &names, NULL);
	alloc_free(dir);
	progress_wait(s->wait, step, missing.text, "waiting for step %llu of run "
	    "'%s': %zu of %zu shards are there%s%s%s", (unsigned long long)step, run, n,
	    want, names.text, missing.n != 0 ? "; missing" : "", missing.text);
}
