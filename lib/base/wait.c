#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>

#include "base/err.h"
#include "base/clock.h"
#include "base/wait.h"

enum { WAIT_MS = 10 };		/* longest pause between two checks */

struct wait
wait_begin(double secs, int out)
{
	return (struct wait){ out, 1, secs < 0 ? -1 : clock_now() + secs };
}

int
wait_more(struct wait *w, struct err *e)
{
	int r;

	if (w->until >= 0 && clock_now() >= w->until)
		return WAIT_OVER;
	if ((r = wait_orphan(w->out, w->ms, e)) < 0)
		return r;
	w->ms = 2 * w->ms < WAIT_MS ? 2 * w->ms : WAIT_MS;
	return WAIT_LOOK;
}

int
wait_secs(double secs, int out, struct err *e)
{
	double until = clock_now() + secs, left;
	int r;

	while ((left = until - clock_now()) > 0)
		if ((r = wait_orphan(out, left > 1e3 ? 1000000 :
		    (int)(left * 1e3) + 1, e)) < 0)
			return r;
	return 0;
}

int
wait_gone(int out, int ms)
{
	struct pollfd p = { .fd = out };

	return poll(&p, 1, ms) > 0 && (p.revents & (POLLERR | POLLHUP)) != 0;
}

int
wait_orphan(int out, int ms, struct err *e)
{
	if (!wait_gone(out, ms))
		return 0;
	(void)raise(SIGPIPE);
	errno = EPIPE;
	if (e != NULL)
		e->quiet = 1;
	return err_sys(e, "<stdout>");
}
