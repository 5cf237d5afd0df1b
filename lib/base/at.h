/*
 * Folders that are used by descriptor.  Once a folder was opened and checked, every
 * name below it is looked up from that descriptor: whoever renames the folder
 * afterwards, or puts a link in its place, does not reach what we do in it.
 */
#ifndef ACE_AT_H
#define ACE_AT_H

struct at {
	const char *dir;	/* what paths begin with */
	int fd;
	struct at *next;
};

/* at_add(a): paths that are a->dir, or begin with a->dir and a slash, are of the
 * folder a->fd from now on, until at_drop(a).  Not while threads open files. */
void at_add(struct at *a);
void at_drop(struct at *a);

/* AT(path): the first two arguments of openat(2) and its like.  at_dir: the
 * descriptor, AT_FDCWD for other paths.  at_name: the name from there. */
int at_dir(const char *path);
const char *at_name(const char *path);
#define AT(path) at_dir(path), at_name(path)

#endif
