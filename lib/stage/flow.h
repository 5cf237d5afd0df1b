/*
 * The plan of a shard that passes once: the plan of a frame follows it, at a
 * price of a byte that is corrected as the budget is spent (sync/once.h) and
 * kept from shard to shard.
 */
#ifndef ACE_FLOW_H
#define ACE_FLOW_H

struct chooser;
struct err;
struct flow;

/* flow_new(out, c, e): c has its levels and its state; takes the price up from
 * there.  flow_free(NULL) is fine. */
int flow_new(struct flow **out, struct chooser *c, struct err *e);
void flow_free(struct flow *f);

/* flow_shard(f, tool, e): the whole shard, after chooser_begin; then the price
 * goes to the state, as written by `tool'. */
int flow_shard(struct flow *f, const char *tool, struct err *e);

#endif
