/*
 * A policy's decisions as text: numbers as the values of keys, reasons in
 * words.
 */
#ifndef ACE_POLICY_TEXT_H
#define ACE_POLICY_TEXT_H

struct err;
struct stage_policy_opts;
struct text_kv;

/* policy_text_say: a line on standard error, if -v was given.
 * policy_text_real, policy_text_whole: set a key to a number. */
void policy_text_say(const struct stage_policy_opts *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int policy_text_real(struct text_kv *kv, const char *key, double v,
    struct err *e);
int policy_text_whole(struct text_kv *kv, const char *key, double v,
    struct err *e);

#endif
