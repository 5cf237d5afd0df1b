/*
 * Access to folders by descriptor. After a folder is opened and checked, all names
 * below it are looked up from that descriptor, so that renaming the folder or replacing
 * it by a link has no effect on us.
 */
#ifndef ACE_AT_H
#define ACE_AT_H

struct at {
	const char *dir;	/* the folder's path, with which paths of its files begin */
	int fd;
	struct at *next;
};

/* at_add: from now on paths that are a->dir or begin with a->dir and a slash belong to
 * the folder a->fd. at_drop ends this; until then a must stay. Call neither while threads
 * open files. */
void at_add(struct at *a);
void at_drop(struct at *a);

/* Return the first two arguments of openat(2) and similar calls. at_dir: the descriptor of
 * the folder that path belongs to, AT_FDCWD if none. at_name: the name relative to that, "."
 * for the folder itself. */
int at_dir(const char *path);
const char *at_name(const char *path);
#define AT(path) at_dir(path), at_name(path)

#endif
