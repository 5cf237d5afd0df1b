#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kern/kern.h"

enum { TABLES = 4 };

/* The lists that kern_list returns on x86, indexed by the number of tables after ref that
 * the machine can run. The lists are constant, so that choosing one needs no state. */
static const struct kern *const x86_list[3][TABLES] = {
	{ &kern_ref, NULL },
	{ &kern_ref, &kern_avx2, NULL },
	{ &kern_ref, &kern_avx2, &kern_avx512, NULL },
};
static const struct kern *const neon_list[TABLES] = {
	&kern_ref, &kern_neon, NULL
};

static int
has_avx2(void)
{
#if defined(__x86_64__) || defined(__i386__)
	/* clang 14 has no name for f16c; every processor with avx2 has it */
	return kern_avx2.name != NULL && __builtin_cpu_supports("avx2");
#else
	return 0;
#endif
}

static int
has_avx512(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi2");
#else
	return 0;
#endif
}

const struct kern *const *
kern_list(void)
{
	if (kern_neon.name != NULL)
		return neon_list;
	return x86_list[has_avx2() + has_avx512()];
}

const struct kern *
kern_get(struct err *e)
{
	const struct kern *const *l = kern_list();
	const char *want = getenv("ACE_KERNEL");
	size_t i;

	if (want != NULL && *want != '\0') {
		for (i = 0; l[i] != NULL; i++)
			if (strcmp(l[i]->name, want) == 0)
				return l[i];
		(void)err_set(e, ERR_USAGE,
		    "ACE_KERNEL=%s: this processor or build has no kernels of that "
		    "name: unset ACE_KERNEL, or set it to ref", want);
		return NULL;
	}
	for (i = 0; l[i + 1] != NULL; i++)
		;
	return l[i];
}

const char *
kern_name(void)
{
	const struct kern *k = kern_get(NULL);

	return k != NULL ? k->name : NULL;
}
