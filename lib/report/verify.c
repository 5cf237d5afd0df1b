#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/io.h"
#include "base/progress_bar.h"
#include "format/checks.h"
#include "format/reader.h"
#include "kern/kern.h"
#include "pipe/pick.h"
#include "report/report.h"
#include "report/verify.h"

struct verify {
	const struct kern *kern;
	const struct io *io;
	struct progress_bar bar;
	uint64_t shard;
	struct checks checks;
	const struct reader *r;
	struct shard_sums sums;
	double sumabs;
};

static int
verify_group(void *arg, const struct schema_tensor *t, const float *x,
    size_t n, struct err *e)
{
	struct verify *v = arg;
	struct kern_stat s;

	if (v->checks.sign)
		return checks_data(&v->checks, v->r, e);
	progress_bar_show(&v->bar, io_bytes(v->io), io_can_seek(v->io) ?
	    io_size(v->io) : 0, "B");
	v->kern->stat(x, n, &s);
	v->sums.sum += s.sum;
	v->sums.sumsq += s.sumsq;
	v->sumabs += s.sumabs;
	if (s.max_abs > v->sums.max_abs)
		v->sums.max_abs = s.max_abs;
	return 0;
}

static int
verify_note(void *arg, const struct reader *r, struct err *e)
{
	struct verify *v = arg;

	return checks_note(&v->checks, r, e);
}

/* Compare the sums of a shard with those at its end. Its writer may have added the values, in
 * f64, in another order: allow 2^-40 of the summed magnitudes, far above the effect of the
 * order and below that of a typical wrong value. */
static int
verify_sums(const struct verify *v, const struct reader *r, struct err *e)
{
	const struct shard_sums *want = &reader_end_of_shard(r)->sums;
	const struct shard_sums *got = &v->sums;
	const struct { const char *what; double is, said, scale; } sum[] = {
		{ "sum of the values", got->sum, want->sum, v->sumabs },
		{ "sum of squares", got->sumsq, want->sumsq, got->sumsq },
		{ "largest magnitude", (double)got->max_abs, (double)want->max_abs, 0 }
	};
	size_t i;

	for (i = 0; i < sizeof(sum) / sizeof(sum[0]); i++)
		if (!(fabs(sum[i].is - sum[i].said) <= ldexp(sum[i].scale, -40)))
			return err_set(e, ERR_NO, "the %s is %.17g, but the shard's end says "
			    "%.17g, in shard %llu '%.80s/%llu'", sum[i].what, sum[i].is,
			    sum[i].said, (unsigned long long)v->shard,
			    shard_device(reader_shard(r)),
			    (unsigned long long)reader_shard(r)->step);
	return 0;
}

static int
verify_shards(struct report *p, struct reader *r, struct err *e)
{
	struct verify v = { .kern = p->kern, .io = p->io, .r = r };
	struct walk w = { .group = verify_group, .note = verify_note, .arg = &v };
	struct err sums = ERR_INIT;
	int k, no = 0;

	progress_bar_begin(&v.bar, p->cli);
	while ((k = reader_next(r, e)) > 0) {
		if (k != READER_SHARD)
			continue;
		v.shard = ++p->shard;
		if (!report_wants(p, r)) {
			if ((k = pick_pass(r, e)) < 0)
				break;
			continue;
		}
		memset(&v.sums, 0, sizeof(v.sums));
		text_release(&v.checks.policy);
		v.checks = (struct checks){ 0 };
		v.sumabs = 0;
		if ((k = checks_shard(reader_shard(r), e)) < 0)
			k = k == -ERR_DATA ? reader_place(r, k, e) : k;
		if (k < 0 || (k = walk_shard(&w, r, e)) < 0)
			break;
		if (no == 0)
			no = verify_sums(&v, r, &sums);
	}
	progress_bar_end(&v.bar);
	walk_release(&w);
	text_release(&v.checks.policy);
	/* report damage rather than a wrong sum */
	return k < 0 || no == 0 ? k : err_move(e, &sums);
}

int
verify_file(struct report *p, struct reader *r, struct err *e)
{
	struct json_out *j = &p->s.json;
	const char *name = io_name(p->io);
	int k = verify_shards(p, r, e);

	if (p->s.form == RENDER_JSON) {
		json_out_open(j, NULL, '{');
		json_out_string(j, "file", name);
		json_out_bool(j, "ok", k == 0);
		json_out_u64(j, "shards", p->shard);
		json_out_u64(j, "bytes", io_bytes(p->io));
		json_out_u64(j, "status", (uint64_t)-k);
		if (k < 0)
			json_out_string(j, "error", ERR_MSG(e));
		json_out_end(j);
	} else if (k == 0 && !p->quiet) {
		render_name(p->s.f, name);
		(void)fprintf(p->s.f, ": ok, %llu shards, %llu bytes\n",
		    (unsigned long long)p->shard,
		    (unsigned long long)io_bytes(p->io));
	}
	return k < 0 ? k : report_flush(p, e);
}
