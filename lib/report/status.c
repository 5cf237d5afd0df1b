#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/scan.h"
#include "device/link.h"
#include "device/memory.h"
#include "device/receipts.h"
#include "device/residual.h"
#include "format/text.h"
#include "report/emit.h"
#include "report/status.h"
#include "report/status_spool.h"
#include "spool/serving.h"

/* One look at one directory. */
struct status {
	const struct status_opts *o;
	const char *dir;
	struct emit j;
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

/* "532 B", "12.4 MB" */
static const char *
status_size(uint64_t n, char out[24])
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	double v = (double)n;
	int i = 0;

	for (; v >= 999.5 && i < 5; i++)
		v /= 1000;
	(void)snprintf(out, 24, i == 0 ? "%.0f %s" : "%.3g %s", v, unit[i]);
	return out;
}

/* "12 s", "3.4 h" */
static const char *
status_time(double secs, char out[24])
{
	if (!(secs > 0))
		secs = 0;
	if (secs < 120)
		(void)snprintf(out, 24, "%.0f s", secs);
	else if (secs < 7200)
		(void)snprintf(out, 24, "%.0f m", secs / 60);
	else if (secs < 172800)
		(void)snprintf(out, 24, "%.1f h", secs / 3600);
	else
		(void)snprintf(out, 24, "%.1f d", secs / 86400);
	return out;
}

static uint64_t
status_refused(const uint64_t v[RECEIPT_NVERDICT])
{
	return v[RECEIPT_INVALID] + v[RECEIPT_EQUIVOCATION] +
	    v[RECEIPT_FENCED];
}

/* ---- a run of a spool, as text ---- */

/* The names of those that are here, or of those that are missing. */
static const char *
status_names(const struct status_run *r, int here, char out[400])
{
	const struct status_device *d;
	size_t i, n = 0;

	out[0] = '\0';
	for (i = 0; i < r->n; i++) {
		d = &r->d[i];
		if (here ? !d->here : !d->expected || d->here)
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
	char names[400], age[24];

	(void)status_time(x->now - r->since, age);
	if (r->now == STATUS_CLOSED)
		status_line(x, "step %llu is closed with %zu shards, its "
		    "aggregate is not there yet (ace-aggregate)",
		    (unsigned long long)r->step, r->here);
	else if (r->now == STATUS_OPEN && r->missing == 0)
		status_line(x, "step %llu: all %zu shards are there, for %s; "
		    "nobody has closed it (ace-aggregate)",
		    (unsigned long long)r->step, r->here, age);
	else if (r->now == STATUS_OPEN)
		status_line(x, "step %llu: %zu of %zu shards are there, for "
		    "%s; missing: %s", (unsigned long long)r->step, r->here,
		    r->here + r->missing, age, status_names(r, 0, names));
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

/* Columns of the terminal, by characters. */
static size_t
status_chars(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* A name, filled up to so many columns with blanks. */
static const char *
status_padded(const char *name, int width, char out[SHARD_NAME + 32])
{
	int n = (int)strlen(name);

	width += n - (int)status_chars(name);
	(void)snprintf(out, SHARD_NAME + 32, "%-*s", width > n ? width : n,
	    name);
	return out;
}

static void
status_device_line(const struct status *x, const struct status_run *r,
    const struct status_device *d, int wname)
{
	char name[SHARD_NAME + 32], step[24] = "-", age[24] = "-", bytes[24] = "-", rate[24] = "-";

	if (d->any)
		(void)snprintf(step, sizeof(step), "%llu",
		    (unsigned long long)d->step);
	if (d->bytes != 0) {
		(void)status_time(x->now - d->at, age);
		(void)status_size(d->bytes, bytes);
	}
	if (d->bandwidth > 0)
		(void)snprintf(rate, sizeof(rate), "%.1f", d->bandwidth / 1e6);
	status_line(x, "%s %6s %-7s %7s %8s %7s %9llu %7llu %7llu",
	    status_padded(d->name, wname, name), step, status_where(r, d), age, bytes, rate,
	    (unsigned long long)d->verdict[RECEIPT_ACCEPTED],
	    (unsigned long long)d->missed,
	    (unsigned long long)(status_refused(d->verdict) +
	    d->verdict[RECEIPT_LATE]));
}

static void
status_run_text(const struct status *x, const struct status_run *r)
{
	char last[48] = "", size[24];
	int wname = 6;
	size_t i;

	if (x->runs != 0)
		(void)fputc('\n', x->o->f);
	if (r->has_last)
		(void)snprintf(last, sizeof(last), ", aggregates up to step %llu",
		    (unsigned long long)r->last);
	status_line(x, "run '%s' in '%s': %llu steps kept%s, %s on disk",
	    r->name, x->dir, (unsigned long long)r->steps, last,
	    status_size(r->disk, size));
	status_waits(x, r);
	for (i = 0; i < r->n; i++)
		if ((int)status_chars(r->d[i].name) > wname)
			wname = (int)status_chars(r->d[i].name);
	if (wname > 24)
		wname = 24;
	if (r->n != 0)
		status_line(x, "%-*s %6s %-7s %7s %8s %7s %9s %7s %7s", wname,
		    "device", "step", "is", "since", "bytes", "Mbit/s",
		    "accepted", "missed", "refused");
	for (i = 0; i < r->n; i++)
		status_device_line(x, r, &r->d[i], wname);
}

/* ---- the same as JSON ---- */

static void
status_verdicts(struct emit *j, const uint64_t v[RECEIPT_NVERDICT])
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
status_device_json(const struct status *x, struct emit *j,
    const struct status_run *r, const struct status_device *d)
{
	emit_open(j, NULL, '{');
	emit_string(j, "device", d->name);
	emit_string(j, "is", status_where(r, d));
	if (d->any)
		emit_u64(j, "step", d->step);
	if (d->bytes != 0) {
		emit_f64(j, "seconds", fmax(x->now - d->at, 0));
		emit_u64(j, "bytes", d->bytes);
	}
	if (d->bandwidth > 0)
		emit_f64(j, "bandwidth", d->bandwidth);
	status_verdicts(j, d->verdict);
	emit_u64(j, "missed", d->missed);
	emit_bool(j, "listed", d->listed);
	emit_u64(j, "disk_bytes", d->disk);
	emit_close(j);
}

static void
status_run_json(struct status *x, const struct status_run *r)
{
	static const char *const now[] = { "idle", "open", "closed" };
	struct emit *j = &x->j;
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
	for (i = 0; i < r->n; i++)
		status_device_json(x, j, r, &r->d[i]);
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
	if ((k = status_spool_run(&r, c->in, run, e)) == 0) {
		if (x->o->as_json)
			status_run_json(x, &r);
		else
			status_run_text(x, &r);
		x->runs++;
	}
	status_spool_release(&r);
	return k;
}

/* Which sandbox the programs are in that serve the spool, as they said. */
static int
status_sandbox_text(const struct status *x, const struct inbox *in,
    struct err *e)
{
	char line[SERVING_LINE];
	size_t i;
	int k;

	for (i = 0; serving_programs[i] != NULL; i++) {
		if ((k = serving_read(in, serving_programs[i], line, e)) < 0)
			return k;
		if (k > 0)
			status_line(x, "sandbox of %s: %s",
			    serving_programs[i], line);
	}
	return 0;
}

static int
status_sandbox_json(struct emit *j, const struct inbox *in, struct err *e)
{
	char line[SERVING_LINE];
	size_t i;
	int k = 0;

	emit_open(j, "sandbox", '{');
	for (i = 0; serving_programs[i] != NULL && k >= 0; i++)
		if ((k = serving_read(in, serving_programs[i], line, e)) > 0)
			emit_string(j, serving_programs[i], line);
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
	if (x->o->as_json) {
		emit_string(&x->j, "kind", "spool");
		emit_u64(&x->j, "disk_bytes", status_spool_disk(x->dir));
		if (k == 0)
			k = status_sandbox_json(&x->j, &in, e);
		emit_open(&x->j, "runs", '[');
	}
	if (k == 0)
		k = status_spool_runs(&in, status_each_run, &c, e);
	if (k >= 0 && x->runs == 0 && x->o->run != NULL)
		k = err_set(e, ERR_DATA, "mismatch: no run '%.80s' in '%s'",
		    x->o->run, x->dir);
	if (k >= 0 && x->runs == 0 && !x->o->as_json)
		status_line(x, "'%s': waiting for a first shard (ace-recv "
		    "--spool)", x->dir);
	if (k >= 0 && !x->o->as_json)
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
	uint64_t disk;
};

static int
status_state_read(struct status_state *v, const struct state *s, struct err *e)
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
	for (i = 0; i < v->q.n; i++) {
		v->verdict[v->q.r[i].verdict % RECEIPT_NVERDICT]++;
		if (v->any && v->q.r[i].step == v->step)
			v->answer = &v->q.r[i];
	}
	v->disk = status_spool_disk(s->dir);
	return 0;
}

static void
status_state_text(const struct status *x, const struct status_state *v)
{
	char size[24], rate[NUM_RATE_TEXT];

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
	num_rate_text(v->bandwidth, rate);
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
	status_line(x, "disk      %s", status_size(v->disk, size));
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
		status_verdicts(j, v->verdict);
	if (v->bandwidth > 0)
		emit_f64(j, "bandwidth", v->bandwidth);
	if (v->rtt > 0) {
		emit_f64(j, "rtt", v->rtt);
		emit_f64(j, "jitter", v->jitter);
	}
}

static int
status_state(struct status *x, struct err *e)
{
	struct state s = STATE_INIT;
	struct status_state *v = alloc_get(1, sizeof(*v), e);
	int k = v != NULL ? state_open(&s, x->dir, e) : -ERR_SYS;

	if (k == 0 && (k = status_state_read(v, &s, e)) == 0) {
		if (x->o->as_json)
			status_state_json(&x->j, v);
		else
			status_state_text(x, v);
	}
	state_close(&s);
	alloc_free(v);
	return k;
}

/* ---- which of the two it is ---- */

enum status_kind { STATUS_NOTHING, STATUS_SPOOL, STATUS_STATE, STATUS_OTHER };

struct status_names_in {
	const char *dir;
	enum status_kind kind;
};

static int
status_each_name(void *arg, const char *name, struct err *e)
{
	static const char *const state[] = { "residual", "receipts", "link",
	    "score", "code", "policy", "ack-lock", "lock" };
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
	if (snprintf(path, sizeof(path), "%s/%s/lock", x->dir, name) <
	    (int)sizeof(path) && access(path, F_OK) == 0)
		x->kind = STATUS_SPOOL;
	else if (x->kind == STATUS_NOTHING)
		x->kind = STATUS_OTHER;
	return 0;
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
	if ((k = scan(dir, status_each_name, &x, e)) < 0)
		return k;
	*kind = x.kind == STATUS_NOTHING ? STATUS_SPOOL : x.kind;
	if (x.kind == STATUS_OTHER)
		return err_set(e, ERR_DATA, "mismatch: '%s' is no spool "
		    "(ace-recv --spool) and no device's state (-S)", dir);
	return 0;
}

int
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
	emit_init(&x.j, o->f);
	if (o->as_json) {
		emit_open(&x.j, NULL, '{');
		emit_string(&x.j, "directory", dir);
		emit_f64(&x.j, "time", x.now);
	}
	k = kind == STATUS_STATE ? status_state(&x, e) : status_spool(&x, e);
	if (o->as_json)
		emit_end(&x.j);
	return k;
}
