#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cli.h"
#include "base/clock.h"
#include "pipe/event.h"
#include "pipe/filter.h"
#include "spool/manifest.h"
#include "spool/roster.h"
#include "spool/spool.h"
#include "spool/steps.h"
#include "spool/waiting.h"

void
waiting_begin(struct waiting *w)
{
	if (w == NULL)
		return;
	w->since = clock_now();
	w->said = 0;
}

int
waiting_due(struct waiting *w)
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

/* "waiting for step 2"; with --events, where rounds count from 1, "waiting for round 3" */
#define STEP(w, text, step) (w)->f->events != 0 ? text " round" : text " step", \
	(unsigned long long)(step) + ((w)->f->events != 0)

void
waiting_say(const struct waiting *w, uint64_t round, const char *missing,
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

void
waiting_add(struct waiting_names *c, const char *name)
{
	const size_t room = sizeof(c->text) - c->n;
	const int full = strlen(name) + 8 > room;

	if (c->n + 1 >= sizeof(c->text))
		return;
	(void)snprintf(c->text + c->n, room, "%s%s", c->n == 0 ? ": " : ", ",
	    full ? "..." : name);
	c->n = full ? sizeof(c->text) : c->n + strlen(c->text + c->n);
}

/* Append to here the devices whose shards of the step have come, and to missing the other
 * devices of the list or, without a list, of the last average.  Return the number of listed
 * devices that are missing, or 0 without a list. */
static size_t
waiting_look(const struct spool *s, uint64_t step, struct waiting_names *here,
    struct waiting_names *missing)
{
	struct array_names files = ARRAY_NAMES_INIT, none = ARRAY_NAMES_INIT;
	char device[SHARD_NAME + 1];
	struct closed d;
	size_t i, n;
	int k;

	(void)manifest_closed(s, &d, NULL);
	(void)steps_files(&files, s, step, NULL);
	for (i = 0; i < files.n; i++) {
		(void)spool_device(files.p[i], device, NULL);
		waiting_add(here, device[0] != '\0' ? device : "(none)");
	}
	k = roster_missing(&none, s, &files, d.made, NULL);
	for (i = 0; i < none.n && k >= 0; i++)
		waiting_add(missing, none.p[i]);
	n = k > 0 ? none.n : 0;
	array_release(&files);
	array_release(&none);
	return n;
}

/* ---- for a device ---- */

void
waiting_device(const struct spool *s, uint64_t step)
{
	struct waiting_names here = { "", 0 }, missing = { "", 0 };
	struct closed d;
	const int closed = manifest_closed(s, &d, NULL) == 0 && step < d.open;

	if (!closed)
		(void)waiting_look(s, step, &here, &missing);
	waiting_say(s->wait, step, missing.text, "%s %llu: %s%s%s%s",
	    STEP(s->wait, "waiting for", step), closed ? "it is closed, but its average is "
	    "not there" : here.n != 0 ? "there are shards" : "there is no shard", here.text,
	    missing.n != 0 ? "; missing" : "", missing.text);
}

/* ---- for ace-aggregate ---- */

void
waiting_step(const struct spool *s, uint64_t step, size_t n, size_t want)
{
	struct waiting_names here = { "", 0 }, missing = { "", 0 };
	char of[32] = "";
	size_t lack;

	if (n == 0 && step == UINT64_MAX) {
		waiting_say(s->wait, 0, "", "waiting for a first shard in '%s' "
		    "(ace-recv --spool)", s->state.dir);
		return;
	}
	lack = waiting_look(s, n == 0 ? step + 1 : step, &here, &missing);
	if (n == 0) {
		waiting_say(s->wait, step + 1, missing.text, "%s %llu",
		    STEP(s->wait, "waiting for a shard after", step));
		return;
	}
	if (lack != 0 || n < want)
		(void)snprintf(of, sizeof(of), " of %zu", lack != 0 ? n + lack : want);
	waiting_say(s->wait, step, missing.text, "%s %llu: %zu%s shard%s there%s%s%s%s",
	    STEP(s->wait, "waiting for", step), n, of, of[0] == '\0' && n == 1 ? " is" : "s are",
	    here.text, of[0] != '\0' ? "" : "; the --deadline is not over",
	    missing.n != 0 ? "; missing" : "", missing.text);
}
