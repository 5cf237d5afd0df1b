/*
 * The cloud as a device sees it: its folder, its agreement, and the connection for shards.
 *
 * "HOST:DIR" and "USER@HOST:DIR" are reached by ssh, "DIR" is a folder of this machine.
 * The cloud resolves DIR.  A script can take the place of ssh: it is run with the words
 * NAME WHAT [ID] and with ACE_HOST and ACE_CLOUD (DIR) in its environment.  It connects its
 * standard input and output to `ace-cloud serve DIR NAME WHAT [ID]' on the cloud, or to
 * `ace-cloud serve DIR [NAME]' after writing these words as a first line.
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
	const char *name;	/* this device's name */
};
#define CLOUD_INIT { NULL, NULL, NULL, NULL }

/* cloud_at(c, text, e): parse "[[USER@]HOST:]DIR"; -ERR_USAGE or -ERR_SYS.  Release c anyway. */
int cloud_at(struct cloud *c, const char *text, struct err *e);
void cloud_release(struct cloud *c);

/* cloud_connect(c, p, what, id): add to pipeline p the program that connects to the cloud's
 * service `what': "hello" (id: the device's id) or "sync" (id: the run's id). */
void cloud_connect(const struct cloud *c, struct children *p, const char *what,
    const char *id);

/* cloud_hello(c, f, where, n, e): send the cloud this device's id, which is made and kept in
 * its folder f, and store the agreement that the cloud answers in f->said; the caller then calls
 * place_save.  where[n] becomes "HOST:/absolute/DIR", for messages.  -ERR_REFUSED: the cloud does
 * not admit this device, or has another run than this folder.  -ERR_SYS: the cloud was not
 * reached.  -ERR_DATA: the answer is not an agreement. */
int cloud_hello(const struct cloud *c, struct place *f, char *where, size_t n,
    struct err *e);

/* cloud_answer(f, out, n): write to out[n] the cloud's answer to a hello; f is its folder. */
void cloud_answer(const struct place *f, char *out, size_t n);

#endif
