/*
 * The folder of a run, on the cloud or on a device, and what all of its devices
 * agree on.
 *
 *	the cloud's DIR				a device's ./ace-NAME
 *	  run      the agreement		  run    as the cloud said it
 *	  spool/   shards and averages		  state/ what was not sent yet
 *	  state/   what the averages left out	  id     who this device is
 *	  devices/ NAME, in it the device's id	  log
 *	  log      what the programs said
 *
 * The agreement is a text, NAME VALUE on a line, read as a file of limits is.
 */
#ifndef ACE_PLACE_H
#define ACE_PLACE_H

#include <stdint.h>

#include "base/opt.h"
#include "base/statedir.h"

struct err;

enum { PLACE_ID = 32, PLACE_NAME = 64, PLACE_WHERE = 4352 };

struct agreement {
	char id[PLACE_ID + 1];	/* of the run, random hex digits */
	double bits;		/* of each value, both ways; 0: not said */
	uint64_t rounds;	/* the run ends after so many; 0: never */
	uint64_t devices;	/* that take part; 0: not said */
	uint64_t quorum;	/* so many are enough, once `deadline' seconds have */
	double deadline;	/* passed since they were there; 0: all, for ever */
	uint64_t tolerate;	/* so many may send anything */
};

/* Rows of options: what ace-cloud can be told.  They are lines of the file `run',
 * too. */
extern const struct opt place_opts[];

struct place {
	char *dir;		/* absolute, without links */
	char where[PLACE_WHERE];	/* HOST:DIR, for messages */
	struct statedir held;	/* the folder, locked */
	struct agreement said;	/* in its file `run' */
};
#define PLACE_INIT { NULL, "", STATE_INIT, { "", 0, 0, 0, 0, 0, 0 } }

/* place_open(f, dir, make, e): open the folder and read its agreement, all zero
 * where there is none yet.  make: make the folder where it is not there.
 * -ERR_REFUSED: it belongs to somebody else, or others may write to it. */
int place_open(struct place *f, const char *dir, int make, struct err *e);
/* place_lock(f, what, e): lock it until place_close.  -ERR_REFUSED: another
 * `what' works on it. */
int place_lock(struct place *f, const char *what, struct err *e);
void place_close(struct place *f);

/* place_path(f, name, e): DIR/name, allocated. */
char *place_path(const struct place *f, const char *name, struct err *e);
/* place_make(f, name, e): make the folder DIR/name, mode 0700, if it is not
 * there. */
int place_make(const struct place *f, const char *name, struct err *e);
/* place_save(f, e): write the agreement, whole or not at all. */
int place_save(const struct place *f, struct err *e);

/* place_read(path, a, e): the agreement in a file.  place_text(a, out, n): as
 * text. */
int place_read(const char *path, struct agreement *a, struct err *e);
void place_text(const struct agreement *a, char *out, size_t n);

/* place_put(f, name, text, e), place_get(f, name, out, n, e): a small text in
 * DIR/name.  get: 1, or 0 and "" where there is none; a line's end at its end is
 * left out. */
int place_put(const struct place *f, const char *name, const char *text,
    struct err *e);
int place_get(const struct place *f, const char *name, char *out, size_t n,
    struct err *e);

/* place_random(id): fill with random hex digits. */
void place_random(char id[PLACE_ID + 1]);

/* place_named(name, e): 0 when a device may have this name: 1 to 64 of letters,
 * digits, '.', '_' and '-', the first one a letter or a digit.  -ERR_USAGE. */
int place_named(const char *name, struct err *e);

#endif
