#include "base/alloc.h"
#include "base/err.h"
#include "kern/kern.h"
#include "pipe/event.h"
#include "pipe/program.h"

static void
program_failed(const struct cli *c, const struct err *e)
{
	event_say(c->shared, EVENT_ERROR, err_kind_name(e), ERR_MSG(e));
}

int
program_main(struct program *p, int argc, char **argv, void *o)
{
	int status;

	alloc_keep();
	p->cli.kernels = kern_name;
	p->cli.shared = &p->f;
	p->cli.failed = program_failed;
	filter_init(&p->f, &p->cli, argv);
	if (p->open != NULL)
		p->f.open = p->open;
	status = cli_main(&p->cli, argc, argv, p->run, o);
	filter_release(&p->f);
	return status;
}
