#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/temp.h"
#include "format/text.h"
#include "spool/inbox.h"
#include "spool/ledger.h"
#include "spool/serving.h"

const char *const serving_programs[] = { "ace-recv", "ace-aggregate", NULL };

static char *
serving_path(const struct inbox *s, const char *program, struct err *e)
{
	char name[64];

	(void)snprintf(name, sizeof(name), ".sandbox.%s", program);
	return state_path(&s->state, name, e);
}

int
serving_read(const struct inbox *s, const char *program,
    char out[SERVING_LINE], struct err *e)
{
	char *path = serving_path(s, program, e);
	size_t n;
	int k;

	if (path == NULL)
		return -ERR_SYS;
	k = ledger_text(path, out, SERVING_LINE, NULL);
	alloc_free(path);
	if (k <= 0)
		return 0;
	n = strlen(out);
	if (n < 2 || out[n - 1] != '\n')
		return 0;
	out[n - 1] = '\0';
	return text_clean(out, n - 1);
}

/* Most connections find the line as they would leave it, and write nothing.  What
 * one left that was killed while it wrote goes first. */
void
serving_tell(const struct inbox *s, const char *program, const char *says)
{
	char line[SERVING_LINE], *path;

	temp_sweep(s->state.dir);
	if (says[0] == '\0' || (serving_read(s, program, line, NULL) > 0 &&
	    strcmp(line, says) == 0))
		return;
	(void)snprintf(line, sizeof(line), "%s\n", says);
	if ((path = serving_path(s, program, NULL)) != NULL)
		(void)ledger_set_text(path, line, IO_SYNC_NONE, NULL);
	alloc_free(path);
}
