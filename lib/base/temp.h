/*
 * Files without a name.
 */
#ifndef ACE_TEMP_H
#define ACE_TEMP_H

struct err;

/* temp_open(&fd, e): an empty file in $TMPDIR (or /tmp) that has no name any
 * more, so that nothing is left behind however the program ends. */
int temp_open(int *fd, struct err *e);

#endif
