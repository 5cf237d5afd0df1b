#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mono.h"
#include "base/scan.h"
#include "spool/inbox.h"
#include "spool/roster.h"
#include "spool/waiting.h"

void
waiting_begin(struct waiting *w)
{
	if (w == NULL)
		return;
	w->since = mono_now();
	w->said = 0;
}

int
waiting_due(struct waiting *w)
{
	sig_atomic_t asked;

	if (w == NULL)
		return 0;
	asked = *w->asked;
	if (asked == w->answered &&
	    (w->said || mono_now() - w->since < WAITING_SILENT))
		return 0;
	w->answered = asked;
	w->said = 1;
	return 1;
}

void
waiting_say(const struct waiting *w, const char *fmt, ...)
{
	char what[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	w->say(w->arg, what);
}

/* Names of devices. */
struct waiting_names {
	char text[600];
	size_t n;
};

/* Appends a name: 1 when there is no room for more. */
static int
waiting_add(struct waiting_names *c, const char *name)
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
waiting_each(void *arg, const char *name, struct err *e)
{
	char device[SHARD_NAME + 1];

	(void)e;
	if (!inbox_is_shard(name))
		return 0;
	(void)inbox_device(name, device, NULL);
	return waiting_add(arg, device);
}

/* Who is missing, where there is a list of devices, and how many shards that
 * makes in all. */
static void
waiting_missing(const struct inbox *s, const char *run, uint64_t step,
    size_t *want, size_t n, struct waiting_names *c)
{
	struct roster t = ROSTER_INIT, missing = ROSTER_INIT;
	size_t i;

	if (roster_read(&t, s, run, NULL) > 0 &&
	    roster_missing(&t, s, run, step, &missing, NULL) == 0) {
		*want = n + missing.n;
		for (i = 0; i < missing.n; i++)
			if (waiting_add(c, missing.name[i]) != 0)
				break;
	}
	roster_release(&t);
	roster_release(&missing);
}

void
waiting_step(const struct inbox *s, const char *run, uint64_t step, size_t n,
    size_t want)
{
	struct waiting_names names = { "", 0 }, missing = { "", 0 };
	char *dir;

	if (n == 0 && step == UINT64_MAX) {
		waiting_say(s->wait, "waiting for the first shard of run '%s'",
		    run);
		return;
	}
	if (n == 0) {
		waiting_say(s->wait, "waiting for a shard of run '%s' after "
		    "step %llu", run, (unsigned long long)step);
		return;
	}
	if ((dir = inbox_path(s, run, &step, "", NULL)) != NULL)
		(void)scan(dir, waiting_each, &names, NULL);
	alloc_free(dir);
	waiting_missing(s, run, step, &want, n, &missing);
	waiting_say(s->wait, "waiting for step %llu of run '%s': %zu of %zu "
	    "shards are there%s%s%s", (unsigned long long)step, run, n,
	    want, names.text, missing.n != 0 ? "; missing" : "", missing.text);
}
