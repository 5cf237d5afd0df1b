/*
 * How much memory a process may have, for what can use more or less of it.  It
 * is the least of RLIMIT_AS, RLIMIT_DATA, the memory of the machine and, on Linux,
 * memory.max of the process's cgroup and of those above it.
 */
#ifndef ACE_MEMLIMIT_H
#define ACE_MEMLIMIT_H

#include <stdint.h>

/* memlimit_look(): finds out; once, while the process may still open any file. */
void memlimit_look(void);
/* memlimit_limit(): bytes in all; UINT64_MAX before memlimit_look. */
uint64_t memlimit_limit(void);
/* memlimit_of(want): `want' bytes, or a quarter of the limit if that is less. */
uint64_t memlimit_of(uint64_t want);

/* memlimit_cgroup(self, root): the least memory.max that goes for the process whose
 * /proc/PID/cgroup is the file `self', where cgroup v2 is mounted on `root';
 * UINT64_MAX: there is none. */
uint64_t memlimit_cgroup(const char *self, const char *root);

#endif
