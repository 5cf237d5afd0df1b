#include <stdarg.h>
#include <stdio.h>

#include "base/cli.h"
#include "format/text.h"
#include "stage/policy_text.h"
#include "stage/stage_policy.h"

void
policy_text_say(const struct stage_policy_opts *o, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	cli_say(o->f->cli, 1, "%s", line);
}

int
policy_text_real(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.9g", v);
	return text_set(kv, key, s, e);
}

int
policy_text_whole(struct text_kv *kv, const char *key, double v, struct err *e)
{
	char s[40];

	(void)snprintf(s, sizeof(s), "%.0f", v);
	return text_set(kv, key, s, e);
}
