/*
 * Commit a file: a new file gets its name only when it is complete.  Until then the name
 * belongs to the previous file, if any.
 *
 *	temp_begin	creates NAME.new-XXXXXX beside NAME, locked against temp_sweep,
 *			with the mode of NAME, and with its owner, group and ACL
 *			where that is allowed
 *			(the caller writes it)
 *	temp_commit	closes the file, renames it to NAME; with durable, syncs the
 *			file first and the directory last
 *	temp_drop	removes it, if it was not committed
 *
 * A signal that ends the process removes all its temporary files.  temp_sweep removes
 * those that SIGKILL or a power cut has left.
 */
#ifndef ACE_TEMP_H
#define ACE_TEMP_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;

/* Open an empty file without a name in $TMPDIR (or /tmp), so that nothing remains however
 * the program ends.  Messages call it TEMP_UNNAMED. */
#define TEMP_UNNAMED "temporary file in TMPDIR or /tmp"
int temp_open(int *fd, struct err *e);

/* temp_create: create a file with this mode, less the umask; path ends with TEMP_NAME.  The
 * file is locked (flock) while it is open.
 * temp_sweep: remove the files in dir with such names that no process has locked.
 * temp_remove: remove the file.  A caller that renames the file calls temp_leave instead.
 * temp_enter: from now on a signal that ends the process removes path, a file or a
 * directory of files.  temp_leave: end this.
 * temp_abandon: remove all entered paths now; for signal handlers. */
#define TEMP_NAME ".new-XXXXXX"
int temp_create(char *path, mode_t mode, int *fd, struct err *e);
void temp_sweep(const char *dir);
void temp_remove(const char *path);
void temp_enter(const char *path);
void temp_leave(const char *path);
void temp_abandon(void);

/* Return 1 if it is safe to write through this link or into this FIFO.  It is not if the
 * link or FIFO belongs to another user and is in a folder where all users may create names,
 * such as /tmp.  The kernel has the same rule for links and FIFOs that it meets in sticky
 * folders (protected_symlinks, protected_fifos). */
int temp_trusts(const char *name);

/* If path is a symbolic link, follow it.  Set *target to the name that it leads to,
 * allocated: this is the name that a rename has to replace.  A file of that name need not
 * exist.  -ERR_REFUSED if another user's link is in a folder where all users may create
 * names, such as /tmp. */
int temp_target(const char *path, char **target, struct err *e);
/* Like temp_target, for a folder.  Trailing slashes are removed: with a slash the kernel
 * would follow a link that we have not checked. */
int temp_folder(const char *path, char **target, struct err *e);

struct temp {
	char *path, *name;	/* final name; temporary name; both allocated */
	/* for a file that is rewritten repeatedly, or NULL: temp_commit keeps the old
	 * file of path under this name, and the next file is written over it, because
	 * existing pages and blocks cost a fraction of new ones */
	char *spare;
	int durable;		/* with spare: sync the directory first */
	struct stat was;	/* stat of the file that is replaced */
};

/* Begin the file that will be path; t is all zeros, or has only a spare set.  Return 1 if the
 * file is the spare, which may be longer than the new contents, or else 0.  With a spare, no
 * other process may write path: a temporary file of the same name would be replaced. */
int temp_begin(struct temp *t, const char *path, int *fd, struct err *e);
/* Close fd, also on errors, and rename the file to its name.  Sync it only with durable.
 * name: the file's name in messages. */
int temp_commit(struct temp *t, int fd, int durable, const char *name, struct err *e);
void temp_drop(struct temp *t);

/* Return 1 if a file created beside path would have another owner, group or ACL than path,
 * whose stat is st. */
int temp_differs(const char *path, const struct stat *st);
/* Give fd the ACL of path.  Return 0, or -1 if path has an ACL that cannot be
 * set. */
int temp_acl(int fd, const char *path);

#endif
