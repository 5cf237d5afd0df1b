/*
 * The state directory of a device: created with mode 0700, refused if it is another user's or
 * others may write to it, and locked by the one program that commits to it.
 */
#ifndef ACE_STATEDIR_H
#define ACE_STATEDIR_H

#include <stdint.h>

#include "base/temp.h"

struct at;
struct err;

struct statedir {
	char *dir;		/* its path, for messages and for paths below it */
	int lock;		/* descriptor of the lock file, or -1 */
	int durable;		/* 1: its files will be synced */
	int again;		/* 1: write the residual over its spare (device/residual.h) */
	int settled;		/* 1: the residual's last rename is durable */
	struct at *at;		/* the descriptor of dir */
};
enum { STATE_PATH = TEMP_PATH };	/* bytes for the path of a file */
#define STATE_INIT { NULL, -1, 0, 0, 0, NULL }

/* statedir_open: open dir, and create it if it does not exist.  Links are followed, except
 * those of other users in folders where all users may create names (temp_target).  From
 * then on all paths below dir are looked up from its descriptor (base/at.h).  -ERR_REFUSED
 * if dir belongs to another user or others may write to it.
 * statedir_open_here: do the same without following links: -ERR_REFUSED if dir is one.
 * name: how messages and paths name dir. */
int statedir_open(struct statedir *s, const char *dir, struct err *e);
int statedir_open_here(struct statedir *s, const char *dir, const char *name,
    struct err *e);
/* Sync the parent of the directory, so that the directory survives a power cut.  Call it
 * before any output that relies on the state leaves the program, even when the directory
 * existed before: the program that created it may have been killed before its own
 * fsync. */
int statedir_durable(const struct statedir *s, struct err *e);
/* Check that the path still leads to the directory that was opened.  Return 0 or -ERR_SYS. */
int statedir_there(const struct statedir *s, struct err *e);
/* Lock the file `name' of the state until statedir_close, and remove unfinished files of
 * killed programs.  Programs that commit to the state lock STATE_LOCK.  -ERR_REFUSED if
 * another process has the lock. */
#define STATE_LOCK "lock"
int statedir_lock(struct statedir *s, const char *name, struct err *e);
void statedir_close(struct statedir *s);

/* Remove the files history.STEP of the steps up to `last', except the names `keep' and `too',
 * which may be NULL.  Needs a lock that the programs that write these files take. */
void statedir_prune(const struct statedir *s, uint64_t last, const char *keep,
    const char *too);

/* Write the path dir/name to out, and return out. */
char *statedir_path(const struct statedir *s, const char *name, char out[STATE_PATH]);

#endif
