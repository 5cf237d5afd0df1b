/*
 * ace-status: show the progress of a run from a spool or a device's state (devices,
 * steps, missing shards, admission results).
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/at.h"
#include "base/cli.h"
#include "base/err.h"
#include "base/num.h"
#include "base/scan.h"
#include "device/contraction.h"
#include "device/learned.h"
#include "device/link.h"
#include "device/receipts.h"
#include "device/residual.h"
#include "kern/kern.h"
#include "report/render.h"
#include "report/run_state.h"
#include "spool/waiting.h"

/* Forms of output that have a field: bits 1 << enum render_form. */
enum { TEXT = 1, METRICS = 2, JSON = 4, DATA = JSON | METRICS, ALL = TEXT | DATA };
static const char *const forms[] = { "text", "metrics", "json", NULL };

/* Options, and the directory that is being shown. */
struct status {
	int form;		/* enum render_form; index in forms */
	int shown;		/* number of directories begun */
	struct render s;	/* s.in: TEXT, JSON or METRICS */
	const char *dir;
	double now;		/* Unix seconds */
};

/* ---- lines of text ---- */

/* Print a line of text without control characters. */
static void __attribute__((format(printf, 2, 3)))
line(const struct status *x, const char *fmt, ...)
{
	char s[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(s, sizeof(s), fmt, ap);
	va_end(ap);
	render_name(x->s.f, s);
	(void)fputc('\n', x->s.f);
}

/* ---- rows, in each form ---- */

/* Write the number of receipts per verdict, where duplicates count as accepted.  Neither a
 * spool nor a state keeps receipts with the verdicts equivocation and fenced. */
static void
put_verdicts(struct render *x, const struct render_field *f, const void *at)
{
	const uint64_t *v = at;
	unsigned i;

	render_open(x, f->name, '{');
	for (i = RECEIPT_ACCEPTED; i <= RECEIPT_INVALID; i++) {
		if (i == RECEIPT_DUPLICATE)
			continue;
		x->label[RENDER_VERDICT] = receipt_verdict_name(i);
		if (x->in == JSON)
			json_out_u64(&x->json, x->label[RENDER_VERDICT], v[i]);
		else if (x->in == TEXT)
			(void)fprintf(x->f, "%s %s %llu", i == 0 ? f->head : ",",
			    x->label[RENDER_VERDICT], (unsigned long long)v[i]);
		else
			render_sample(x, f, (double)v[i]);
	}
	x->label[RENDER_VERDICT] = NULL;
	render_close(x);
}

/* A field: name, type, member of ROW, the forms that have it, bits that the row must
 * have, and more members of struct render_field; METRIC: name and help as a metric. */
#define FIELD(field, what, member, where, ...) { .name = (field), \
	.type = RENDER_##what, .at = offsetof(struct ROW, member), \
	.in = (where), .gap = 1, .need = __VA_ARGS__ }
#define METRIC(name, text) .family = (name), .help = (text)

/* ---- a run of a spool ---- */

#define ROW run_state
static const struct render_field run_fields[] = {
	FIELD("run", NAME, name, JSON, 0),
	FIELD("steps", U64, steps, DATA, 0, METRIC("ace_run_steps",
	    "Steps of the run that have a folder in the spool.")),
	FIELD("last", U64, last, DATA, STATUS_LAST, METRIC("ace_run_last_step",
	    "Last step whose average was made.")),
	FIELD("since", F64, since, METRICS, STATUS_STEP,
	    METRIC("ace_run_open_timestamp_seconds",
	    "When the first shard of the step without an average came.")),
	FIELD("disk_bytes", U64, disk, METRICS, 0, METRIC("ace_run_disk_bytes",
	    "Bytes of the run on the disk.")),
	FIELD("now", NAME, is, JSON, 0),
	FIELD("step", U64, step, JSON, STATUS_STEP),
	FIELD("here", U64, here, JSON, STATUS_STEP),
	FIELD("missing", U64, missing, JSON, STATUS_STEP),
	FIELD("seconds", AGO, ago, JSON, STATUS_STEP),
	{ .name = NULL }
};
#undef ROW
#define ROW run_state_device
static const struct render_field device_fields[] = {
	FIELD("device", CHARS, name, TEXT | JSON, 0, .width = -RENDER_WIDE),
	FIELD("step", U64, step, ALL, STATUS_SEEN, .width = 6,
	    METRIC("ace_device_step", "Newest step of the device in the spool.")),
	FIELD("is", NAME, is, TEXT | JSON, 0, .width = -7),
	FIELD("awaited", FLAG, awaited, METRICS, 0, METRIC("ace_device_missing",
	    "1 while the current step waits for the device.")),
	FIELD("verdicts", CALL, verdict, DATA, 0, .put = put_verdicts,
	    METRIC("ace_device_shards_total",
	    "Shards of the device, by verdict.")),
	FIELD("seconds", AGO, ago, TEXT | JSON, STATUS_SENT, .head = "since",
	    .width = 7),
	FIELD("bytes", SIZE, bytes, ALL, STATUS_SENT, .width = 8,
	    METRIC("ace_device_shard_bytes",
	    "Size of the newest shard of the device.")),
	FIELD("time", F64, at, METRICS, STATUS_SENT,
	    METRIC("ace_device_shard_timestamp_seconds",
	    "When the newest shard of the device came.")),
	FIELD("accepted", U64, accepted, TEXT, 0, .width = 9),
	FIELD("missed", U64, missed, ALL, 0, .width = 7,
	    METRIC("ace_device_missed_steps_total",
	    "Steps that were closed without the device, since its first.")),
	FIELD("refused", U64, refused, TEXT, 0, .width = 7),
	FIELD("listed", FLAG, listed, JSON, 0),
	FIELD("disk_bytes", U64, disk, DATA, 0, METRIC("ace_device_disk_bytes",
	    "Bytes of the device's shards on the disk.")),
	{ .name = NULL }
};
#undef ROW

static void
status_waits(const struct status *x, const struct run_state *r)
{
	const unsigned long long step = r->step, here = r->here;
	struct waiting_names missing = { "", 0 };
	char age[32];
	size_t i;

	(void)render_ago(r->ago, age);
	for (i = 0; i < r->n; i++)
		if (r->d[i]->awaited)
			waiting_add(&missing, r->d[i]->name);
	if (r->now == STATUS_CLOSED)
		line(x, "step %llu is closed with %llu shard%s; its average is not "
		    "there yet (ace-aggregate)", step, here, here == 1 ? "" : "s");
	else if (r->now == STATUS_OPEN && r->run.made == 0 && !r->listed)
		line(x, "step %llu: %llu shard%s there, for %s; ace-aggregate waits "
		    "for devices that are not known yet (see ace-recv --join), or "
		    "it does not run", step, here, here == 1 ? " is" : "s are", age);
	else if (r->now == STATUS_OPEN && r->missing == 0)
		line(x, "step %llu: every expected shard is there (%llu), for %s; "
		    "ace-aggregate has not closed the step", step, here, age);
	else if (r->now == STATUS_OPEN)
		line(x, "step %llu: %llu of %llu shards are there, for "
		    "%s; missing%s", step, here,
		    here + r->missing, age, missing.text);
	else if (r->run.made != 0)
		line(x, "waiting for a first shard after step %llu",
		    (unsigned long long)r->last);
	else
		line(x, "waiting for a first shard");
}

static void
run_text(struct status *x, const struct run_state *r)
{
	char last[48] = "", size[NUM_TEXT];

	if (r->run.made != 0)
		(void)snprintf(last, sizeof(last), ", averages up to step %llu",
		    (unsigned long long)r->last);
	line(x, "run '%s' in '%s': %llu step%s kept%s, %s on disk",
	    r->name, x->dir, (unsigned long long)r->steps, r->steps == 1 ? "" : "s", last,
	    num_text((double)r->disk, "B", size));
	status_waits(x, r);
}

static void
run_say(struct status *x, const struct run_state *r)
{
	struct render *s = &x->s;
	char name[SHARD_NAME + 16], id[33];
	const struct run_state_device *d;
	size_t i;
	int n;

	if (s->in == TEXT)
		run_text(x, r);
	s->label[RENDER_RUN] = r->name;
	if (s->in != TEXT)
		render_row(s, run_fields, r, r->have);
	render_open(s, "devices", '[');
	s->wide[0] = (int)sizeof("device") - 1;
	for (i = 0; i < r->n; i++)
		if ((n = render_chars(r->d[i]->name)) > s->wide[0])
			s->wide[0] = n;
	if (r->n != 0)
		render_head(s, device_fields);
	for (i = 0; i < r->n; i++) {
		d = r->d[i];
		/* long names are known only by their beginning, which two devices may
		 * share, but no two samples may have the same labels */
		s->label[RENDER_DEVICE] = d->name;
		if (i != 0 && strcmp(d->name, r->d[i - 1]->name) == 0) {
			shard_hex(d->id, id);
			(void)snprintf(name, sizeof(name), "%s#%.12s", d->name, id);
			s->label[RENDER_DEVICE] = name;
		}
		render_item(s, device_fields, d, d->have);
	}
	s->label[RENDER_RUN] = s->label[RENDER_DEVICE] = NULL;
	render_close(s);
}

/* ---- a spool ---- */

static int
status_spool(struct status *x, struct err *e)
{
	struct spool in = SPOOL_INIT;
	struct run_state r = { .name = NULL };
	int k;

	in.sync = IO_SYNC_NONE;
	k = spool_open(&in, x->dir, 0, e);
	if (x->s.in == JSON)
		json_out_u64(&x->s.json, "disk_bytes", run_state_disk(x->dir));
	if (k == 0 && (k = run_state_read(&r, &in, x->now, e)) > 0)
		run_say(x, &r);
	else if (k == 0 && x->s.in == TEXT)
		line(x, "'%s': waiting for a first shard (ace-recv "
		    "--spool)", x->dir);
	run_state_release(&r);
	spool_close(&in);
	return k < 0 ? k : 0;
}

/* ---- a device's state ---- */

enum { ANY = 1, TIME = 2, MANAGED = 4, CODE = 8, LINK = 16, TRIP = 32 };

struct state {
	struct receipts q;
	uint64_t verdict[RECEIPT_NVERDICT];
	char run[SHARD_NAME + 1], device[SHARD_NAME + 1];
	unsigned have;		/* which members are known: bits ANY to TRIP */
	uint64_t step;
	double time;		/* when the residual was written, Unix seconds */
	const char *answer;	/* result of the step's shard, or NULL */
	double bandwidth, rtt, jitter;
	double kept, share, growing;	/* see device/contraction.h */
	double left;		/* sqrt(1 - kept) */
	uint64_t disk;
};

#define ROW state
static const struct render_field state_fields[] = {
	FIELD("run", CHARS, run, JSON, ANY),
	FIELD("device", CHARS, device, JSON, ANY),
	FIELD("step", U64, step, DATA, ANY, METRIC("ace_state_step",
	    "Last step that was coded.")),
	FIELD("verdict", NAME, answer, JSON, 0),
	FIELD("time", F64, time, METRICS, TIME,
	    METRIC("ace_state_timestamp_seconds", "When it was coded.")),
	FIELD("verdicts", CALL, verdict, ALL, MANAGED, .put = put_verdicts,
	    .head = "receipts ",
	    METRIC("ace_state_receipts", "Verdicts of the last 64 receipts.")),
	FIELD("contraction", F64, kept, METRICS, CODE,
	    METRIC("ace_state_contraction_ratio", "Share of the squared norm of "
	    "gradient plus residual that the last code kept.")),
	FIELD("residual", F64, left, METRICS, CODE,
	    METRIC("ace_state_residual_ratio", "Norm of what the last code lost, "
	    "divided by that of gradient and residual; at most 1.")),
	FIELD("coded", F64, share, METRICS, CODE, METRIC("ace_state_coded_ratio",
	    "Bytes of the last code divided by those of its values in f32.")),
	FIELD("growing", F64, growing, DATA, CODE,
	    METRIC("ace_state_growing_shards",
	    "Shards in a row whose coding error was as large as their values.")),
	FIELD("bandwidth", RATE, bandwidth, DATA, LINK,
	    METRIC("ace_state_link_bytes_per_second",
	    "Bandwidth of the link, as ace-meter measured it.")),
	FIELD("rtt", F64, rtt, DATA, TRIP, METRIC("ace_state_round_trip_seconds",
	    "From the last byte of a shard to its receipt, smoothed.")),
	FIELD("jitter", F64, jitter, DATA, TRIP, METRIC("ace_state_jitter_seconds",
	    "Mean deviation of the round trip.")),
	FIELD("disk_bytes", U64, disk, DATA, 0, METRIC("ace_state_disk_bytes",
	    "Bytes of the state on the disk.")),
	{ .name = NULL }
};

/* Read run, device and step of the residual, and the time of its file. */
static int
state_residual(struct state *v, const struct statedir *s, struct err *e)
{
	struct residual res = { .d = { .r = NULL } };
	struct stat st;
	int k = residual_open(&res, s, e);

	if (k == 0 && res.d.r != NULL) {
		(void)snprintf(v->run, sizeof(v->run), "%s",
		    shard_run(reader_shard(res.d.r)));
		(void)snprintf(v->device, sizeof(v->device), "%s",
		    shard_device(reader_shard(res.d.r)));
		v->have |= ANY;
		v->step = res.step;
		if (fstatat(s->at->fd, "residual", &st, 0) == 0) {
			v->have |= TIME;
			v->time = (double)st.st_mtim.tv_sec +
			    (double)st.st_mtim.tv_nsec * 1e-9;
		}
	}
	residual_close(&res);
	return k;
}

static int
state_read(struct state *v, const struct statedir *s, struct err *e)
{
	static const struct {
		const char *file, *name;
		size_t at;
		unsigned have;
	} number[] = {
		{ LEARNED_LINK, LEARNED_BANDWIDTH, offsetof(struct state, bandwidth), 0 },
		{ LEARNED_LINK, LINK_RTT, offsetof(struct state, rtt), 0 },
		{ LEARNED_LINK, LINK_JITTER, offsetof(struct state, jitter), 0 },
		{ CONTRACTION_FILE, CONTRACTION_ALPHA, offsetof(struct state, kept),
		    CODE },
		{ CONTRACTION_FILE, CONTRACTION_SHARE, offsetof(struct state, share),
		    0 },
		{ CONTRACTION_FILE, CONTRACTION_GROWING,
		    offsetof(struct state, growing), 0 }
	};
	size_t i;
	int k;

	if ((k = state_residual(v, s, e)) < 0 || (k = receipts_load(&v->q, s, e)) < 0)
		return k;
	for (i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
		if ((k = learned_number(s, number[i].file, number[i].name,
		    (double *)((char *)v + number[i].at), e)) < 0)
			return k;
		v->have |= k > 0 ? number[i].have : 0;
	}
	for (i = 0; i < v->q.n; i++) {
		v->verdict[receipt_is_accepted(&v->q.r[i]) ? RECEIPT_ACCEPTED :
		    v->q.r[i].verdict]++;
		if ((v->have & ANY) && v->q.r[i].step == v->step)
			v->answer = receipt_verdict_name(v->q.r[i].verdict);
	}
	v->left = sqrt(fmax(0, 1 - v->kept));
	v->disk = run_state_disk(s->dir);
	v->have |= (v->q.managed ? MANAGED : 0u) | (v->bandwidth > 0 ? LINK : 0u) |
	    (v->rtt > 0 ? TRIP : 0u);
	return 0;
}

static void
state_text(struct status *x, const struct state *v)
{
	char size[NUM_TEXT], rate[NUM_TEXT];

	if (v->have & ANY)
		line(x, "device '%s' of run '%s' in '%s': step %llu, %s%s",
		    v->device, v->run, x->dir, (unsigned long long)v->step,
		    v->answer != NULL ? v->answer :
		    v->q.managed ? "no receipt yet" : "no receipts are kept",
		    v->q.managed || v->answer != NULL ? "" : " (ace-ack)");
	else
		line(x, "'%s': nothing was coded here yet "
		    "(ace-compress)", x->dir);
	if (v->have & LINK)
		line(x, "link      %s, round trip %.1f +- %.1f ms",
		    num_text(v->bandwidth, "bit/s", rate), v->rtt * 1e3,
		    v->jitter * 1e3);
	else
		line(x, "link      not measured (ace-meter)");
	if (v->q.managed) {
		render_row(&x->s, state_fields, v, v->have);
		line(x, "; of the last %zu", v->q.n);
	}
	if (v->growing >= (double)CONTRACTION_PATIENCE)
		line(x, "residual  grows: the errors of %.0f shards in a row were as "
		    "large as their values (ace-compress)", v->growing);
	line(x, "disk      %s", num_text((double)v->disk, "B", size));
}

static int
status_state(struct status *x, struct err *e)
{
	struct statedir s = STATE_INIT;
	struct state *v = alloc_get(1, sizeof(*v), e);
	int k = v != NULL ? statedir_open(&s, x->dir, e) : -ERR_SYS;

	if (k == 0 && (k = state_read(v, &s, e)) == 0) {
		if (x->s.in == TEXT) {
			state_text(x, v);
		} else {
			if (v->have & ANY) {
				x->s.label[RENDER_RUN] = v->run;
				x->s.label[RENDER_DEVICE] = v->device;
			}
			render_row(&x->s, state_fields, v, v->have);
			x->s.label[RENDER_RUN] = x->s.label[RENDER_DEVICE] = NULL;
		}
	}
	statedir_close(&s);
	alloc_free(v);
	return k;
}

/* ---- kinds of directories ---- */

enum status_kind { STATUS_NOTHING, STATUS_SPOOL, STATUS_STATE, STATUS_OTHER, STATUS_CLOUD };
static const char *const kinds[] = { "spool", "spool", "state" };

static int
status_each_name(void *kind, const char *path, const char *name, struct err *e)
{
	*(enum status_kind *)kind = STATUS_OTHER;
	return 1;
}

/* Find out what a directory is.  An empty directory is a spool that has no shard yet. */
static int
status_kind(const char *dir, enum status_kind *kind, struct err *e)
{
	/* if several are there, the last one counts */
	static const struct { const char *name; enum status_kind kind; } file[] = {
		{ "residual", STATUS_STATE }, { "receipts", STATUS_STATE },
		{ "link", STATUS_STATE }, { "feedback", STATUS_STATE },
		{ "score", STATUS_STATE }, { "code", STATUS_STATE },
		{ "plan", STATUS_STATE }, { "policy", STATUS_STATE },
		{ "ack-lock", STATUS_STATE }, { "lock", STATUS_STATE },
		{ ".clients", STATUS_SPOOL },	/* ace-recv makes this first */
		{ "limits", STATUS_SPOOL },	/* ace-cloud makes this first */
		{ "schema.aceg", STATUS_SPOOL }, { "round", STATUS_OTHER },
		{ "spool/limits", STATUS_CLOUD }
	};
	const int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	size_t i;
	int k;

	if (fd < 0)
		return errno != ENOTDIR ? err_sys(e, "'%s'", dir) :
		    err_set(e, ERR_DATA, "mismatch: '%s' is not a directory: give "
		    "a spool or a device's state (ace-inspect reads files)", dir);
	*kind = STATUS_NOTHING;
	for (i = 0; i < sizeof(file) / sizeof(file[0]); i++)
		if (fstatat(fd, file[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			*kind = file[i].kind;
	(void)close(fd);
	if (*kind == STATUS_NOTHING &&
	    (k = scan(dir, 0, status_each_name, kind, e)) < 0)
		return k;
	if (*kind == STATUS_CLOUD)
		return err_set(e, ERR_DATA, "mismatch: '%s' is the folder of a cloud or a relay: "
		    "give its folder 'spool' (ace watch shows the rounds)", dir);
	return *kind != STATUS_OTHER ? 0 : err_set(e, ERR_DATA, "mismatch: '%s' is not a "
	    "spool (ace-recv --spool) and not a device's state (with ace edge: 'state' in "
	    "its folder)", dir);
}

static int
status_look(struct status *x, const char *dir, struct err *e)
{
	enum status_kind kind = STATUS_OTHER;
	struct timespec now = { 0, 0 };
	int k;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	x->now = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
	x->dir = x->s.label[RENDER_DIRECTORY] = dir;
	if ((k = status_kind(dir, &kind, e)) < 0)
		return k;
	if (x->s.in == TEXT && x->shown++ != 0)
		(void)putchar('\n');
	if (x->s.in == JSON) {
		json_out_init(&x->s.json, x->s.f);
		json_out_open(&x->s.json, NULL, '{');
		json_out_string(&x->s.json, "directory", dir);
		json_out_f64(&x->s.json, "time", x->now);
		json_out_string(&x->s.json, "kind", kinds[kind]);
	}
	k = kind == STATUS_STATE ? status_state(x, e) : status_spool(x, e);
	if (x->s.in == JSON)
		json_out_end(&x->s.json);
	return k;
}

/* ---- the program ---- */

static const struct opt options[] = {
	{ 0, "format", "FORMAT", NULL,
	    OPT_WORD(struct status, form, forms), .def = "text" },
	OPT_END
};

/* Prepare for metrics.  No directory may be given twice, since no two samples may have
 * the same labels. */
static int
measure(struct status *x, size_t n, char **dir, struct err *e)
{
	size_t i, j;

	x->s.e = e;
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			if (strcmp(dir[i], dir[j]) == 0)
				return err_set(e, ERR_USAGE, "'%s' was given "
				    "twice: name each directory once", dir[i]);
	return 0;
}

static int
run(void *arg, char **dir, size_t n, struct err *e)
{
	struct status *x = arg;
	struct err own;
	size_t i;
	int k, r = 0;

	if (n == 0)
		return err_set(e, ERR_USAGE, "no directory was given: expected a "
		    "spool or a device's state");
	if (kern_get(e) == NULL)
		return -ERR_USAGE;
	x->s.form = (enum render_form)x->form;
	x->s.in = 1u << x->form;
	if (x->s.in == METRICS)
		r = measure(x, n, dir, e);
	for (i = 0; i < n && (r == 0 || x->s.in != METRICS); i++) {
		own = (struct err)ERR_INIT;
		if ((k = status_look(x, dir[i], &own)) >= 0)
			continue;
		(void)fprintf(stderr, "ace-status: %s\n", ERR_MSG(&own));
		e->quiet = 1;		/* the message is already printed */
		r = k < r ? k : r;
	}
	/* after an error print nothing: the run of the directory that failed would seem to have
	 * ended */
	if (x->s.in == METRICS) {
		if (r < 0)
			x->s.failed = r;
		r = render_metrics(&x->s);
	}
	return r;
}

int
main(int argc, char **argv)
{
	struct cli c = {
		.prog = "ace-status",
		.usage = "[--format FORMAT] DIR...",
		.about = "Tells how a run is going, from a spool or from a "
		    "device's state.",
		.examples = "ace-status spool\n"
		    "ace-status --format json spool\n",
		.opt = options,
		.kernels = kern_name
	};
	struct status x = { .s = { .f = stdout } };

	return cli_main(&c, argc, argv, run, &x);
}
