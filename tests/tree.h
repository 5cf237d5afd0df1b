/*
 * The files of a test's directory: check that each is the old or the new one after a
 * failure, and copy them all.
 */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

#include <dirent.h>
#include <ftw.h>

#include "away.h"
#include "base/hash.h"
#include "proc.h"

enum { TREE_FILES = 128, TREE_FILE = 1 << 20 };

struct tree {
	struct tree_file {
		char name[200];
		uint64_t sum;
	} f[TREE_FILES];
	size_t n;
	size_t half;	/* number of unfinished files, NAME.new-XXXXXX */
};

/* Add all files below dir, except hidden and unfinished files, locks and hints. */
static inline void
tree_add(struct tree *t, const char *dir)
{
	static unsigned char b[TREE_FILE];
	struct dirent *de;
	struct stat st;
	char path[200];
	DIR *d = opendir(dir);
	ssize_t k;
	int fd;

	while (d != NULL && (de = readdir(d)) != NULL) {
		t->half += strstr(de->d_name, ".new-") != NULL;
		/* DEVICE.open is a hint written before the files that it concerns */
		if (de->d_name[0] == '.' ||
		    strstr(de->d_name, "lock") != NULL ||
		    strstr(de->d_name, ".open") != NULL ||
		    strstr(de->d_name, ".new-") != NULL ||
		    snprintf(path, sizeof(path), "%s/%s", dir, de->d_name) >=
		    (int)sizeof(path) || stat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			tree_add(t, path);
			continue;
		}
		proc_must(t->n < TREE_FILES && (fd = open(path, O_RDONLY)) >= 0 &&
		    (k = read(fd, b, sizeof(b))) >= 0 && k < TREE_FILE, path);
		(void)close(fd);
		(void)snprintf(t->f[t->n].name, sizeof(t->f[t->n].name), "%s",
		    path);
		t->f[t->n++].sum = hash_64(b, (size_t)k);
	}
	if (d != NULL)
		(void)closedir(d);
}

/* Set t to the files of dir. */
static inline void
tree_take(struct tree *t, const char *dir)
{
	t->n = t->half = 0;
	tree_add(t, dir);
}

static inline const struct tree_file *
tree_find(const struct tree *t, const char *name)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (strcmp(t->f[i].name, name) == 0)
			return &t->f[i];
	return NULL;
}

static inline int
tree_has(const struct tree *t, const struct tree_file *f)
{
	const struct tree_file *g = tree_find(t, f->name);

	return g != NULL && g->sum == f->sum;
}

/* Return 1 when all files of `will' are in `now', and no others except files of `was'. */
static inline int
tree_done(const struct tree *now, const struct tree *was,
    const struct tree *will)
{
	size_t i;

	for (i = 0; i < will->n; i++)
		if (!tree_has(now, &will->f[i]))
			return 0;
	for (i = 0; i < now->n; i++)
		if (!tree_has(will, &now->f[i]) && !tree_has(was, &now->f[i]))
			return 0;
	return 1;
}

/* Return 1 when each file of `now' is in `was' or `will' with the same bytes, and no name that
 * both have is missing. */
static inline int
tree_between(const struct tree *now, const struct tree *was,
    const struct tree *will)
{
	size_t i;

	for (i = 0; i < now->n; i++)
		if (!tree_has(was, &now->f[i]) && !tree_has(will, &now->f[i]))
			return 0;
	for (i = 0; i < was->n; i++)
		if (tree_find(will, was->f[i].name) != NULL &&
		    tree_find(now, was->f[i].name) == NULL)
			return 0;
	return 1;
}

static inline void
tree_copy_file(const char *from, const char *to, mode_t mode)
{
	static unsigned char b[TREE_FILE];
	int in = open(from, O_RDONLY), out;
	ssize_t k;

	proc_must(in >= 0 && (k = read(in, b, sizeof(b))) >= 0 &&
	    k < TREE_FILE, from);
	proc_must((out = open(to, O_WRONLY | O_CREAT | O_TRUNC, mode)) >= 0 &&
	    write(out, b, (size_t)k) == k, to);
	(void)close(in);
	(void)close(out);
}

/* Replace the directory `to' by a copy of `from'. */
static inline void
tree_copy(const char *from, const char *to)
{
	char a[400], b[400];
	struct dirent *de;
	struct stat st;
	DIR *d;

	proc_must(nftw(to, take_away, 16, FTW_DEPTH | FTW_PHYS) == 0 ||
	    errno == ENOENT, to);
	d = opendir(from);
	proc_must(d != NULL && stat(from, &st) == 0 &&
	    mkdir(to, st.st_mode & 0777) == 0, from);
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		(void)snprintf(a, sizeof(a), "%.140s/%.250s", from, de->d_name);
		(void)snprintf(b, sizeof(b), "%.140s/%.250s", to, de->d_name);
		proc_must(stat(a, &st) == 0, a);
		if (S_ISDIR(st.st_mode))
			tree_copy(a, b);
		else
			tree_copy_file(a, b, st.st_mode & 0777);
	}
	(void)closedir(d);
}

#endif
