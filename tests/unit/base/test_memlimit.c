/* The memory limit: the least of nested cgroups, of resource limits and of the machine. */
#include <sys/resource.h>
#include <sys/stat.h>

#include "../inside.h"
#include "../test.h"
#include "base/memlimit.h"

static void
put(const char *name, const char *text)
{
	FILE *f;

	if ((f = fopen(name, "w")) == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		exit(4);
}

static uint64_t
found(const char *self)
{
	put("self", self);
	return memlimit_cgroup("self", ".");
}

TEST(cgroups)
{
	ok(found("") == UINT64_MAX, "no cgroup");
	ok(found("4:memory:/a/b\n0::/\n") == UINT64_MAX,
	    "the root has no memory.max");
	ok(mkdir("a", 0700) == 0 && mkdir("a/b", 0700) == 0, "two cgroups");
	put("a/b/memory.max", "max\n");
	ok(found("0::/a/b\n") == UINT64_MAX, "max is no limit");
	put("a/memory.max", "50000000\n");
	ok(found("0::/a/b\n") == 50000000, "the limit of the parent cgroup");
	put("a/b/memory.max", "60000000\n");
	ok(found("9:x:/\n0::/a/b\n1:y:/\n") == 50000000, "the smaller of two limits");
	put("a/b/memory.max", "4000000\n");
	ok(found("0::/a/b\n") == 4000000, "the limit of the cgroup itself");
	ok(found("0::/a\n") == 50000000, "not the limit of a child cgroup");
	ok(found("4:memory:/a/b\n") == UINT64_MAX, "cgroups of version 1 are ignored");
	put("memory.max", "3000000\n");
	ok(found("0::/a/b\n") == 3000000, "in a container, the limit of its root");
	put("a/b/memory.max", "\n");
	ok(found("0::/a/b\n") == 3000000, "an empty limit file");
}

TEST(test_limits)
{
	struct rlimit before, l;

	ok(memlimit_of(1 << 20) == 1 << 20, "no limit before the first look");
	memlimit_look();
	ok(memlimit_limit() < UINT64_MAX, "the machine's memory is a limit");
	ok(getrlimit(RLIMIT_DATA, &before) == 0, "the limit as it was");
	l = before;
	l.rlim_cur = (rlim_t)1 << 30;
	ok(setrlimit(RLIMIT_DATA, &l) == 0, "a limit of a GiB");
	memlimit_look();
	/* the leak checker needs memory when the program ends */
	ok(setrlimit(RLIMIT_DATA, &before) == 0, "and back");
	ok(memlimit_limit() <= 1 << 30, "is seen");
	ok(getrlimit(RLIMIT_AS, &before) == 0, "another limit as it was");
	l = before;
	l.rlim_cur = (rlim_t)1 << 29;
	ok(setrlimit(RLIMIT_AS, &l) == 0, "one of half a GiB, of addresses");
	memlimit_look();
	ok(setrlimit(RLIMIT_AS, &before) == 0, "and back");
	ok(memlimit_limit() <= 1 << 29, "is seen, too");
	ok(memlimit_of(1 << 16) == 1 << 16, "a little is there");
	ok(memlimit_of(UINT64_MAX) == memlimit_limit() / 4, "a quarter at most");
}
