/*
 * A device's state directory: made with mode 0700, refused when another user
 * could change it, locked by the one program that commits to it.
 */
#ifndef ACE_STATE_H
#define ACE_STATE_H

struct err;

struct state {
	char *dir;
	int lock;		/* descriptor, or -1 */
	int durable;		/* its files are going to be synced */
};
#define STATE_INIT { NULL, -1, 0 }

/* state_open(s, dir, e): makes dir if it is not there.  -ERR_REFUSED when it
 * belongs to somebody else or others may write to it. */
int state_open(struct state *s, const char *dir, struct err *e);
/* state_durable(s, e): makes the directory itself survive a power cut, by an
 * fsync of the one above it.  To be called before any output that relies on the
 * state leaves the program, even when the directory existed before: the program
 * that made it may have been killed before its own fsync. */
int state_durable(const struct state *s, struct err *e);
/* state_lock(s, e): locks the state until state_close; -ERR_REFUSED when another
 * process has the lock.  Removes files that killed programs left unfinished. */
int state_lock(struct state *s, struct err *e);
/* The same with another lock than the committing program's. */
int state_lock_as(struct state *s, const char *name, struct err *e);
void state_close(struct state *s);

/* state_prune(s, keep, too): removes the files that were kept for a step, such
 * as "momentum.12", except those named keep and too, which may be NULL.  Needs
 * state_lock. */
void state_prune(const struct state *s, const char *keep, const char *too);

/* state_path(s, name, e): dir/name, allocated. */
char *state_path(const struct state *s, const char *name, struct err *e);

/* state_scratch(s, fd, e): an unnamed temporary file in the directory. */
int state_scratch(const struct state *s, int *fd, struct err *e);

#endif
