/*
 * Committing a file: what is made or replaced has its name once it is complete, or
 * there is what there was before.
 *
 *	temp_begin	creates NAME.new-XXXXXX beside NAME, locked against temp_sweep,
 *			and as open to others as NAME is: its mode, and its owner,
 *			group and ACL where that is allowed
 *			(the caller writes it)
 *	temp_commit	syncs and closes the file, renames it to NAME, syncs the
 *			directory
 *	temp_drop	removes it, if it was not committed
 *
 * A signal that ends the process removes all temporary files that it has; what SIGKILL
 * or a power cut leaves is removed by temp_sweep.
 */
#ifndef ACE_TEMP_H
#define ACE_TEMP_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;

/* temp_open(&fd, e): an empty file in $TMPDIR (or /tmp) that has no name any
 * more, so that nothing is left behind however the program ends. */
int temp_open(int *fd, struct err *e);

/* temp_create(path, mode, fd, e): a new file of that mode, less the umask; path ends
 * with TEMP_NAME.  It is locked while it is open (flock), so that temp_sweep(dir),
 * which removes what killed processes left there under such names, leaves it alone.
 * temp_remove(path) removes it; a caller that renames it calls temp_leave.
 * temp_enter(path), temp_leave(path): path, a file or a directory of files, is removed
 * by a signal from now on, or no longer.
 * temp_abandon(): removes them all now; for signal handlers. */
#define TEMP_NAME ".new-XXXXXX"
int temp_create(char *path, mode_t mode, int *fd, struct err *e);
void temp_sweep(const char *dir);
void temp_remove(const char *path);
void temp_enter(const char *path);
void temp_leave(const char *path);
void temp_abandon(void);

/* temp_trusts(name): may one write through this link, or into this FIFO?  In a folder
 * where all may make names, such as /tmp, somebody else's leads where he wants; the
 * kernel refuses those that it comes to itself (protected_symlinks, protected_fifos)
 * where the folder is sticky, too. */
int temp_trusts(const char *name);

/* temp_target(path, target, e): follows the symbolic links that path itself is;
 * *target is the name that they lead to, allocated: the one that a rename has to
 * replace.  A file of that name need not exist.  -ERR_REFUSED: another user's link in
 * a folder where all may make names, such as /tmp. */
int temp_target(const char *path, char **target, struct err *e);
/* The same without the slashes that the name of a folder may end with: through these
 * the kernel would follow a link that we have not seen. */
int temp_folder(const char *path, char **target, struct err *e);

struct temp {
	char *path, *name;	/* the final name, the temporary's; allocated */
	/* of a file that is made anew again and again, or NULL: what path was before is
	 * kept under this name at temp_commit, and the next one is written over it,
	 * since pages and blocks that are there already cost a fraction of new ones */
	char *spare;
	int durable;		/* with spare: the directory is synced first */
	struct stat was;	/* what is replaced */
};

/* temp_begin(t, path, fd, e): t is zeros, or has a spare.  Returns 0, or 1 when the file
 * is the spare and may be longer than what will be written.  With a spare nobody else
 * may be writing path: a temporary file of the same random name would be replaced. */
int temp_begin(struct temp *t, const char *path, int *fd, struct err *e);
/* temp_commit(t, fd, durable, name, e): closes fd in any case; without durable nothing
 * is synced.  name is what messages call the file. */
int temp_commit(struct temp *t, int fd, int durable, const char *name, struct err *e);
void temp_drop(struct temp *t);

/* temp_differs(path, st): whether a file that is made beside path has another owner,
 * group or ACL than path, whose stat is st. */
int temp_differs(const char *path, const struct stat *st);
/* temp_acl(fd, path): gives fd the ACL of path: 0, or -1 when it has one that cannot be
 * set. */
int temp_acl(int fd, const char *path);

#endif
