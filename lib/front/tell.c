#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/num.h"
#include "front/tell.h"
#include "pipe/event.h"

#define TELL_HOLD 1.5		/* seconds for which lines are held back */
#define TELL_SILENT 9.0		/* seconds without a line, after which the next tick, within
				 * a second, prints one */

/* ---- output ---- */

static void
tell_log(const struct tell *t, const char *text)
{
	const time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (t->log == NULL)
		return;
	if (localtime_r(&now, &tm) != NULL)
		(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	(void)fprintf(t->log, "%s %s\n", when, text);
	(void)fflush(t->log);
}

/* Replace control characters, so that foreign text cannot command the terminal. */
static void
tell_clean(char *s)
{
	size_t n = strlen(s);

	if (n > 0 && s[n - 1] == '\r')	/* ssh ends its lines with CR LF */
		s[n - 1] = '\0';
	bytes_clean(s);
}

static void
tell_show(struct tell *t, const char *text)
{
	tell_log(t, text);
	t->spoke = clock_now();
	if (t->cli->quiet)
		return;
	(void)fprintf(stderr, "%s%s: %s\n", t->drawn ? "\r\033[K" : "", t->who,
	    text);
	t->drawn = 0;
}

void
tell_say(struct tell *t, const char *fmt, ...)
{
	char text[ERR_LINE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell_clean(text);
	tell_show(t, text);
}

/* ---- a round ---- */

/* Write a time, as in "4.2 s", "31 s", "12 min", "3.0 h". */
static const char *
tell_time(double secs, char out[NUM_TEXT])
{
	if (secs < 120)
		(void)snprintf(out, NUM_TEXT, "%.*f s", secs < 9.95, secs);
	else if (secs < 7200)
		(void)snprintf(out, NUM_TEXT, "%.0f min", secs / 60);
	else
		(void)snprintf(out, NUM_TEXT, "%.1f h", secs / 3600);
	return out;
}
#define TELL_TIME(secs) tell_time((secs), (char[NUM_TEXT]){ 0 })

/* Write a round, as in "round 12/100". */
static void
tell_round(const struct tell *t, uint64_t round, char out[64])
{
	const unsigned long long of = t->said->rounds;
	char all[32] = "";

	round = of != 0 && round > of ? of : round;	/* after the last round */
	if (of != 0)
		(void)snprintf(all, sizeof(all), "/%llu", of);
	(void)snprintf(out, 64, "round %llu%s", (unsigned long long)round,
	    all);
}

/* Write the round's bytes, compared with f32, as in ", sent 1.6 MB in 2.0 s (25x smaller)".
 * secs < 0: without the time.  Write "" if there are no bytes. */
static void
tell_bytes(const struct tell *t, const char *verb, double secs, char out[128])
{
	char n[NUM_TEXT], in[NUM_TEXT + 8] = "";
	double times;

	*out = '\0';
	if (t->bytes == 0)
		return;
	if (secs >= 0)
		(void)snprintf(in, sizeof(in), " in %s", TELL_TIME(secs));
	times = 4 * (double)t->values / (double)t->bytes;
	(void)snprintf(out, 128, ", %s %s%s (%.3gx %s)", verb,
	    num_text((double)t->bytes, "B", n), in, times < 1 ? 1 / times : times,
	    times < 1 ? "larger" : "smaller");
}

/* Write the event that a round begins, once per round. */
static void
tell_begins(struct tell *t, uint64_t round)
{
	if (round <= t->begun || (t->said->rounds != 0 && round > t->said->rounds))
		return;
	t->begun = round;
	for (int i = 0; i < TELL_TO; i++)
		event_say(&t->to[i], EVENT_BEGINS, round - 1, t->said->rounds);
}

/* Write a line and an event for a round that has ended (its average came or, on the cloud, was
 * sent), and begin the next round. */
static void
tell_average(struct tell *t, uint64_t round)
{
	const double now = t->now;
	double waited;
	char name[64], who[64], bytes[128], left[64] = "", wait[TELL_LINE] = "";
	char of[32] = "", bad[48] = "", text[ERR_LINE];

	t->rounds++;
	t->done = round;
	if (!t->cloud && t->sent < t->since) {	/* the event that the shard was sent may come later */
		t->sent = t->taken = t->taken < t->since ? now : t->taken;
		t->bytes = 0;
	}
	waited = now - (t->cloud ? t->since : t->taken);
	tell_round(t, round, name);
	if (t->said->rounds > round && t->rounds > 1)
		(void)snprintf(left, sizeof(left), ", about %s left",
		    TELL_TIME((now - t->began) / (double)t->rounds *
		    (double)(t->said->rounds - round)));
	if (t->said->devices >= t->participants)	/* a relay counts as several */
		(void)snprintf(of, sizeof(of), " of %llu",
		    (unsigned long long)t->said->devices);
	if (t->excluded > 0)
		(void)snprintf(bad, sizeof(bad), " (%llu excluded)",
		    (unsigned long long)t->excluded);
	(void)snprintf(who, sizeof(who), "%llu%s device%s%s",
	    (unsigned long long)t->participants, of,
	    (of[0] != '\0' ? t->said->devices : t->participants) == 1 ? "" : "s", bad);
	if (t->cloud) {
		t->sent = t->taken = t->since;
		tell_bytes(t, "average", -1, bytes);
		(void)snprintf(text, sizeof(text), "%s: %s, %s%s%s", name, who,
		    TELL_TIME(waited), bytes, left);
	} else {
		tell_bytes(t, "sent", t->taken - t->sent, bytes);
		if (waited >= 0.95)
			(void)snprintf(wait, sizeof(wait), ", waited %s%s%.300s",
			    TELL_TIME(waited), t->missing[0] != '\0' ?
			    " for " : "", t->missing);
		(void)snprintf(text, sizeof(text), "%s: %s, computing %s%s%.200s%s",
		    name, who, TELL_TIME(t->sent - t->since), bytes, wait, left);
	}
	tell_say(t, "%s", text);
	for (int i = 0; i < TELL_TO; i++)
		event_say(&t->to[i], EVENT_ENDS, round - 1, t->participants, t->excluded,
		    t->values, t->bytes, t->sent - t->since, t->taken - t->sent, waited,
		    text);
	tell_begins(t, round + 1);
	t->state = TELL_COMPUTES;
	t->round = round + 1;
	(void)snprintf(left, sizeof(left), "%20llu\n", (unsigned long long)t->round);
	(void)!pwrite(t->kept, left, strlen(left), 0);
	t->since = now;
	t->missing[0] = '\0';
}

/* Return the number in the event's field `name'; 0 if it is absent or negative. */
static uint64_t
tell_count(const json_t *ev, const char *name)
{
	const json_int_t n = json_integer_value(json_object_get(ev, name));

	return n > 0 ? (uint64_t)n : 0;
}

/* Keep the kind of a program's error; "" is none. */
static void
tell_error(struct tell *t, const json_t *ev, const char *kind)
{
	const char *program = json_string_value(json_object_get(ev, "program"));

	if (program == NULL || kind == NULL || *kind == '\0' || t->nerrors == CHILD_MOST)
		return;
	(void)snprintf(t->error[t->nerrors].program, sizeof(t->error[0].program), "%s",
	    program);
	(void)snprintf(t->error[t->nerrors++].kind, sizeof(t->error[0].kind), "%s", kind);
}

/* Return the kind of the error of the program that wrote a line; "": none is known. */
static const char *
tell_kind(const struct tell *t, const char *line)
{
	const size_t n = strcspn(line, ":");
	size_t i;

	for (i = t->nerrors; i-- > 0;)
		if (strlen(t->error[i].program) == n &&
		    strncmp(t->error[i].program, line, n) == 0)
			return t->error[i].kind;
	return "";
}

static void
tell_event(struct tell *t, const json_t *ev)
{
	const char *name = json_string_value(json_object_get(ev, "event"));
	const uint64_t round = tell_count(ev, "round");
	/* several programs write events, so an event may come after the round's average */
	const int old = !t->cloud && round <= t->done;
	const char *s;

	if (name != NULL && strcmp(name, event_name(EVENT_ERROR)) == 0)
		tell_error(t, ev, json_string_value(json_object_get(ev, "kind")));
	if (name == NULL || round == 0)
		return;
	if (strcmp(name, event_name(EVENT_SENT)) == 0) {
		t->values = tell_count(ev, "values");
		t->bytes = tell_count(ev, "bytes");
	}
	if (strcmp(name, event_name(t->cloud ? EVENT_CLOSED :
	    EVENT_AVERAGE)) == 0) {
		t->participants = tell_count(ev, "participants");
		t->values = t->values != 0 ? t->values : tell_count(ev, "values");
		t->excluded = tell_count(ev, "excluded");
	}
	if (strcmp(name, event_name(t->cloud ? EVENT_SENT :
	    EVENT_AVERAGE)) == 0 && !old) {
		tell_average(t, round);
	} else if (!t->cloud && !old && strcmp(name, event_name(EVENT_SENT)) == 0) {
		/* the event of the receipt may come before this one */
		const int waits = t->state == TELL_WAITS && t->round == round;

		t->sent = t->taken = waits ? t->taken : t->now;
		t->state = waits ? TELL_WAITS : TELL_SENDS;
		t->round = round;
	} else if (!t->cloud && strcmp(name, event_name(EVENT_RECEIPT)) == 0) {
		t->taken = old ? t->taken : t->now;
		t->state = old ? t->state : TELL_WAITS;
		s = json_string_value(json_object_get(ev, "result"));
		if (s != NULL && strcmp(s, "invalid") == 0)
			tell_error(t, ev, s);
		if (s != NULL && strcmp(s, "late") == 0)
			tell_say(t, "the average of round %llu is without this device's "
			    "shard: %s", (unsigned long long)round, round ==
			    t->said->rounds ? "it was the last round" : "the update is "
			    "kept for a later round");
	} else if (!old && strcmp(name, event_name(EVENT_WAITS)) == 0) {
		s = json_string_value(json_object_get(ev, "missing"));
		(void)snprintf(t->missing, sizeof(t->missing), "%s",
		    s != NULL ? s : "");
		tell_clean(t->missing);
		if (t->cloud)
			t->round = round;
		t->state = TELL_WAITS;
	}
}

/* ---- callbacks of child_run ---- */

static void
tell_release(struct tell *t, double before)
{
	size_t i;

	for (i = 0; i < t->nheld && t->held[i].at <= before; i++)
		tell_say(t, "%s", t->held[i].text);
	t->nheld -= i;
	memmove(t->held, t->held + i, t->nheld * sizeof(t->held[0]));
}

/* Handle a program's line. An event updates t and is passed on to all outputs of events.
 * Other lines are held back: if programs fail, one of these lines has the cause. */
static void
tell_line(void *arg, const char *line)
{
	struct tell *t = arg;
	struct tell_line *l;
	char *copy;
	json_t *ev = strncmp(line, "{\"event\":", 9) == 0 ?
	    json_loads(line, 0, NULL) : NULL;

	if (ev != NULL) {
		tell_begins(t, tell_count(ev, "round"));
		for (int i = 0; i < TELL_TO && asprintf(&copy, "%s\n", line) >= 0; i++) {
			if (t->to[i].events != 0)
				event_write(t->to[i].events, copy, strlen(copy));
			free(copy);
		}
		t->now = clock_now();
		tell_event(t, ev);
		json_decref(ev);
		return;
	}
	if (t->nheld == TELL_HELD)
		tell_release(t, t->held[0].at);
	l = &t->held[t->nheld++];
	l->at = clock_now();
	(void)snprintf(l->text, sizeof(l->text), "%s", line);
	tell_clean(l->text);
}

static const char *
tell_state(const struct tell *t)
{
	if (t->state == TELL_STARTS)
		return "has been starting";
	if (t->said->rounds != 0 && t->round > t->said->rounds)
		return "has been ending";
	return t->state == TELL_COMPUTES ? "has been computing" : "has been sending";
}

/* Describe in at most `wide' columns what the run is doing at the time `clock', who does it, and
 * for how long.  If the text is too long, its end, before the duration, is lost. */
static void
tell_doing(const struct tell *t, double clock, int wide, char out[TELL_LINE + 128])
{
	const double from = t->state == TELL_SENDS ? t->sent :
	    t->state == TELL_WAITS && !t->cloud ? t->taken : t->since;
	const int waits = t->cloud || t->state == TELL_WAITS;
	const char *who = t->missing[0] != '\0' ? t->missing :
	    t->cloud ? "the devices" : "the cloud";
	char name[64], time[NUM_TEXT + 8];
	const int n = snprintf(time, sizeof(time), " for %s",
	    TELL_TIME(clock > from ? clock - from : 0));

	if (!waits)
		who = t->state != TELL_SENDS && t->trainer != NULL ? t->trainer : "this device";
	if (wide > TELL_LINE + 127)
		wide = TELL_LINE + 127;
	tell_round(t, t->round, name);
	(void)snprintf(out, (size_t)(wide + 1 - n), "%s: %s%s%s%s", name,
	    waits ? "waiting for " : "", who, waits ? "" : " ",
	    waits ? "" : tell_state(t));
	(void)strcat(out, time);
}

static void
tell_tick(void *arg, int failed)
{
	struct tell *t = arg;
	const double clock = clock_now();
	char text[TELL_LINE + 128];
	int wide;

	if (failed)
		return;
	tell_release(t, clock - TELL_HOLD);
	if (clock - t->spoke < (t->shows ? 1 : TELL_SILENT) || t->cli->quiet)
		return;
	wide = t->shows ? cli_columns(STDERR_FILENO, NULL) - 2 - (int)strlen(t->who) :
	    TELL_LINE;
	tell_doing(t, clock, wide > 40 ? wide : 40, text);
	if (!t->shows) {
		tell_show(t, text);
		return;
	}
	t->spoke = clock;
	t->drawn = 1;
	(void)fprintf(stderr, "\r%s: %s\033[K", t->who, text);
	(void)fflush(stderr);
}

struct child_ear
tell_ear(struct tell *t)
{
	return (struct child_ear){ tell_line, tell_tick, t };
}

/* ---- life of a run ---- */

void
tell_begin(struct tell *t, const struct cli *c, const char *who, int cloud,
    const struct place *f)
{
	char *path = place_path(f, "log", NULL), *kept = place_path(f, "round", NULL);
	char *events = place_path(f, "events", NULL), text[24] = "";
	struct flock works = { .l_type = F_WRLCK };	/* tell_watch looks for this lock */
	int r;

	t->cli = c;
	t->who = who;
	t->cloud = cloud;
	t->said = &f->said;
	t->shows = isatty(STDERR_FILENO);
	t->log = path != NULL ? fopen(path, "ae") : NULL;
	if (events != NULL && (r = open(events, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
	    O_NOFOLLOW, 0600)) > 0)
		t->to[TELL_TO - 1].events = r;
	for (r = 0; r < TELL_TO; r++)
		t->to[r].cli = c;
	t->kept = kept != NULL ? open(kept, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
	    0600) : -1;
	(void)!pread(t->kept, text, sizeof(text) - 1, 0);
	t->round = strtoull(text, NULL, 10);
	(void)fcntl(t->kept, F_OFD_SETLK, &works);
	t->over = t->said->rounds != 0 && t->round > t->said->rounds;
	if (t->over)
		t->round = t->begun = t->said->rounds;
	t->round += t->round == 0;
	t->done = t->round - 1;
	t->began = clock_now();
	alloc_free(path);
	alloc_free(kept);
	alloc_free(events);
	tell_begins(t, t->round);
	tell_start(t);
}

void
tell_start(struct tell *t)
{
	t->since = t->sent = t->taken = t->spoke = clock_now();
	t->state = TELL_STARTS;
	t->missing[0] = '\0';
	t->nheld = t->nerrors = 0;
}

void
tell_end(struct tell *t, int r, const struct err *e)
{
	tell_release(t, clock_now());
	for (int i = 0; i < TELL_TO && r < 0; i++)
		event_say(&t->to[i], EVENT_FAILS, t->round - (t->round != 0), ERR_MSG(e));
	if (t->drawn)
		(void)fputs("\r\033[K", stderr);
	t->drawn = 0;
	if (t->log != NULL)
		(void)fclose(t->log);
	t->log = NULL;
	if (t->kept > 0)
		(void)close(t->kept);
}

void
tell_failed(struct tell *t, const char *cause)
{
	tell_say(t, "round %llu failed: %s", (unsigned long long)t->round, cause);
	for (int i = 0; i < TELL_TO; i++)
		event_say(&t->to[i], EVENT_FAILS, t->round - 1, cause);
}

/* Return a program's name without its folder. */
static const char *
tell_name(const struct child *p)
{
	const char *slash = strrchr(p->word[0], '/');

	return slash != NULL ? slash + 1 : p->word[0];
}

/* Return 1 if the line begins with the name of program p or, if p is the connection to the
 * cloud, of a program of ace on the cloud. Other lines of ssh or socat do not count: they
 * report a broken pipe when the trainer fails. */
static int
tell_wrote(const struct children *c, const struct child *p, const char *line)
{
	const size_t n = strcspn(line, ":");
	size_t i;

	for (i = 0; i < c->n; i++)
		if (strlen(tell_name(&c->child[i])) == n &&
		    strncmp(tell_name(&c->child[i]), line, n) == 0)
			return &c->child[i] == p;
	return p->far && strncmp(line, "ace-", 4) == 0;
}

/* Rate from 0 to 3 how likely a line names the cause: 2 if program p, which is blamed, wrote
 * it, and 1 more if it reports something else than broken input. */
static int
tell_weight(const struct tell *t, const struct children *c, const struct child *p,
    const char *line)
{
	const char *kind = tell_kind(t, line);

	return 2 * tell_wrote(c, p, line) +
	    ((strcmp(kind, "truncated") != 0 && strcmp(kind, "upstream") != 0) ||
	    strstr(line, ", file '/") != NULL || strstr(line, ", file '...") != NULL);
}

/* Find the program to blame: that of child_cause. If that is the trainer, prefer a failed
 * program that gave a reason: the trainer may have failed because its input ended when that
 * program ended. */
static const struct child *
tell_culprit(const struct tell *t, const struct children *c)
{
	const struct child *p = &c->child[child_cause(c)];
	size_t i, k;

	for (i = 0; p->own_voice && i < c->n; i++)
		for (k = 0; k < t->nheld; k++)
			if (!c->child[i].own_voice && child_status(&c->child[i]) != 0 &&
			    tell_weight(t, c, &c->child[i], t->held[k].text) == 3)
				return &c->child[i];
	return p;
}

const struct child *
tell_cause(struct tell *t, const struct children *c, char out[ERR_LINE])
{
	const struct child *p = tell_culprit(t, c);
	const char *prog = tell_name(p), *cause = NULL;
	int best = 1, w;	/* weight 0: a line that only reports another failure */
	size_t i;

	for (i = 0; i < t->nheld; i++) {
		tell_log(t, t->held[i].text);
		if ((w = tell_weight(t, c, p, t->held[i].text)) >= best) {
			best = w;
			cause = t->held[i].text;
		}
	}
	t->kind = tell_kind(t, cause != NULL ? cause : prog);
	t->nheld = 0;
	if (p->own_voice || cause == NULL)
		(void)snprintf(out, ERR_LINE, "'%s' ended with status %d%s%s", prog,
		    child_status(p), child_status(p) > 128 && child_status(p) < 255 ?
		    " (128 + the signal's number)" : "",
		    p->own_voice ? "; its own messages, if any, are above" : "");
	else
		(void)snprintf(out, ERR_LINE, "%s", cause);
	return p;
}

/* ---- watching ---- */

enum { WATCH_TAIL = 1 << 16, WATCH_ROUNDS = 8, WATCH_STATUS = 1 << 22 };

/* Print a line without control characters, cut to `wide' bytes unless that is 0. */
static void __attribute__((format(printf, 2, 3)))
watch_line(int wide, const char *fmt, ...)
{
	char text[PLACE_WHERE + 128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell_clean(text);
	(void)printf("%.*s\n", wide > 0 ? wide : (int)sizeof(text), text);
}

/* Update t by an event of the folder.  Keep the last WATCH_ROUNDS lines about rounds. */
static void
watch_event(struct tell *t, const json_t *ev)
{
	const char *name = json_string_value(json_object_get(ev, "event"));
	const char *text = json_string_value(json_object_get(ev, "text"));
	const int fails = name != NULL && strcmp(name, event_name(EVENT_FAILS)) == 0;

	t->now = json_number_value(json_object_get(ev, "time"));
	if (name != NULL && (fails || strcmp(name, event_name(EVENT_BEGINS)) == 0)) {
		t->round = tell_count(ev, "round");
		t->since = t->now;
		t->state = fails ? TELL_STARTS : TELL_COMPUTES;
		t->missing[0] = '\0';
	}
	if (name != NULL && text != NULL && (fails || strcmp(name, event_name(EVENT_ENDS)) == 0))
		(void)snprintf(t->held[t->nheld++ % WATCH_ROUNDS].text, ERR_LINE, "%s%s",
		    fails ? "failed: " : "", text);
	tell_event(t, ev);
}

/* Print a line for each of the first `most' devices of a cloud, from ace-status, below a head,
 * and how many more there are. */
static void
watch_devices(const struct place *f, int wide, size_t most)
{
	char *spool = place_path(f, "spool", NULL);
	char *text = alloc_raw(WATCH_STATUS, 1, NULL);
	char *const words[] = { (char[]){ "ace-status" }, (char[]){ "--format" },
		(char[]){ "json" }, spool, NULL };
	json_t *all = spool == NULL || text == NULL || child_output(words, text,
	    WATCH_STATUS, NULL) != 0 ? NULL : json_loads(text, 0, NULL);
	const json_t *devices = json_object_get(all, "devices"), *d, *step;

	if (json_array_size(devices) != 0)
		watch_line(wide, "%5s %-7s %7s %s", "round", "is", "since", "device");
	for (size_t i = 0; i < most && (d = json_array_get(devices, i)) != NULL; i++) {
		step = json_object_get(d, "step");
		watch_line(wide, "%5lld %-7s %7s %s", step == NULL ? 0LL :
		    (long long)json_integer_value(step) + 1,
		    json_string_value(json_object_get(d, "is")),
		    TELL_TIME(json_number_value(json_object_get(d, "seconds"))),
		    json_string_value(json_object_get(d, "device")));
	}
	if (json_array_size(devices) > most)
		watch_line(wide, "and %zu more: ace-status %s",
		    json_array_size(devices) - most, spool);
	if (json_array_size(devices) != 0)
		(void)putchar('\n');
	json_decref(all);
	alloc_free(text);
	alloc_free(spool);
}

int
tell_watch(const struct place *f, struct err *e)
{
	static const struct cli quiet = { .quiet = 1 };
	struct tell t = { .cli = &quiet, .cloud = place_has(f, "spool"), .kept = -1,
		.said = &f->said, .round = 1 };
	char *path = place_path(f, "events", e), *kept = place_path(f, "round", e);
	struct flock works = { .l_type = F_WRLCK };
	FILE *in = path != NULL ? fopen(path, "re") : NULL;
	const int fd = kept != NULL ? open(kept, O_RDONLY | O_CLOEXEC) : -1;
	char *line = NULL, text[TELL_LINE + 128];
	int rows = 0;
	const int wide = cli_columns(STDOUT_FILENO, &rows);
	struct timespec now = { 0, 0 };
	size_t cap = 0, i;
	json_t *ev;

	/* if no event says since when, count from now */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	t.since = t.taken = (double)now.tv_sec;
	if (in != NULL)
		(void)fseek(in, -WATCH_TAIL, SEEK_END);
	while (in != NULL && getline(&line, &cap, in) > 0)
		if ((ev = json_loads(line, 0, NULL)) != NULL) {
			watch_event(&t, ev);
			json_decref(ev);
		}
	watch_line(wide, "run in %s: %s", f->where, place_agreed(&f->said, text));
	if (t.said->rounds != 0 && t.round > t.said->rounds)
		watch_line(wide, "done: %llu round%s", (unsigned long long)t.said->rounds,
		    t.said->rounds == 1 ? "" : "s");
	else if (fd < 0 || fcntl(fd, F_OFD_GETLK, &works) < 0 || works.l_type == F_UNLCK)
		watch_line(wide, "round %llu: ace %s does not run in this folder: type its "
		    "command again", (unsigned long long)(t.round > 0 ? t.round : 1),
		    !t.cloud ? "edge" :
		    place_has(f, "id") ? "relay" : "cloud");
	else {
		tell_doing(&t, (double)now.tv_sec, wide > 40 ? wide : TELL_LINE, text);
		watch_line(wide, "%s", text);
	}
	(void)putchar('\n');
	if (t.cloud)
		watch_devices(f, wide, rows > 0 ? (size_t)rows / 2 : SIZE_MAX);
	for (i = t.nheld > WATCH_ROUNDS ? t.nheld - WATCH_ROUNDS : 0; i < t.nheld; i++)
		watch_line(wide, "%s", t.held[i % WATCH_ROUNDS].text);
	if (in != NULL)
		(void)fclose(in);
	if (fd >= 0)
		(void)close(fd);
	free(line);
	alloc_free(path);
	alloc_free(kept);
	return path != NULL && kept != NULL ? 0 : -ERR_SYS;
}
