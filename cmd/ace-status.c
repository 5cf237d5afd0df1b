/*
 * ace-status: how a run is going, from a spool or from a device's state: who is
 * in which step, who is missing, what was decided; and from the directory of
 * ace-diff -S who has which model.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/scan.h"
#include "device/contraction.h"
#include "device/link.h"
#include "device/memory.h"
#include "device/receipts.h"
#include "device/residual.h"
#include "format/text.h"
#include "kern/kern.h"
#include "model/books.h"
#include "model/store.h"
#include "report/metrics.h"
#include "report/screen.h"
#include "report/status.h"
#include "spool/clients.h"

enum { FORM_TEXT, FORM_METRICS, FORM_JSON };
static const char *const forms[] = { "text", "metrics", NULL };

struct status_opts {
	FILE *f;
	const char *run;	/* of a spool: this one only; NULL: all */
	int form;
	struct metrics *metrics;	/* what all directories say, in that form */
	int width;		/* longer lines of text are cut; 0: none is */
};

/* One look at one directory. */
struct status {
	const struct status_opts *o;
	const char *dir;
	struct screen s;
	double now;		/* Unix seconds */
	int runs;		/* said so far */
};

/* ---- lines ---- */

/* Prints a line of text, cut to the width of the terminal and without
 * characters that a terminal obeys. */
static void __attribute__((format(printf, 2, 3)))
status_line(const struct status *x, const char *fmt, ...)
{
	char s[1024];
	int n, col = 0;
	va_list ap;
	size_t i;

	va_start(ap, fmt);
	n = vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	for (i = strlen(s); i != 0 && s[i - 1] == ' ';)
		s[--i] = '\0';
	n = text_clean(s, strlen(s));
	for (i = 0; s[i] != '\0'; i++) {
		/* a byte that goes on with a character takes no column */
		col += ((unsigned char)s[i] & 0xc0) != 0x80;
		if (x->o->width > 0 && col > x->o->width)
			break;
		(void)fputc(n || (s[i] >= 0x20 && s[i] < 0x7f) ? s[i] : '?',
		    x->o->f);
	}
	(void)fputc('\n', x->o->f);
}

/* ---- a run of a spool, as text ---- */

/* The names of those that are missing. */
static const char *
status_names(const struct status_run *r, char out[400])
{
	const struct status_device *d;
	size_t i, n = 0;

	out[0] = '\0';
	for (i = 0; i < r->n; i++) {
		d = &r->d[i];
		if (!d->expected || d->here)
			continue;
		if (n + strlen(d->name) + 8 > 400) {
			(void)snprintf(out + n, 400 - n, ", ...");
			break;
		}
		n += (size_t)snprintf(out + n, 400 - n, "%s%s",
		    n != 0 ? ", " : "", d->name);
	}
	return out;
}

static void
status_waits(const struct status *x, const struct status_run *r)
{
	char names[400], age[32];

	(void)screen_ago(x->now - r->since, age);
	if (r->now == STATUS_CLOSED)
		status_line(x, "step %llu is closed with %zu shards, its "
		    "aggregate is not there yet (ace-aggregate)",
		    (unsigned long long)r->step, r->here);
	else if (r->now == STATUS_OPEN && !r->has_last && !r->listed)
		status_line(x, "step %llu: %zu shards are there, for %s; of a first "
		    "step it is not known who is missing (ace-recv --join says it "
		    "before), or ace-aggregate does not run",
		    (unsigned long long)r->step, r->here, age);
	else if (r->now == STATUS_OPEN && r->missing == 0)
		status_line(x, "step %llu: all %zu shards are there, for %s; "
		    "nobody has closed it (ace-aggregate)",
		    (unsigned long long)r->step, r->here, age);
	else if (r->now == STATUS_OPEN)
		status_line(x, "step %llu: %zu of %zu shards are there, for "
		    "%s; missing: %s", (unsigned long long)r->step, r->here,
		    r->here + r->missing, age, status_names(r, names));
	else if (r->has_last)
		status_line(x, "waiting for a first shard after step %llu",
		    (unsigned long long)r->last);
	else
		status_line(x, "waiting for a first shard");
}

static const char *
status_where(const struct status_run *r, const struct status_device *d)
{
	if (!d->any)
		return "never";
	if (r->now == STATUS_IDLE)
		return r->has_last && d->step < r->last ? "behind" : "done";
	if (d->here)
		return "here";
	return d->expected ? "missing" : "left";
}

/* ---- the fields of a device ---- */

struct row {
	const struct status_device *d;
	const char *device, *is;
	uint64_t step, bytes, accepted, missed, refused, disk;
	double ago, bandwidth;
	int listed;
};
enum { TEXT = 1, JSON = 2, BOTH = 3 };	/* where they are shown, */
enum { SEEN = 1, SENT = 2, LINKED = 4 };	/* and what must be known */

static void
put_verdicts(struct emit *j, const uint64_t v[RECEIPT_NVERDICT])
{
	unsigned i;

	emit_open(j, "verdicts", '{');
	for (i = 0; i < RECEIPT_NVERDICT; i++)
		if (i != RECEIPT_DUPLICATE)
			emit_u64(j, receipt_verdict_name(i), v[i] +
			    (i == RECEIPT_ACCEPTED ? v[RECEIPT_DUPLICATE] : 0));
	emit_close(j);
}

static void
put_row_verdicts(struct screen *x, const char *key, const void *row)
{
	(void)key;
	put_verdicts(&x->json, ((const struct row *)row)->d->verdict);
}

#define FIELD(field, what, member, where, must, ...) { .name = (field), \
	.type = SCREEN_##what, .at = offsetof(struct row, member), \
	.in = (where), .need = (must), .gap = 1, __VA_ARGS__ }
static const struct screen_field fields[] = {
	FIELD("device", NAME, device, BOTH, 0, .width = -SCREEN_WIDE),
	FIELD("is", NAME, is, JSON, 0, .width = 0),
	FIELD("step", U64, step, BOTH, SEEN, .width = 6),
	FIELD("is", NAME, is, TEXT, 0, .width = -7),
	FIELD("seconds", AGO, ago, BOTH, SENT, .head = "since", .width = 7),
	FIELD("bytes", SIZE, bytes, BOTH, SENT, .width = 8),
	FIELD("bandwidth", RATE, bandwidth, BOTH, LINKED, .head = "Mbit/s",
	    .width = 7),
	FIELD("accepted", U64, accepted, TEXT, 0, .width = 9),
	FIELD("missed", U64, missed, BOTH, 0, .width = 7),
	FIELD("refused", U64, refused, TEXT, 0, .width = 7),
	{ .name = "verdicts", .type = SCREEN_CALL, .in = JSON,
	    .put = put_row_verdicts },
	FIELD("listed", FLAG, listed, JSON, 0, .width = 0),
	FIELD("disk_bytes", U64, disk, JSON, 0, .width = 0),
	{ .name = NULL }
};

/* Fills a row, and says what is known of it. */
static unsigned
fill(struct row *x, const struct status *s, const struct status_run *r,
    const struct status_device *d)
{
	x->d = d;
	x->device = d->name;
	x->is = status_where(r, d);
	x->step = d->step;
	x->ago = fmax(s->now - d->at, 0);
	x->bytes = d->bytes;
	x->bandwidth = d->bandwidth;
	x->accepted = d->verdict[RECEIPT_ACCEPTED];
	x->missed = d->missed;
	x->refused = d->verdict[RECEIPT_INVALID] + d->verdict[RECEIPT_FENCED] +
	    d->verdict[RECEIPT_EQUIVOCATION] + d->verdict[RECEIPT_LATE];
	x->listed = d->listed;
	x->disk = d->disk;
	return (d->any ? SEEN : 0u) | (d->bytes != 0 ? SENT : 0u) |
	    (d->bandwidth > 0 ? LINKED : 0u);
}

/* A line of a table; NULL: the first one. */
static void
status_row(const struct status *x, const struct screen_field *t, const void *row,
    unsigned have, int wide)
{
	char line[1024] = "";
	FILE *f = fmemopen(line, sizeof(line) - 1, "w");
	struct screen s = { .f = f, .in = TEXT, .wide = { wide } };

	if (f == NULL)
		return;
	if (row == NULL)
		screen_head(&s, t);
	else
		screen_row(&s, t, row, have);
	(void)fclose(f);
	line[strcspn(line, "\n")] = '\0';
	status_line(x, "%s", line);
}

static void
status_run_text(struct status *x, const struct status_run *r)
{
	char last[48] = "", size[NUM_TEXT];
	struct row row;
	unsigned have;
	int wname = 6;
	size_t i;

	if (x->runs != 0)
		(void)fputc('\n', x->o->f);
	if (r->has_last)
		(void)snprintf(last, sizeof(last), ", aggregates up to step %llu",
		    (unsigned long long)r->last);
	status_line(x, "run '%s' in '%s': %llu steps kept%s, %s on disk",
	    r->name, x->dir, (unsigned long long)r->steps, last,
	    num_text((double)r->disk, "B", size));
	status_waits(x, r);
	for (i = 0; i < r->n; i++)
		if (screen_chars(r->d[i].name) > wname)
			wname = screen_chars(r->d[i].name);
	if (wname > 24)
		wname = 24;
	if (r->n != 0)
		status_row(x, fields, NULL, 0, wname);
	for (i = 0; i < r->n; i++) {
		have = fill(&row, x, r, &r->d[i]);
		status_row(x, fields, &row, have, wname);
	}
}

/* ---- the same as JSON ---- */

static void
status_run_json(struct status *x, const struct status_run *r)
{
	static const char *const now[] = { "idle", "open", "closed" };
	struct emit *j = &x->s.json;
	struct row row;
	unsigned have;
	size_t i;

	emit_open(j, NULL, '{');
	emit_string(j, "run", r->name);
	if (r->has_last)
		emit_u64(j, "last", r->last);
	emit_u64(j, "steps", r->steps);
	emit_u64(j, "disk_bytes", r->disk);
	emit_string(j, "now", now[r->now]);
	if (r->now != STATUS_IDLE) {
		emit_u64(j, "step", r->step);
		emit_u64(j, "here", r->here);
		emit_u64(j, "missing", r->missing);
		emit_f64(j, "seconds", fmax(x->now - r->since, 0));
	}
	emit_open(j, "devices", '[');
	for (i = 0; i < r->n; i++) {
		emit_open(j, NULL, '{');
		have = fill(&row, x, r, &r->d[i]);
		screen_row(&x->s, fields, &row, have);
		emit_close(j);
	}
	emit_close(j);
	emit_close(j);
}

/* ---- a spool ---- */

struct status_each {
	struct status *x;
	const struct inbox *in;
};

static int
status_each_run(void *arg, const char *run, struct err *e)
{
	const struct status_each *c = arg;
	struct status *x = c->x;
	struct status_run r;
	int k;

	if (!inbox_fits(x->o->run, run))
		return 0;
	if ((k = status_run(&r, c->in, run, e)) == 0) {
		if (x->o->form == FORM_JSON && x->runs == 0)
			emit_open(&x->s.json, "runs", '[');
		if (x->o->form == FORM_JSON)
			status_run_json(x, &r);
		else if (x->o->form == FORM_METRICS)
			metrics_run(x->o->metrics, x->dir, &r);
		else
			status_run_text(x, &r);
		x->runs++;
	}
	status_release(&r);
	return k;
}

/* Which sandbox the programs are in that serve the spool, as they said. */
static int
status_sandbox_text(const struct status *x, const struct inbox *in,
    struct err *e)
{
	char line[CLIENTS_NOTE];
	size_t i;
	int k;

	for (i = 0; clients_programs[i] != NULL; i++) {
		if ((k = clients_noted(in, clients_programs[i], line, e)) < 0)
			return k;
		if (k > 0)
			status_line(x, "sandbox of %s: %s",
			    clients_programs[i], line);
	}
	return 0;
}

static int
status_sandbox_json(struct emit *j, const struct inbox *in, struct err *e)
{
	char line[CLIENTS_NOTE];
	size_t i;
	int k = 0;

	emit_open(j, "sandbox", '{');
	for (i = 0; clients_programs[i] != NULL && k >= 0; i++)
		if ((k = clients_noted(in, clients_programs[i], line, e)) > 0)
			emit_string(j, clients_programs[i], line);
	emit_close(j);
	return k < 0 ? k : 0;
}

static int
status_spool(struct status *x, struct err *e)
{
	struct inbox in = INBOX_INIT;
	struct status_each c = { x, &in };
	int k;

	in.sync = IO_SYNC_NONE;
	k = inbox_open(&in, x->dir, e);
	if (x->o->form == FORM_JSON) {
		emit_string(&x->s.json, "kind", "spool");
		emit_u64(&x->s.json, "disk_bytes", status_disk(x->dir));
		if (k == 0)
			k = status_sandbox_json(&x->s.json, &in, e);
	}
	if (k == 0)
		k = status_runs(&in, status_each_run, &c, e);
	if (k == 0 && x->o->form == FORM_JSON)
		emit_open(&x->s.json, "runs", '[');
	if (k >= 0 && x->runs == 0 && x->o->run != NULL)
		k = err_set(e, ERR_DATA, "mismatch: no run '%.80s' in '%s'",
		    x->o->run, x->dir);
	if (k >= 0 && x->runs == 0 && x->o->form == FORM_TEXT)
		status_line(x, "'%s': waiting for a first shard (ace-recv "
		    "--spool)", x->dir);
	if (k >= 0 && x->o->form == FORM_TEXT)
		k = status_sandbox_text(x, &in, e);
	inbox_close(&in);
	return k < 0 ? k : 0;
}

/* ---- a device's state ---- */

struct status_state {
	struct receipts q;
	uint64_t verdict[RECEIPT_NVERDICT];
	char run[SHARD_NAME + 1], device[SHARD_NAME + 1];
	int any;		/* it has a residual, */
	uint64_t step;		/* of this step, */
	const struct receipt *answer;	/* which had this answer, or NULL */
	double bandwidth, rtt, jitter;
	int has_code;		/* it coded something: */
	double kept, share, growing;	/* as contraction.h says */
	uint64_t disk;
};

static int
status_state_read(struct status_state *v, const struct statedir *s, struct err *e)
{
	struct residual res = { .d = { .r = NULL } };
	size_t i;
	int k;

	memset(v, 0, sizeof(*v));
	if ((k = residual_open(&res, s, e)) == 0 && res.d.r != NULL) {
		(void)snprintf(v->run, sizeof(v->run), "%s",
		    shard_run(reader_shard(res.d.r)));
		(void)snprintf(v->device, sizeof(v->device), "%s",
		    shard_device(reader_shard(res.d.r)));
		v->any = 1;
		v->step = res.step;
	}
	residual_close(&res);
	if (k < 0 || (k = receipts_load(&v->q, s, e)) < 0 ||
	    (k = memory_number(s, MEMORY_LINK, MEMORY_BANDWIDTH,
	    &v->bandwidth, e)) < 0 ||
	    (k = memory_number(s, MEMORY_LINK, LINK_RTT, &v->rtt, e)) < 0 ||
	    (k = memory_number(s, MEMORY_LINK, LINK_JITTER, &v->jitter,
	    e)) < 0)
		return k;
	if ((v->has_code = memory_number(s, CONTRACTION_FILE, CONTRACTION_ALPHA,
	    &v->kept, e)) < 0 ||
	    (k = memory_number(s, CONTRACTION_FILE, CONTRACTION_SHARE,
	    &v->share, e)) < 0 ||
	    (k = memory_number(s, CONTRACTION_FILE, CONTRACTION_GROWING,
	    &v->growing, e)) < 0)
		return v->has_code < 0 ? v->has_code : k;
	for (i = 0; i < v->q.n; i++) {
		v->verdict[v->q.r[i].verdict % RECEIPT_NVERDICT]++;
		if (v->any && v->q.r[i].step == v->step)
			v->answer = &v->q.r[i];
	}
	v->disk = status_disk(s->dir);
	return 0;
}

static void
status_state_text(const struct status *x, const struct status_state *v)
{
	char size[NUM_TEXT], rate[NUM_TEXT];

	if (v->any)
		status_line(x, "device '%s' of run '%s' in '%s': step %llu, %s%s",
		    v->device, v->run, x->dir, (unsigned long long)v->step,
		    v->answer != NULL ?
		    receipt_verdict_name(v->answer->verdict) :
		    v->q.managed ? "no receipt yet" : "no receipts are kept",
		    v->q.managed || v->answer != NULL ? "" : " (ace-ack)");
	else
		status_line(x, "'%s': nothing was coded here yet "
		    "(ace-compress)", x->dir);
	(void)num_text(v->bandwidth, "bit/s", rate);
	if (v->bandwidth > 0)
		status_line(x, "link      %s, round trip %.1f ms, +- %.1f",
		    rate, v->rtt * 1e3, v->jitter * 1e3);
	else
		status_line(x, "link      not measured (ace-meter)");
	if (v->q.managed)
		status_line(x, "receipts  accepted %llu, late %llu, invalid "
		    "%llu, equivocation %llu, fenced %llu; of the last %zu",
		    (unsigned long long)(v->verdict[RECEIPT_ACCEPTED] +
		    v->verdict[RECEIPT_DUPLICATE]),
		    (unsigned long long)v->verdict[RECEIPT_LATE],
		    (unsigned long long)v->verdict[RECEIPT_INVALID],
		    (unsigned long long)v->verdict[RECEIPT_EQUIVOCATION],
		    (unsigned long long)v->verdict[RECEIPT_FENCED], v->q.n);
	if (v->growing >= (double)CONTRACTION_PATIENCE)
		status_line(x, "residual  grows: in %.0f shards in a row the "
		    "code lost more than it kept (ace-compress)", v->growing);
	status_line(x, "disk      %s", num_text((double)v->disk, "B", size));
}

static void
status_state_json(struct emit *j, const struct status_state *v)
{
	emit_string(j, "kind", "state");
	emit_u64(j, "disk_bytes", v->disk);
	if (v->any) {
		emit_string(j, "run", v->run);
		emit_string(j, "device", v->device);
		emit_u64(j, "step", v->step);
		if (v->answer != NULL)
			emit_string(j, "verdict",
			    receipt_verdict_name(v->answer->verdict));
	}
	if (v->q.managed)
		put_verdicts(j, v->verdict);
	if (v->growing > 0)
		emit_f64(j, "growing", v->growing);
	if (v->bandwidth > 0)
		emit_f64(j, "bandwidth", v->bandwidth);
	if (v->rtt > 0) {
		emit_f64(j, "rtt", v->rtt);
		emit_f64(j, "jitter", v->jitter);
	}
}

static void
status_state_metrics(const struct status *x, const struct status_state *v)
{
	struct metrics *m = x->o->metrics;
	struct metric_of of = { x->dir, NULL, NULL, NULL };
	struct stat st;
	char path[4096];

	if (v->any) {
		of.run = v->run;
		of.device = v->device;
		metrics_put(m, METRIC_STATE_STEP, &of, (double)v->step);
		if (snprintf(path, sizeof(path), "%s/residual", x->dir) <
		    (int)sizeof(path) && stat(path, &st) == 0)
			metrics_put(m, METRIC_STATE_TIME, &of,
			    (double)st.st_mtim.tv_sec +
			    (double)st.st_mtim.tv_nsec * 1e-9);
	}
	if (v->q.managed)
		metrics_verdicts(m, METRIC_STATE_RECEIPTS, of, v->verdict);
	if (v->has_code) {
		metrics_put(m, METRIC_STATE_CONTRACTION, &of, v->kept);
		metrics_put(m, METRIC_STATE_RESIDUAL, &of,
		    sqrt(fmax(0, 1 - v->kept)));
		metrics_put(m, METRIC_STATE_CODED, &of, v->share);
		metrics_put(m, METRIC_STATE_GROWING, &of, v->growing);
	}
	if (v->bandwidth > 0)
		metrics_put(m, METRIC_STATE_LINK, &of, v->bandwidth / 8);
	if (v->rtt > 0) {
		metrics_put(m, METRIC_STATE_RTT, &of, v->rtt);
		metrics_put(m, METRIC_STATE_JITTER, &of, v->jitter);
	}
	metrics_put(m, METRIC_STATE_DISK, &of, (double)v->disk);
}

static int
status_state(struct status *x, struct err *e)
{
	struct statedir s = STATE_INIT;
	struct status_state *v = alloc_get(1, sizeof(*v), e);
	int k = v != NULL ? statedir_open(&s, x->dir, e) : -ERR_SYS;

	if (k == 0 && (k = status_state_read(v, &s, e)) == 0) {
		if (x->o->form == FORM_JSON)
			status_state_json(&x->s.json, v);
		else if (x->o->form == FORM_METRICS)
			status_state_metrics(x, v);
		else
			status_state_text(x, v);
	}
	statedir_close(&s);
	alloc_free(v);
	return k;
}

/* ---- models and who has which ---- */

#define RECEIVER(field, what, member, must, ...) { .name = (field), \
	.type = SCREEN_##what, .at = offsetof(struct status_receiver, \
	member), \
	.in = BOTH, .need = (must), .gap = 1, __VA_ARGS__ }
static const struct screen_field receiver_fields[] = {
	RECEIVER("receiver", NAME, name, 0, .width = -SCREEN_WIDE),
	RECEIVER("is", NAME, is, 0, .width = -7),
	RECEIVER("step", U64, step, STATUS_HAS, .width = 6),
	RECEIVER("behind", U64, behind, STATUS_FAR, .width = 6),
	RECEIVER("patches", U64, patches, STATUS_WAY, .width = 7),
	RECEIVER("bytes", SIZE, bytes, STATUS_WAY, .width = 8),
	RECEIVER("seconds", AGO, ago, STATUS_HAS, .head = "since", .width = 7),
	{ .name = NULL }
};

static void
receiver_say(struct status *x, const struct status_receiver *v, unsigned have, int wide)
{
	const struct metric_of of = { x->dir, NULL, v->name, NULL };
	struct metrics *m = x->o->metrics;

	if (x->o->form == FORM_TEXT) {
		status_row(x, receiver_fields, v, have, wide);
	} else if (x->o->form == FORM_JSON) {
		emit_open(&x->s.json, NULL, '{');
		screen_row(&x->s, receiver_fields, v, have);
		emit_close(&x->s.json);
	} else {
		if (have & STATUS_HAS)
			metrics_put(m, METRIC_RECEIVER_STEP, &of,
			    (double)v->step);
		if (have & STATUS_FAR)
			metrics_put(m, METRIC_RECEIVER_BEHIND, &of,
			    (double)v->behind);
		if (have & STATUS_WAY)
			metrics_put(m, METRIC_RECEIVER_BYTES, &of,
			    (double)v->bytes);
	}
}

/* What is kept, before the receivers. */
static void
models_say(struct status *x, const struct store *st)
{
	const struct way *to = store_newest(st);
	const struct metric_of of = { x->dir, NULL, NULL, NULL };
	const uint64_t disk = status_disk(x->dir);
	char hex[MODEL_HEX] = "", size[NUM_TEXT];
	struct emit *j = &x->s.json;

	if (to != NULL)
		model_hex(to->after, hex);
	if (x->o->form == FORM_TEXT && to == NULL) {
		status_line(x, "'%s': no model was kept here yet (ace-diff -S)",
		    x->dir);
	} else if (x->o->form == FORM_TEXT) {
		status_line(x, "models in '%s': step %llu, %s, %zu patches and whole "
		    "ones, %s on disk", x->dir, (unsigned long long)to->step, hex,
		    st->w.n, num_text((double)disk, "B", size));
	} else if (x->o->form == FORM_JSON) {
		emit_string(j, "kind", "models");
		emit_u64(j, "disk_bytes", disk);
		emit_u64(j, "kept", st->w.n);
		if (to != NULL) {
			emit_u64(j, "step", to->step);
			emit_string(j, "hash", hex);
		}
		emit_open(j, "receivers", '[');
	} else {
		if (to != NULL)
			metrics_put(x->o->metrics, METRIC_MODEL_STEP, &of,
			    (double)to->step);
		metrics_put(x->o->metrics, METRIC_STATE_DISK, &of, (double)disk);
	}
}

static int
status_models(struct status *x, struct err *e)
{
	struct books b = BOOKS_INIT;
	struct store st = STORE_INIT;
	struct status_receiver v;
	int k, wide = 8;
	size_t i;

	if ((k = books_open(&b, x->dir, 0, e)) == 0 &&
	    (k = store_open(&st, x->dir, e)) == 0)
		models_say(x, &st);
	for (i = 0; i < b.n && k >= 0; i++)
		if (screen_chars(b.p[i].name) > wide)
			wide = screen_chars(b.p[i].name);
	if (wide > 24)
		wide = 24;
	if (k == 0 && b.n > 0 && x->o->form == FORM_TEXT)
		status_row(x, receiver_fields, NULL, 0, wide);
	for (i = 0; i < b.n && k >= 0; i++)
		if ((k = status_receiver(&v, &st, &b.p[i], x->now,
		    e)) >= 0)
			receiver_say(x, &v, (unsigned)k, wide);
	store_close(&st);
	books_close(&b);
	return k < 0 ? k : 0;
}

/* ---- which of them it is ---- */

enum status_kind { STATUS_NOTHING, STATUS_SPOOL, STATUS_STATE, STATUS_MODELS,
	STATUS_OTHER };

struct status_names_in {
	const char *dir;
	enum status_kind kind;
};

static int
status_each_name(void *arg, const char *name, struct err *e)
{
	static const char *const state[] = { "residual", "receipts", "link",
	    "memory", "feedback", "score", "code", "policy", "ack-lock", "lock" };
	struct status_names_in *x = arg;
	char path[4096];
	struct stat st;
	size_t i;

	(void)e;
	for (i = 0; i < sizeof(state) / sizeof(state[0]); i++)
		if (strcmp(name, state[i]) == 0 && snprintf(path,
		    sizeof(path), "%s/%s", x->dir, name) < (int)sizeof(path) &&
		    lstat(path, &st) == 0 && S_ISREG(st.st_mode)) {
			x->kind = STATUS_STATE;
			return 1;
		}
	if (snprintf(path, sizeof(path), "%s/%s/schema.aceg", x->dir, name) <
	    (int)sizeof(path) && access(path, F_OK) == 0)
		x->kind = STATUS_SPOOL;
	else if (x->kind == STATUS_NOTHING)
		x->kind = STATUS_OTHER;
	return 0;
}

/* Has ace-recv worked here?  Its file is there before anything of a run is. */
static int
status_marked(const char *dir)
{
	char path[4096];

	return snprintf(path, sizeof(path), "%s/.clients", dir) <
	    (int)sizeof(path) && access(path, F_OK) == 0;
}

/* STATUS_SPOOL also for an empty directory: there was no shard yet. */
static int
status_kind(const char *dir, enum status_kind *kind, struct err *e)
{
	struct status_names_in x = { dir, STATUS_NOTHING };
	struct stat st;
	int k;

	if (stat(dir, &st) < 0)
		return err_sys(e, "'%s'", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_DATA, "mismatch: '%s' is a file: the "
		    "directory is wanted (ace-inspect reads files)", dir);
	if (books_there(dir))
		x.kind = STATUS_MODELS;
	else if (status_marked(dir))
		x.kind = STATUS_SPOOL;
	else if ((k = scan(dir, status_each_name, &x, e)) < 0)
		return k;
	*kind = x.kind == STATUS_NOTHING ? STATUS_SPOOL : x.kind;
	if (x.kind == STATUS_OTHER)
		return err_set(e, ERR_DATA, "mismatch: '%s' is no spool "
		    "(ace-recv --spool), no device's state and no models "
		    "(-S)", dir);
	return 0;
}

static int
status_look(const struct status_opts *o, const char *dir, struct err *e)
{
	struct status x = { .o = o, .dir = dir };
	enum status_kind kind = STATUS_OTHER;
	struct timespec now = { 0, 0 };
	int k;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	x.now = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
	if ((k = status_kind(dir, &kind, e)) < 0)
		return k;
	x.s.f = o->f;
	x.s.form = SCREEN_JSON;
	x.s.in = JSON;
	emit_init(&x.s.json, o->f);
	if (o->form == FORM_JSON) {
		emit_open(&x.s.json, NULL, '{');
		emit_string(&x.s.json, "directory", dir);
		emit_f64(&x.s.json, "time", x.now);
	}
	k = kind == STATUS_STATE ? status_state(&x, e) :
	    kind == STATUS_MODELS ? status_models(&x, e) : status_spool(&x, e);
	if (o->form == FORM_JSON)
		emit_end(&x.s.json);
	return k;
}

/* ---- the program ---- */

static const struct opt options[] = {
	{ 0, "json", NULL, "JSON, one document a line",
	    OPT_VALUE(struct status_opts, form, FORM_JSON) },
	{ 0, "format", "FORMAT", NULL,
	    OPT_WORD(struct status_opts, form, forms), .def = "text" },
	{ 0, "run", "NAME", "of a spool with several runs",
	    OPT_TEXT(struct status_opts, run) },
	OPT_END
};

/* The columns of a terminal on standard output; 0 for anything else. */
static int
columns(void)
{
	struct winsize w;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ?
	    w.ws_col : 80;
}

/* Says all directories. */
static int
look(struct status_opts *o, size_t n, char **dir, struct err *e)
{
	size_t i;
	int r;

	o->width = o->form != FORM_TEXT ? 0 : columns();
	for (i = 0; i < n; i++) {
		if (i != 0 && o->form == FORM_TEXT)
			(void)putchar('\n');
		if ((r = status_look(o, dir[i], e)) < 0)
			return r;
	}
	return 0;
}

/* As metrics: nothing is printed before all directories were looked at, since each
 * family stands together, and half of them would look like a run that has ended. */
static int
measure(struct status_opts *o, size_t n, char **dir, struct err *e)
{
	struct metrics m = METRICS_INIT(e);
	size_t i, j;
	int r;

	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			if (strcmp(dir[i], dir[j]) == 0)
				return err_set(e, ERR_USAGE, "'%s' is there "
				    "twice", dir[i]);
	o->metrics = &m;
	if ((r = look(o, n, dir, e)) == 0)
		r = metrics_print(&m, stdout);
	metrics_release(&m);
	return r;
}

static int
run(void *arg, char **dir, size_t n, struct err *e)
{
	struct status_opts *o = arg;

	if (n == 0)
		return err_set(e, ERR_USAGE, "which directory? (a spool, or a "
		    "device's state)");
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	return o->form == FORM_METRICS ? measure(o, n, dir, e) :
	    look(o, n, dir, e);
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-status",
		.usage = "[--json | --format FORMAT] [--run NAME] DIR...",
		.about = "Tells how a run is going, from a spool or from a "
		    "device's state.",
		.examples = "ace-status spool\n"
		    "ace-status --json spool\n",
		.opt = options,
		.loops = kern_name
	};
	struct status_opts o = { .f = stdout };

	return cli_main(&c, argc, argv, run, &o);
}
