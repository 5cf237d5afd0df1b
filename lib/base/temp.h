/*
 * Commit a file: write a new file under a temporary name, and rename it to NAME when it is
 * complete.  Until then NAME is the previous file, if any.
 *
 *	temp_begin	creates NAME.new-XXXXXX beside NAME, locked against temp_sweep,
 *			with the mode of NAME, and with its owner, group and ACL
 *			where that is allowed
 *			(the caller writes it)
 *	temp_commit	closes the file, renames it to NAME; with durable, syncs the
 *			file first and the directory last
 *	temp_drop	removes the temporary file if it was not committed
 *
 * When a signal ends the process, its temporary files are removed.  temp_sweep removes
 * files that remained after SIGKILL or a power cut.
 */
#ifndef ACE_TEMP_H
#define ACE_TEMP_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;

/* Open an empty file without a name in $TMPDIR (or /tmp).  The kernel removes it when *fd is
 * closed.  Use TEMP_UNNAMED as the file's name in messages. */
#define TEMP_UNNAMED "temporary file in TMPDIR or /tmp"
int temp_open(int *fd, struct err *e);

/* temp_create: create a file with this mode, less the umask, and register it (temp_enter).
 * path ends with TEMP_NAME, whose X are replaced.  The file is locked (flock) while *fd is open.
 * temp_sweep: remove the files in dir whose names end so and that no process has locked.
 * temp_remove: remove and unregister the file.  If it was renamed, call temp_leave instead.
 * temp_enter: register path, a file or a directory of files, for removal when a signal ends
 * the process.  At most 32 paths are registered at the same time; others are not removed.
 * temp_leave: unregister it.
 * temp_abandon: remove all registered paths now; for signal handlers. */
#define TEMP_NAME ".new-XXXXXX"
int temp_create(char *path, mode_t mode, int *fd, struct err *e);
void temp_sweep(const char *dir);
void temp_remove(const char *path);
void temp_enter(const char *path);
void temp_leave(const char *path);
void temp_abandon(void);

/* Return 1 if it is safe to write through the link, or into the FIFO or device, `name'.  Return
 * 0 if it cannot be looked up, or if all users may create files in its folder, such as /tmp, and
 * neither we nor the folder's owner own it.  The kernel has the same rule for sticky folders
 * (protected_symlinks, protected_fifos). */
int temp_trusts(const char *name);

/* Set *target, allocated, to path with all symbolic links at its end followed: this is the
 * name that a rename has to replace.  *target may be absent.  -ERR_REFUSED if a link is not
 * safe (temp_trusts). */
int temp_target(const char *path, char **target, struct err *e);
/* Like temp_target, for a folder.  Trailing slashes are removed: with a slash the kernel
 * would follow a link that we have not checked. */
int temp_folder(const char *path, char **target, struct err *e);

struct temp {
	char *path, *name;	/* final name; temporary name; both allocated */
	/* NULL, or a name for the previous file.  temp_commit keeps the previous file
	 * under this name, and the next temp_begin overwrites it: this is several times
	 * faster than allocating new pages and blocks */
	char *spare;
	int durable;		/* 1: temp_begin syncs the directory before it overwrites a spare */
	struct stat was;	/* stat of the file that is replaced */
};

/* Create the file that temp_commit will rename to path.  On entry t is zeros except for
 * `spare', allocated, and `durable'.  Return 1 if fd is the spare, which may be longer than
 * the new contents, 0 if it is a new file, or -ERR_SYS.  With a spare, no other process may
 * write path at the same time, since both would use the same spare.  Call temp_drop also
 * after errors. */
int temp_begin(struct temp *t, const char *path, int *fd, struct err *e);
/* Close fd, also on errors, and rename the file to path.  durable: sync the file and its
 * directory.  name: the file's name in messages. */
int temp_commit(struct temp *t, int fd, int durable, const char *name, struct err *e);
void temp_drop(struct temp *t);

/* Return 1 if a file created beside path would differ from path, whose stat is st, in
 * owner, group or ACL. */
int temp_differs(const char *path, const struct stat *st);
/* Copy the ACL of path, if it has one, to fd.  Return 0, or -1 if that fails. */
int temp_acl(int fd, const char *path);

#endif
