#include "base/alloc.h"
#include "kern/kern.h"
#include "pipe/program.h"

int
program_main(struct program *p, int argc, char **argv, void *o)
{
	int status;

	alloc_keep();
	p->cli.kernels = kern_name;
	p->cli.shared = &p->f;
	filter_init(&p->f, &p->cli, argv);
	if (p->open != NULL)
		p->f.open = p->open;
	status = cli_main(&p->cli, argc, argv, p->run, o);
	filter_release(&p->f);
	return status;
}
