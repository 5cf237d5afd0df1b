/*
 * Temporary files: some never have a name, others get their final name once
 * they are complete.
 */
#ifndef ACE_TEMP_H
#define ACE_TEMP_H

#include <stdint.h>
#include <sys/types.h>

struct err;
struct io;

/* temp_open(&fd, e): an empty file in $TMPDIR (or /tmp) that has no name any
 * more, so that nothing is left behind however the program ends. */
int temp_open(int *fd, struct err *e);

/* temp_copy(fd, size, in, e): all that in has, in such a file; fd stands at its start. */
int temp_copy(int *fd, uint64_t *size, struct io *in, struct err *e);

/* temp_create(path, mode, fd, e): a new file of that mode, less the umask; path
 * ends with TEMP_NAME.  It is locked
 * while it is open (flock), so that temp_sweep(dir), which removes what killed
 * processes left there under such names, leaves it alone. */
#define TEMP_NAME ".new-XXXXXX"
int temp_create(char *path, mode_t mode, int *fd, struct err *e);
void temp_sweep(const char *dir);

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
/* temp_beside(path, temp, fd, e): makes a temporary file in path's directory, with
 * the mode that a file made there has; *temp is its name, allocated. */
int temp_beside(const char *path, char **temp, int *fd, struct err *e);
/* temp_place(fd, temp, path, name, e): closes fd, checks that this succeeded,
 * and renames the file temp to path.  name is what messages call it. */
int temp_place(int fd, const char *temp, const char *path, const char *name,
    struct err *e);
/* temp_spare(path): a file of ours that has this name alone, open to be written over
 * under another, and locked; -1: there is none. */
int temp_spare(const char *path);
/* temp_over(path, spare, temp, e): 1: that file has a name as temp_beside gives one,
 * *temp, allocated; 0: it cannot be renamed, and keeps its own.  Nobody else may be
 * writing path: a temporary file of the same random name would be replaced. */
int temp_over(const char *path, const char *spare, char **temp, struct err *e);

#endif
