#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "pipe/event.h"
#include "pipe/filter.h"
#include "pipe/json_out.h"

enum { EVENT_FIELDS = 9 };

/* The fields of each event. r: a round, from 1, which callers pass as a step, from 0;
 * u: a count; f: a number; s: a text. */
static const struct event_row {
	const char *name;
	struct { char type; const char *name; } field[EVENT_FIELDS + 1];
} event_rows[EVENT_N] = {
	[EVENT_BEGINS] = { "begins", { { 'r', "round" }, { 'u', "rounds" } } },
	[EVENT_SENT] = { "sent", { { 'r', "round" }, { 'u', "values" },
	    { 'u', "bytes" } } },
	[EVENT_RECEIPT] = { "receipt", { { 'r', "round" }, { 's', "result" },
	    { 's', "reason" } } },
	[EVENT_AVERAGE] = { "average", { { 'r', "round" },
	    { 'u', "participants" }, { 'u', "values" }, { 'u', "bytes" } } },
	[EVENT_WAITS] = { "waits", { { 'r', "round" }, { 's', "missing" },
	    { 's', "text" } } },
	[EVENT_CLOSED] = { "closed", { { 'r', "round" },
	    { 'u', "participants" }, { 'u', "excluded" }, { 'f', "weight" } } },
	[EVENT_ENDS] = { "ends", { { 'r', "round" }, { 'u', "participants" },
	    { 'u', "excluded" }, { 'u', "values" }, { 'u', "bytes" },
	    { 'f', "computing" }, { 'f', "sending" }, { 'f', "waiting" },
	    { 's', "text" } } },
	[EVENT_FAILS] = { "fails", { { 'r', "round" }, { 's', "text" } } },
	[EVENT_ERROR] = { "error", { { 's', "kind" }, { 's', "text" } } }
};

const char *
event_name(enum event ev)
{
	return event_rows[ev].name;
}

/* Set *own to the descriptor val, at least 2, or to the file val, opened to append. */
static int
event_open(void *own, const struct opt *row, const char *val, struct err *e)
{
	int *fd = own;
	uint64_t n;

	if (val[strspn(val, "0123456789")] != '\0') {
		*fd = open(val, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
		    O_NOCTTY, 0666);
		return *fd >= 0 ? 0 : err_sys(e, "--events '%s'", val);
	}
	if (num_u64(&n, val, 2, INT_MAX, "--events", e) < 0)
		return -ERR_USAGE;
	*fd = (int)n;
	return fcntl(*fd, F_GETFD) >= 0 ? 0 : err_set(e, ERR_USAGE,
	    "--events %s: that descriptor is not open", val);
}

const struct opt event_opts[] = {
	{ 0, "events", "FD|FILE", "append a line of JSON for each event of the run",
	    OPT_CALL(event_open) },
	OPT_END
};

void
event_write(int fd, const char *line, size_t n)
{
	const int pause = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 ? 1000 : 0;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);

	if (poll(&p, 1, pause) == 1 && (p.revents & POLLOUT) != 0)
		(void)!write(fd, line, n);
	(void)signal(SIGPIPE, was);
}

void
event_say(const struct filter *to, enum event ev, ...)
{
	const struct event_row *row = &event_rows[ev];
	struct timespec now = { 0, 0 };
	char *line = NULL;
	const char *s;
	struct json_out j;
	va_list ap;
	size_t n = 0, i;
	FILE *f;

	if (to == NULL || to->events == 0 ||
	    (f = open_memstream(&line, &n)) == NULL)
		return;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	json_out_init(&j, f);
	json_out_open(&j, NULL, '{');
	json_out_string(&j, "event", row->name);
	json_out_string(&j, "program", to->cli->prog);
	json_out_f64(&j, "time", (double)now.tv_sec +
	    1e-6 * (double)(now.tv_nsec / 1000));
	va_start(ap, ev);
	for (i = 0; row->field[i].type != 0; i++) {
		if (row->field[i].type == 'u' || row->field[i].type == 'r') {
			json_out_u64(&j, row->field[i].name, va_arg(ap, uint64_t) +
			    (row->field[i].type == 'r'));
		} else if (row->field[i].type == 'f') {
			json_out_f64(&j, row->field[i].name, va_arg(ap, double));
		} else {
			s = va_arg(ap, const char *);
			json_out_string(&j, row->field[i].name, s != NULL ? s : "");
		}
	}
	va_end(ap);
	json_out_end(&j);
	if (fclose(f) == 0)
		event_write(to->events, line, n);
	free(line);
}
