/*
 * Commit a file: write a new file under a temporary name, and rename it to NAME when it is
 * complete.  Until then NAME is the previous file, if any.
 *
 *	temp_begin	creates NAME.new-XXXXXX beside NAME, locked against temp_sweep.
 *			If NAME exists, the file gets its mode, and its owner, group and
 *			ACL where that is allowed
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

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;

/* Open an empty file without a name in dir, or, if dir is NULL, in $TMPDIR (or /tmp).  The
 * kernel removes it when *fd is closed.  If dir is NULL, call it TEMP_UNNAMED in messages. */
#define TEMP_UNNAMED "temporary file in TMPDIR or /tmp"
int temp_open(const char *dir, int *fd, struct err *e);

/* temp_create: create a file, opened with access O_RDWR or, if the sandbox lets it only be
 * written, O_WRONLY; with this mode, less the umask unless exact is 1.  Register it
 * (temp_enter).  So the sandbox need not allow fchmod, which could open any file to others.
 * With exact 1 no other thread may create files during the call, since the umask changes.
 * path ends with TEMP_NAME, whose X are replaced.  The file is locked (flock) while *fd is open.
 * temp_named: return 1 if a file's name ends so.
 * temp_sweep: remove the files in dir that are named so and that no process has locked.
 * temp_remove: remove and unregister the file.  If it was renamed, call temp_leave instead.
 * temp_enter: register path, a file or a directory of files, for removal when a signal ends
 * the process.  At most 32 paths are registered at the same time; others are not removed.
 * temp_leave: unregister it.
 * temp_abandon: remove all registered paths now; for signal handlers. */
#define TEMP_NAME ".new-XXXXXX"
int temp_create(char *path, int access, mode_t mode, int exact, int *fd, struct err *e);
int temp_named(const char *name);
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

/* Set target to path with all symbolic links at its end followed: this is the name that a
 * rename has to replace.  The target may be absent.  -ERR_REFUSED if a link is not safe
 * (temp_trusts). */
enum { TEMP_PATH = PATH_MAX + 64 };	/* an opened directory's path is below PATH_MAX */
int temp_target(const char *path, char target[TEMP_PATH], struct err *e);
/* Like temp_target, for a folder.  Trailing slashes are removed: with a slash the kernel
 * would follow a link that we have not checked. */
int temp_folder(const char *path, char target[TEMP_PATH], struct err *e);

struct temp {
	/* final name; temporary name; NULL, or the spare; all allocated */
	char *path, *name, *spare;
};

/* Create the file that temp_commit will rename to path; t is zeros.  access: see temp_create.
 * spare: NULL, or a name.  temp_commit keeps the previous file under this name, and the next
 * temp_begin overwrites it: this is several times faster than allocating new pages and
 * blocks.  temp_begin creates a new file if path is absent or has less than TEMP_SPARE bytes,
 * or if the spare is absent, has another owner or other permissions, or has a second name:
 * path itself after a killed commit, or a backup by links.  No other process may write path at
 * the same time, since both would use the same spare.  durable 1: sync the directory before
 * overwriting a spare.
 * Return 1 if *fd is the spare, which may be longer than the new contents, 0 if it is a new
 * file, or -ERR_SYS with *fd -1.  Call temp_drop also after errors. */
enum { TEMP_SPARE = 256 << 10 };
int temp_begin(struct temp *t, const char *path, int access, const char *spare, int durable,
    int *fd, struct err *e);
/* Close fd, also on errors, and rename the file to path.  durable: sync the file and its
 * directory.  name: the file's name in messages. */
int temp_commit(struct temp *t, int fd, int durable, const char *name, struct err *e);
void temp_drop(struct temp *t);

/* Return 1 if a file created beside path would differ from path, whose stat is st, in
 * owner, group or ACL; always 0 in a registered folder (base/at.h). */
int temp_differs(const char *path, const struct stat *st);
/* Copy the ACL of path, if it has one, to fd.  Return 0, or -1 if that fails. */
int temp_acl(int fd, const char *path);

#endif
