#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/progress_bar.h"

/* seconds before the first line, and between updates */
#define PROGRESS_BAR_FIRST 0.5
#define PROGRESS_BAR_AGAIN 0.2

void
progress_bar_begin(struct progress_bar *b, const struct cli *c)
{
	const char *term = getenv("TERM");

	memset(b, 0, sizeof(*b));
	b->on = c != NULL && !c->quiet && isatty(STDERR_FILENO) && term != NULL &&
	    *term != '\0' && strcmp(term, "dumb") != 0;
	b->since = clock_now();
	b->last = b->since + PROGRESS_BAR_FIRST - PROGRESS_BAR_AGAIN;
}

void
progress_bar_show(struct progress_bar *b, uint64_t done, uint64_t all, const char *unit)
{
	char now[NUM_TEXT], of[48] = "", left[40] = "";
	double t, part, secs;

	if (!b->on || (t = clock_now()) - b->last < PROGRESS_BAR_AGAIN)
		return;
	b->last = t;
	b->drawn = 1;
	if (strcmp(unit, "B") == 0)
		(void)num_text((double)done, unit, now);
	else
		(void)snprintf(now, sizeof(now), "%llu %.16s",
		    (unsigned long long)done, unit);
	if (all != 0 && done <= all) {
		part = (double)done / (double)all;
		(void)snprintf(of, sizeof(of), ", %.0f %%", part * 100);
		secs = part > 0 ? (t - b->since) * (1 - part) / part : 1e6;
		if (secs < 1e6)
			(void)snprintf(left, sizeof(left), ", %.0f s left", secs);
	}
	/* clear the rest of the old line */
	(void)fprintf(stderr, "\r%s%s%s\033[K", now, of, left);
	(void)fflush(stderr);
}

void
progress_bar_end(struct progress_bar *b)
{
	if (b->drawn)
		(void)fputs("\r\033[K", stderr);
	b->on = b->drawn = 0;
}
