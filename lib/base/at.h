/*
 * Access to folders by descriptor. After a folder is opened and checked, all names
 * below it are looked up from that descriptor, so that renaming the folder or replacing
 * it by a link has no effect on us.
 */
#ifndef ACE_AT_H
#define ACE_AT_H

struct at {
	const char *dir;	/* the beginning of paths in the folder */
	int fd;
	struct at *next;
};

/* at_add: from now on paths that are a->dir or begin with a->dir and a slash belong to
 * the folder a->fd. at_drop ends this. Call neither while threads open files. */
void at_add(struct at *a);
void at_drop(struct at *a);

/* Return the first two arguments of openat(2) and similar calls. at_dir: the descriptor of
 * path's folder, AT_FDCWD for other paths. at_name: the name relative to that. */
int at_dir(const char *path);
const char *at_name(const char *path);
#define AT(path) at_dir(path), at_name(path)

#endif
