#include <stdio.h>
#include <string.h>

#include "format/text.h"
#include "report/metrics.h"

/* Whoever adds one adds its row, and its name to the page. */
static const struct {
	const char *name, *type, *help;
} family[METRIC_N] = {
	[METRIC_RUN_STEPS] = { "ace_run_steps", "gauge",
	    "Steps of the run that have a folder in the spool." },
	[METRIC_RUN_LAST] = { "ace_run_last_step", "gauge",
	    "Last step whose average was made." },
	[METRIC_RUN_OPEN] = { "ace_run_open_timestamp_seconds", "gauge",
	    "When the first shard came of the step that has no average yet." },
	[METRIC_RUN_DISK] = { "ace_run_disk_bytes", "gauge",
	    "What the run takes on the disk." },
	[METRIC_STEP] = { "ace_device_step", "gauge",
	    "Newest step of the device in the spool." },
	[METRIC_MISSING] = { "ace_device_missing", "gauge",
	    "1 while the step at hand waits for the device." },
	[METRIC_SHARDS] = { "ace_device_shards_total", "counter",
	    "Shards of the device that the spool answered, by verdict." },
	[METRIC_MISSED] = { "ace_device_missed_steps_total", "counter",
	    "Steps that were closed without the device, since its first." },
	[METRIC_BYTES] = { "ace_device_shard_bytes", "gauge",
	    "Size of the newest shard of the device." },
	[METRIC_TIME] = { "ace_device_shard_timestamp_seconds", "gauge",
	    "When the newest shard of the device came." },
	[METRIC_LINK] = { "ace_device_link_bytes_per_second", "gauge",
	    "Bandwidth of the link of the device, as its newest shard says." },
	[METRIC_DISK] = { "ace_device_disk_bytes", "gauge",
	    "What the shards of the device take on the disk." },
	[METRIC_STATE_STEP] = { "ace_state_step", "gauge",
	    "Last step that was coded." },
	[METRIC_STATE_TIME] = { "ace_state_timestamp_seconds", "gauge",
	    "When that was." },
	[METRIC_STATE_RECEIPTS] = { "ace_state_receipts", "gauge",
	    "Verdicts of the last 64 receipts." },
	[METRIC_STATE_CONTRACTION] = { "ace_state_contraction_ratio", "gauge",
	    "Share of the squared norm of gradient and residual that the last "
	    "code kept." },
	[METRIC_STATE_RESIDUAL] = { "ace_state_residual_ratio", "gauge",
	    "Norm of what the last code left out by that of gradient and "
	    "residual, at most 1." },
	[METRIC_STATE_CODED] = { "ace_state_coded_ratio", "gauge",
	    "Bytes of the last code by those of the same values in f32." },
	[METRIC_STATE_GROWING] = { "ace_state_growing_shards", "gauge",
	    "Shards in a row whose code lost more than it kept." },
	[METRIC_STATE_LINK] = { "ace_state_link_bytes_per_second", "gauge",
	    "Bandwidth of the link, as ace-meter measured it." },
	[METRIC_STATE_RTT] = { "ace_state_round_trip_seconds", "gauge",
	    "From the last byte of a shard to its receipt, smoothed." },
	[METRIC_STATE_JITTER] = { "ace_state_jitter_seconds", "gauge",
	    "Mean deviation of the round trip." },
	[METRIC_STATE_DISK] = { "ace_state_disk_bytes", "gauge",
	    "What the state takes on the disk." },
	[METRIC_MODEL_STEP] = { "ace_model_step", "gauge",
	    "Step of the newest model that was kept." },
	[METRIC_RECEIVER_STEP] = { "ace_receiver_step", "gauge",
	    "Step of the model that the receiver has, as it said last." },
	[METRIC_RECEIVER_BEHIND] = { "ace_receiver_behind_steps", "gauge",
	    "Steps from there to the newest." },
	[METRIC_RECEIVER_BYTES] = { "ace_receiver_behind_bytes", "gauge",
	    "Bytes that would bring the receiver there." },
};

static void
metrics_text(struct metrics *m, enum metric which, const char *s)
{
	if (m->r == 0)
		m->r = buf_put(&m->text[which], s, strlen(s), m->e);
}

/* Of a name that is no text without control characters what is not ASCII becomes a
 * question mark: one of them, and the reader would take nothing of the file. */
static void
metrics_label(struct metrics *m, enum metric which, const char *key,
    const char *value)
{
	const int clean = value != NULL && text_clean(value, strlen(value));
	char c[3] = "";

	if (value == NULL)
		return;
	metrics_text(m, which, key);
	for (; *value != '\0'; value++) {
		c[0] = clean || (*value >= 0x20 && *value < 0x7f) ? *value : '?';
		c[1] = '\0';
		if (c[0] == '"' || c[0] == '\\') {
			c[1] = c[0];
			c[0] = '\\';
		}
		metrics_text(m, which, c);
	}
	metrics_text(m, which, "\"");
}

void
metrics_put(struct metrics *m, enum metric which, const struct metric_of *of,
    double v)
{
	char number[40];

	metrics_text(m, which, family[which].name);
	metrics_label(m, which, "{directory=\"", of->dir);
	metrics_label(m, which, ",run=\"", of->run);
	metrics_label(m, which, ",device=\"", of->device);
	metrics_label(m, which, ",verdict=\"", of->verdict);
	(void)snprintf(number, sizeof(number), "} %.15g\n", v);
	metrics_text(m, which, number);
}

void
metrics_verdicts(struct metrics *m, enum metric which, struct metric_of of,
    const uint64_t *v)
{
	unsigned i;

	for (i = 0; i < RECEIPT_NVERDICT; i++) {
		if (i == RECEIPT_DUPLICATE)
			continue;
		of.verdict = receipt_verdict_name(i);
		metrics_put(m, which, &of, (double)(v[i] +
		    (i == RECEIPT_ACCEPTED ? v[RECEIPT_DUPLICATE] : 0)));
	}
}

void
metrics_run(struct metrics *m, const char *dir, const struct status_run *r)
{
	struct metric_of of = { dir, r->name, NULL, NULL };
	const struct status_device *d;
	char name[SHARD_NAME + 16], id[33];

	metrics_put(m, METRIC_RUN_STEPS, &of, (double)r->steps);
	if (r->has_last)
		metrics_put(m, METRIC_RUN_LAST, &of, (double)r->last);
	if (r->now != STATUS_IDLE)
		metrics_put(m, METRIC_RUN_OPEN, &of, r->since);
	metrics_put(m, METRIC_RUN_DISK, &of, (double)r->disk);
	for (d = r->d; d < r->d + r->n; d++) {
		/* of two names that are too long for a file the beginning is
		 * known, and may be the same: no two samples may have one name */
		of.device = d->name;
		if (d != r->d && strcmp(d->name, d[-1].name) == 0) {
			shard_hex(d->id, id);
			(void)snprintf(name, sizeof(name), "%s#%.12s", d->name, id);
			of.device = name;
		}
		if (d->any)
			metrics_put(m, METRIC_STEP, &of, (double)d->step);
		metrics_put(m, METRIC_MISSING, &of, r->now == STATUS_OPEN &&
		    d->expected && !d->here);
		metrics_verdicts(m, METRIC_SHARDS, of, d->verdict);
		metrics_put(m, METRIC_MISSED, &of, (double)d->missed);
		if (d->bytes != 0) {
			metrics_put(m, METRIC_BYTES, &of, (double)d->bytes);
			metrics_put(m, METRIC_TIME, &of, d->at);
		}
		if (d->bandwidth > 0)
			metrics_put(m, METRIC_LINK, &of, d->bandwidth / 8);
		metrics_put(m, METRIC_DISK, &of, (double)d->disk);
	}
}

int
metrics_print(const struct metrics *m, FILE *f)
{
	int i;

	if (m->r < 0)
		return m->r;
	for (i = 0; i < METRIC_N; i++) {
		if (m->text[i].n == 0)
			continue;
		(void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n",
		    family[i].name, family[i].help, family[i].name,
		    family[i].type);
		(void)fwrite(m->text[i].p, 1, m->text[i].n, f);
	}
	/* where it ends: a file without is not whole */
	(void)fputs("# EOF\n", f);
	return 0;
}

void
metrics_release(struct metrics *m)
{
	int i;

	for (i = 0; i < METRIC_N; i++)
		buf_release(&m->text[i]);
}
