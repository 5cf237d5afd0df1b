/* The main functions of the programs, for tests that call them without a new process. */
#ifndef TESTS_MAINS_H
#define TESTS_MAINS_H

#include <stddef.h>
#include <string.h>

#define MAINS(ONE) \
	ONE(ack) ONE(advise) ONE(aggregate) ONE(archive) ONE(compress) ONE(cut) ONE(diff) \
	ONE(expand) ONE(export) ONE(import) ONE(inspect) ONE(meter) ONE(patch) ONE(policy) \
	ONE(recv) ONE(score) ONE(select) ONE(sign) ONE(status) ONE(step)

#define MAINS_DECLARE(name) int ace_##name##_main(int argc, char **argv);
MAINS(MAINS_DECLARE)

/* Call the program of this name. Return its status, or -1 if there is no such program. */
static inline int
mains_call(const char *program, int argc, char **argv)
{
#define MAINS_ROW(name) { "ace-" #name, ace_##name##_main },
	static const struct {
		const char *name;
		int (*main)(int, char **);
	} all[] = { MAINS(MAINS_ROW) };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(all[i].name, program) == 0)
			return all[i].main(argc, argv);
	return -1;
}

#endif
