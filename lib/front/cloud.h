/*
 * The cloud as a device sees it: where it is, what it says of the run, and the
 * connection that shards go through.
 *
 * "HOST:DIR" and "USER@HOST:DIR" are reached by ssh, "DIR" is a folder of this
 * machine.  DIR is resolved by the cloud.  A script of one's own can take the place
 * of ssh: it is run with the words NAME WHAT [ID] and with ACE_HOST and ACE_CLOUD
 * (DIR) in its environment, and connects its standard input and output to `ace-cloud
 * serve DIR NAME WHAT [ID]' on the cloud; or to `ace-cloud serve DIR [NAME]', with these
 * words in a line before anything else.
 */
#ifndef ACE_CLOUD_H
#define ACE_CLOUD_H

#include "front/child.h"
#include "front/place.h"

struct err;

struct cloud {
	char *host;		/* NULL: this machine */
	char *dir;
	const char *through;	/* a script instead of ssh, or NULL */
	const char *name;	/* this device's */
};
#define CLOUD_INIT { NULL, NULL, NULL, NULL }

/* cloud_at(c, text, e): take "[[USER@]HOST:]DIR". */
int cloud_at(struct cloud *c, const char *text, struct err *e);
void cloud_release(struct cloud *c);

/* cloud_connect(c, p, what, id, e): add the program that connects to the cloud's
 * `what' to a pipeline; id may be NULL. */
int cloud_connect(const struct cloud *c, struct children *p, const char *what,
    const char *id, struct err *e);

/*
 * cloud_hello(c, f, where, n, e): tell the cloud who this device is (its folder's
 * id) and ask what the run agrees on, which goes into f->said and the folder's file
 * `run'.  where char[n]: "HOST:/absolute/DIR", for messages.
 * -ERR_REFUSED: the cloud does not let this device in, or is of another run than
 * this folder.  -ERR_SYS: it was not reached.
 */
int cloud_hello(const struct cloud *c, struct place *f, char *where, size_t n,
    struct err *e);

/* cloud_answer(f, out, n): what the cloud says to that. */
void cloud_answer(const struct place *f, char *out, size_t n);

#endif
