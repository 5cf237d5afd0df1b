/*
 * Takes a state that was restored from a backup into use.  What the device
 * sent after the backup may have been accepted, and the backup knows nothing
 * of it; so the receiver is asked:
 *
 *   it raises the device's incarnation, which fences off whatever of the old
 *   one is still on its way, and answers with the number, with receipts for
 *   what it has accepted up to the backup's step, and with the shards it has
 *   accepted since;
 *
 *   the device gives up what was pending and not accepted (e += dec(C)), counts
 *   what was accepted since (e -= dec(C)), and goes on as that incarnation after
 *   the last of these steps.
 *
 * So what was delivered and what is kept are again the sum of the inputs that
 * the restored state knows of.  The method is ours.
 */
#ifndef ACE_RESTORE_H
#define ACE_RESTORE_H

#include <stdint.h>

#include "base/io.h"
#include "base/statedir.h"
#include "format/reader.h"

struct err;

/* steps, which no run takes between two backups */
enum { RESTORE_AHEAD = 1000000 };

/* restore_take(s, in, sync, n, e): the device's part (spool/fence.h has
 * the receiver's); in is the answer, *n becomes the new incarnation.  An answer
 * for another device, an old one, and shards of more than RESTORE_AHEAD steps
 * after the state's are refused.  Each change is one commit, after which the sums above are right: if it fails in between,
 * it can be done again, with a new answer. */
int restore_take(struct statedir *s, struct reader *in, enum io_sync sync,
    uint64_t *n, struct err *e);

#endif
