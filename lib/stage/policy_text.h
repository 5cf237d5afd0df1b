/*
 * How a policy's decisions are put: numbers as values of keys, reasons in words.
 */
#ifndef ACE_POLICY_TEXT_H
#define ACE_POLICY_TEXT_H

struct err;
struct stage_policy_opts;
struct text_kv;

/* With -v. */
void policy_text_say(const struct stage_policy_opts *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int policy_text_real(struct text_kv *kv, const char *key, double v,
    struct err *e);
int policy_text_whole(struct text_kv *kv, const char *key, double v,
    struct err *e);

#endif
