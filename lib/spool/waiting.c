#include <stdarg.h>
#include <stdio.h>

#include "base/mono.h"
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
