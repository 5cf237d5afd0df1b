/*
 * least [-s] IN KEPT: do the least work of a step of error feedback: read IN and KEPT, compute
 * their checksums as frames do, and replace KEPT by a file of the same size.  -s: sync the
 * file and its folder.  Nothing is decoded, added, planned or coded.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"

enum { PIECE = 256 << 10 };
static unsigned char piece[PIECE];
static volatile uint64_t sum;

static void
die(const char *what)
{
	perror(what);
	exit(4);
}

static size_t
take(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t all = 0;
	ssize_t k;

	if (fd < 0)
		die(path);
	while ((k = read(fd, piece, sizeof(piece))) > 0) {
		sum += hash_64(piece, (size_t)k);
		all += (size_t)k;
	}
	if (k < 0 || close(fd) < 0)
		die(path);
	return all;
}

static void
put(const char *path, size_t all, int synced)
{
	char made[4096];
	size_t n;
	int fd;

	(void)snprintf(made, sizeof(made), "%s.new", path);
	if ((fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
		die(made);
	for (; all > 0; all -= n) {
		n = all < PIECE ? all : PIECE;
		sum += hash_64(piece, n);
		if (write(fd, piece, n) != (ssize_t)n)
			die(made);
	}
	if ((synced && fsync(fd) < 0) || close(fd) < 0 ||
	    rename(made, path) < 0)
		die(made);
}

static void
sync_folder(char *path)
{
	char *slash = path, *p;
	int fd;

	for (p = path; *p != '\0'; p++)
		slash = *p == '/' ? p : slash;
	*slash = '\0';
	fd = open(slash == path ? "." : path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0 || close(fd) < 0)
		die(path);
}

int
main(int argc, char **argv)
{
	int synced = argc == 4 && argv[1][0] == '-' && argv[1][1] == 's';

	if (argc != 3 + synced)
		return 2;
	argv += 1 + synced;
	(void)take(argv[0]);
	put(argv[1], take(argv[1]), synced);
	if (synced)
		sync_folder(argv[1]);
	return 0;
}
