/*
 * The folder of a run, on the cloud or on a device, and what all its devices agree on.
 *
 * 	the cloud's DIR				a device's ./ace-NAME
 * 	  run      the agreement		  run    the cloud's agreement
 * 	  spool/   shards and averages		  state/ what was not sent yet
 * 	  state/   what the averages left out	  id     this device's id
 * 	  devices/ NAME holds the device's id	  log
 * 	  devices-lock held while one is added or removed
 * 	  log      messages of the programs	  round  next round's number (DIR has it, too)
 * 	  events   of all programs    		  events
 *
 * The agreement is a text with a line "NAME VALUE" per value, parsed like a file of limits.
 */
#ifndef ACE_PLACE_H
#define ACE_PLACE_H

#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "base/statedir.h"

enum { PLACE_ID = 32, PLACE_NAME = 64, PLACE_WHERE = 4352 };

struct agreement {
	char id[PLACE_ID + 1];	/* id of the run, random hex digits */
	double bits;		/* bits per value, in each direction; 0: not given */
	uint64_t rounds;	/* the run ends after this many; 0: never */
	uint64_t devices;	/* number of devices; 0: not given */
	uint64_t quorum;	/* number of shards at which the deadline starts; 0: no deadline */
	double deadline;	/* seconds after the quorum; 0: wait for all devices */
	uint64_t tolerate;	/* number of bad devices that the average must tolerate */
};

/* Options of ace-cloud that are also lines of the file `run'. */
extern const struct opt place_opts[];

struct place {
	char *dir;		/* absolute, without links */
	char where[PLACE_WHERE];	/* HOST:DIR, for messages */
	struct statedir held;	/* the folder, which ace-cloud and ace-edge lock */
	struct agreement said;	/* the agreement in the folder's file `run' */
};
/* place_agreed(a, out): write a text such as "2 devices, 1.3 bits per value"; return out. */
const char *place_agreed(const struct agreement *a, char out[64]);
#define PLACE_INIT { NULL, "", STATE_INIT, { "", 0, 0, 0, 0, 0, 0 } }

/* place_open(f, dir, make, e): open the folder and read its agreement, which is all
 * zero in a new folder. If the folder is missing, create it if make is 1; else -ERR_USAGE.
 * -ERR_REFUSED: another user owns it or may write to it. Call place_close also after a failure. */
int place_open(struct place *f, const char *dir, int make, struct err *e);
void place_close(struct place *f);

/* place_path(f, name, e): return DIR/name, which the caller frees; NULL on an error. */
char *place_path(const struct place *f, const char *name, struct err *e);
/* place_kept(f, cause, e): check that the folder is where it was. Return 0, also if the
 * folder was moved or removed, since somebody may put it back; cause then gets a sentence
 * about that. -ERR_SYS: there is another folder in its place. */
int place_kept(const struct place *f, char cause[ERR_LINE], struct err *e);
/* place_has(f, name): return 1 if DIR/name exists. */
int place_has(const struct place *f, const char *name);
/* place_make(f, name, e): create the folder DIR/name, mode 0700, if it is missing. */
int place_make(const struct place *f, const char *name, struct err *e);
/* place_save(f, e): write the agreement atomically. */
int place_save(const struct place *f, struct err *e);

/* place_read(path, a, e): read the agreement from a file, all zero if it is absent; -ERR_DATA
 * if it is not valid. place_text(a, out, n): write the agreement as text. */
int place_read(const char *path, struct agreement *a, struct err *e);
void place_text(const struct agreement *a, char *out, size_t n);

/* place_put(f, name, text, e), place_get(f, name, out, n, e): write or read a small text
 * in DIR/name. place_get drops trailing newlines, and returns 1, or 0 and "" if the file is
 * missing. */
int place_put(const struct place *f, const char *name, const char *text,
    struct err *e);
int place_get(const struct place *f, const char *name, char *out, size_t n,
    struct err *e);

/* place_random(id): fill id with random hex digits. */
void place_random(char id[PLACE_ID + 1]);

/* place_named(name, e): check a device's name: 1 to 64 letters, digits, '.', '_' or '-',
 * beginning with a letter or digit, without ".new-". Return 0 or -ERR_USAGE. */
int place_named(const char *name, struct err *e);

#endif
