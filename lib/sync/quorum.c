#include "sync/quorum.h"

enum quorum_now
quorum_now(const struct quorum *q, size_t here, int all, double waited)
{
	size_t enough = q->expect != 0 ? q->expect : q->quorum;
	int due = q->deadline > 0 && waited >= q->deadline;

	if (here == 0)
		return QUORUM_WAIT;
	if (here >= enough && (q->expect != 0 || !(q->deadline > 0)))
		return QUORUM_OVER;
	if (!all && !due)
		return QUORUM_WAIT;
	return here >= q->quorum ? QUORUM_OVER : QUORUM_FAILED;
}

double
quorum_left(const struct quorum *q, double waited)
{
	if (!(q->deadline > 0))
		return -1;
	return waited < q->deadline ? q->deadline - waited : 0;
}
