/*
 * The state directory of a device: created with mode 0700, refused if another user
 * could change it, locked by the one program that commits to it.
 */
#ifndef ACE_STATEDIR_H
#define ACE_STATEDIR_H

struct at;
struct err;
struct memories;

struct statedir {
	char *dir;
	int lock;		/* descriptor, or -1 */
	int durable;		/* its files will be synced */
	int again;		/* the residual before last is overwritten */
	struct memories *later;	/* where data to save waits, or NULL */
	struct at *at;		/* the descriptor of dir */
};
#define STATE_INIT { NULL, -1, 0, 0, NULL, NULL }

/* statedir_open(s, dir, e): makes dir if it is not there.  Links are followed, but not
 * those of other users in folders where all may make names (temp_target).  From then
 * on all paths below dir are looked up from its descriptor (base/at.h).  -ERR_REFUSED
 * when it belongs to somebody else or others may write to it.
 * statedir_open_here(s, dir, name, e): no link is followed; messages and paths call it
 * name. */
int statedir_open(struct statedir *s, const char *dir, struct err *e);
int statedir_open_here(struct statedir *s, const char *dir, const char *name,
    struct err *e);
/* statedir_durable(s, e): makes the directory itself survive a power cut, by an
 * fsync of the one above it.  To be called before any output that relies on the
 * state leaves the program, even when the directory existed before: the program
 * that made it may have been killed before its own fsync. */
int statedir_durable(const struct statedir *s, struct err *e);
/* statedir_lock(s, e): locks the state until statedir_close; -ERR_REFUSED when another
 * process has the lock.  Removes files that killed programs left unfinished. */
int statedir_lock(struct statedir *s, struct err *e);
/* The same with a lock other than that of the committing program; statedir_wait waits
 * for its owner. */
int statedir_lock_as(struct statedir *s, const char *name, struct err *e);
int statedir_wait(struct statedir *s, const char *name, struct err *e);
void statedir_close(struct statedir *s);

/* Remove files kept for a step, such as "history.12", except keep and too, which may be
 * NULL. Needs statedir_lock. */
void statedir_prune(const struct statedir *s, const char *keep, const char *too);

/* statedir_path(s, name, e): dir/name, allocated. */
char *statedir_path(const struct statedir *s, const char *name, struct err *e);

/* statedir_scratch(s, fd, e): an unnamed temporary file in the directory. */
int statedir_scratch(const struct statedir *s, int *fd, struct err *e);

#endif
