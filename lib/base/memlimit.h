/*
 * The memory that a process may use, for code that can do with less: the least of
 * RLIMIT_AS, RLIMIT_DATA, the machine's memory and, on Linux, memory.max of the process's
 * cgroup and its parents.
 */
#ifndef ACE_MEMLIMIT_H
#define ACE_MEMLIMIT_H

#include <stdint.h>

/* Determine the limit; call once, while the process may open any file. */
void memlimit_look(void);
/* Return the limit in bytes; UINT64_MAX before memlimit_look. */
uint64_t memlimit_limit(void);
/* Return `want' bytes, or a quarter of the limit if that is less. */
uint64_t memlimit_of(uint64_t want);

/* Return the least memory.max that applies to a process; UINT64_MAX: none. self: the path of
 * its /proc/PID/cgroup; root: where cgroup v2 is mounted. */
uint64_t memlimit_cgroup(const char *self, const char *root);

#endif
