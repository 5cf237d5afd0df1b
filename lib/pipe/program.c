#include "base/alloc.h"
#include "kern/kern.h"
#include "pipe/program.h"

static int
program_set(void *arg, int key, const char *val, struct err *e)
{
	struct program *p = arg;
	cli_set *set = p->cli.command != NULL ? p->cli.command->set : p->set;
	int r = set != NULL ? set(p->o, key, val, e) : 0;

	if (r == 0)
		r = filter_set(&p->f, key, val, e);
	return r < 0 ? r : 0;
}

static int
program_run(void *arg, char **path, size_t n, struct err *e)
{
	struct program *p = arg;
	cli_run *run = p->cli.command != NULL ? p->cli.command->run : p->run;

	return run(p->o, path, n, e);
}

int
program_main(struct program *p, int argc, char **argv, void *o)
{
	int status;

	alloc_keep();
	p->o = o;
	p->cli.loops = kern_name;
	filter_init(&p->f, &p->cli, argc, argv);
	if (p->open != NULL)
		p->f.open = p->open;
	status = cli_main(&p->cli, argc, argv, program_set, program_run, p);
	filter_release(&p->f);
	return status;
}
