#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fail.h"
#include "train_link.h"

/* about a model without the optimiser's arrays */
static const char bare[] = "mismatch: expected the optimiser's state after the model "
    "(--resume writes both, --save only the model) in";

/* Return the model's tensor that is number i of the stream. */
static const struct tensor *
tensor_at(const struct model *m, const size_t *order, size_t i)
{
	return &m->tensor[order != NULL ? order[i] : i];
}

static int
tensors_put(struct ace_writer *w, const struct model *m, const size_t *order,
    uint32_t group, struct ace_error *e)
{
	struct ace_tensor *t = calloc(m->nsent, sizeof *t);
	size_t i;
	int r;

	if (t == NULL)
		return fail(e, 4, "out of memory for array", "tensors");
	for (i = 0; i < m->nsent; i++) {
		const struct tensor *s = tensor_at(m, order, i);

		t[i].name = s->name;
		t[i].dtype = ACE_F32;
		t[i].ndim = s->ndim;
		t[i].dim[0] = s->dim[0];
		t[i].dim[1] = t[i].ndim == 2 ? s->dim[1] : 0;
		t[i].numel = s->n;
	}
	r = ace_write_tensors(w, t, m->nsent, group, e);
	free(t);
	return r;
}

/* Check that the tensors in the file have the model's names, shapes and order. */
static int
tensors_match(const struct ace_reader *r, const char *file, const struct model *m,
    const size_t *order, struct ace_error *e)
{
	const struct tensor *s;
	size_t n, i;
	const struct ace_tensor *t = ace_tensors(r, &n);

	if (n != m->nsent) {
		e->code = 3;
		(void)snprintf(e->message, sizeof e->message, "mismatch: '%s' has %zu tensors, but "
		    "the trainer's model has %zu: give the --layers of that model, and --factored "
		    "only if it has a tensor 'scales'", file, n,
		    m->nsent);
		return -3;
	}
	for (i = 0; i < n; i++) {
		s = tensor_at(m, order, i);
		if (strcmp(t[i].name, s->name) == 0 && t[i].ndim == s->ndim &&
		    t[i].dim[0] == s->dim[0] && (t[i].ndim != 2 || t[i].dim[1] == s->dim[1]))
			continue;
		e->code = 3;
		(void)snprintf(e->message, sizeof e->message, "mismatch: '%s' has tensor '%s' of "
		    "%llu values, expected '%s' of %llu: give the --layers, --width and --context "
		    "of that model", file, t[i].name, (unsigned long long)t[i].numel, s->name,
		    (unsigned long long)s->n);
		return -3;
	}
	return 0;
}

static int
shard_put(struct ace_writer *w, const struct ace_shard *s, const float *x,
    size_t n, struct ace_error *e)
{
	int r;

	if ((r = ace_write_shard(w, s, e)) < 0 ||
	    (r = ace_write_values(w, x, n, e)) < 0)
		return r;
	return ace_write_end(w, e);
}

/* Return r, the result of a function of the reader.  If it is an error, add the file to the
 * message. */
static int
in_file(const char *file, int r, struct ace_error *e)
{
	const size_t n = strlen(e->message);

	if (r < 0)
		(void)snprintf(e->message + n, sizeof e->message - n, ", in '%s'", file);
	return r;
}

/* Read the values of the shard whose header was read last into x f32[m->n]. */
static int
shard_get(struct ace_reader *r, const char *file, const struct model *m,
    const size_t *order, float *x, struct ace_error *e)
{
	struct ace_group g;
	int got;

	if ((got = tensors_match(r, file, m, order, e)) < 0)
		return got;
	while ((got = ace_read_group(r, &g, e)) > 0)
		memcpy(x + tensor_at(m, order, g.tensor)->at + g.offset, g.value,
		    g.n * sizeof *x);
	return in_file(file, got, e);
}

int
link_open(struct link *l, int out, uint32_t group, struct ace_error *e)
{
	l->fd = -1;
	l->out = ace_writer_new(out, "train", e);
	return l->out == NULL ? -e->code : tensors_put(l->out, l->m, l->order,
	    group, e);
}

/* Return || theta ||, to which a policy compares the norm of an update. */
static double
model_norm(const struct model *m)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < m->n; i++)
		sum += (double)m->theta[i] * (double)m->theta[i];
	return sqrt(sum);
}

static struct ace_shard
describe(const struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples)
{
	struct ace_shard s = ACE_SHARD_INIT;

	(void)snprintf(s.run, sizeof s.run, "%s", l->run);
	(void)snprintf(s.device, sizeof s.device, "%s", l->device);
	s.step = round;
	s.base_version = version;
	s.samples = samples;
	s.kind = kind;
	return s;
}

int
link_record(const struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, const float *x, struct ace_error *e)
{
	const struct ace_shard s = describe(l, kind, round, version, samples);
	char file[4096];

	if (l->record == NULL)
		return 0;
	if ((size_t)snprintf(file, sizeof file, "%s/%llu.aceg", l->record,
	    (unsigned long long)s.step) >= sizeof file)
		return fail(e, 2, "--record: the path is too long:", l->record);
	return link_save(file, l->m, s, &x, 1, e);
}

int
link_begin(struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, struct ace_error *e)
{
	struct ace_shard s = describe(l, kind, round, version, samples);
	char text[32];
	int r;

	(void)snprintf(text, sizeof text, "%.9g", model_norm(l->m));
	if ((r = ace_write_key(l->out, "model.norm", text, e)) < 0)
		return r;
	if (l->digest[0] != '\0' && (r = ace_write_key(l->out, "model.digest",
	    l->digest, e)) < 0)
		return r;
	(void)snprintf(text, sizeof text, "%.9g", l->compute);
	if (l->compute >= 0 && (r = ace_write_key(l->out, "compute.seconds",
	    text, e)) < 0)
		return r;
	return ace_write_shard(l->out, &s, e);
}

int
link_tensor(struct link *l, size_t tensor, const float *x, int flush,
    struct ace_error *e)
{
	const struct tensor *t = &l->m->tensor[tensor];
	int r = ace_write_values(l->out, x + t->at, t->n, e);

	return r < 0 || !flush ? r : ace_write_flush(l->out, e);
}

int
link_end(struct link *l, struct ace_error *e)
{
	return ace_write_end(l->out, e);
}

int
link_send(struct link *l, enum ace_kind kind, uint64_t round,
    uint64_t version, uint64_t samples, const float *x, struct ace_error *e)
{
	size_t i;
	int r;

	if ((r = link_record(l, kind, round, version, samples, x, e)) < 0 ||
	    (r = link_begin(l, kind, round, version, samples, e)) < 0)
		return r;
	for (i = 0; i < l->m->nsent && r == 0; i++)
		r = link_tensor(l, i, x, 0, e);
	return r < 0 ? r : link_end(l, e);
}

static int
apply_open(struct link *l, struct ace_error *e)
{
	l->fd = strcmp(l->apply, "-") == 0 ? dup(STDIN_FILENO) :
	    open(l->apply, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0)
		return fail(e, 4, "cannot open", l->apply);
	if (strcmp(l->apply, "-") == 0)
		l->apply = "standard input";
	l->in = ace_reader_new(l->fd, e);
	return l->in == NULL ? -e->code : 0;
}

static void
hear(const struct link *l, struct link_word *word)
{
	const struct ace_reader *in = l->in;
	char own[80], *end;
	const char *v;

	memset(word, 0, sizeof *word);
	(void)snprintf(own, sizeof own, "interval.%s", l->device);
	if ((v = ace_policy(in, own)) == NULL)
		v = ace_policy(in, "interval");
	if (v != NULL)
		word->interval = strtoul(v, NULL, 10);
	if ((v = ace_policy(in, "cuts")) != NULL &&
	    strlen(v) < sizeof word->cuts)
		(void)strcpy(word->cuts, v);
	if ((v = ace_policy(in, "delay")) == NULL)
		return;
	word->delay = strtoul(v, &end, 10);
	word->delayed = end != v && *end == '\0' && word->delay <= 1000;
}

/* Divide a sum by its weight, and set *word to the policy's decisions. */
static void
mean(const struct link *l, const struct ace_shard *s, float *x,
    struct link_word *word)
{
	size_t i;

	if (s->kind == ACE_SUM)
		for (i = 0; i < l->m->n; i++)
			x[i] = (float)((double)x[i] / s->weight);
	hear(l, word);
}

int
link_receive(struct link *l, uint64_t round, float *x, struct link_word *word,
    struct ace_error *e)
{
	struct ace_shard s;
	char what[120];
	int r;

	if (l->in == NULL && (r = apply_open(l, e)) < 0)
		return r;
	do {
		if ((r = in_file(l->apply, ace_read_shard(l->in, &s, e), e)) < 0)
			return r;
		if (r == 0 || s.step > round) {
			if (r == 0)
				(void)snprintf(what, sizeof what, "truncated: the average of "
				    "round %llu is missing from", (unsigned long long)round);
			else
				(void)snprintf(what, sizeof what, "mismatch: found the average of "
				    "round %llu, expected round %llu, in",
				    (unsigned long long)s.step, (unsigned long long)round);
			return fail(e, 3, what, l->apply);
		}
		if ((r = shard_get(l->in, l->apply, l->m, l->order, x, e)) < 0)
			return r;
	} while (s.step < round);
	l->rounds = round + 1;
	mean(l, &s, x, word);
	return 0;
}

int
link_feedback(struct link *l, struct ace_shard *s, float *const *x, size_t nx,
    float *average, struct link_word *word, struct ace_error *e)
{
	struct ace_shard other;
	size_t i;
	int r;

	if (l->in == NULL && (r = apply_open(l, e)) < 0)
		return r;
	if ((r = in_file(l->apply, ace_read_shard(l->in, s, e), e)) <= 0)
		return r;
	if (s->kind != ACE_MODEL) {
		if ((r = shard_get(l->in, l->apply, l->m, NULL, average, e)) == 0)
			mean(l, s, average, word);
		return r < 0 ? r : 1;
	}
	for (i = 0; i < nx && r >= 0; i++) {
		if (i > 0 && ((r = in_file(l->apply, ace_read_shard(l->in, &other, e), e)) == 0 ||
		    (r > 0 && other.kind != ACE_HISTORY)))
			r = fail(e, 3, bare, l->apply);
		if (r > 0)
			r = shard_get(l->in, l->apply, l->m, NULL, x[i], e);
	}
	return r < 0 ? r : 1;
}

int
link_close(struct link *l, int out, struct ace_error *e)
{
	struct ace_shard s;
	char what[120];
	int r = ace_writer_close(l->out, e);

	if (r < 0)
		return r;
	if (close(out) < 0)
		return fail(e, 4, "cannot close", "standard output");
	if (l->in == NULL)
		return 0;
	while ((r = ace_read_shard(l->in, &s, e)) > 0 && s.step < l->rounds)
		;
	if (r <= 0)
		return in_file(l->apply, r, e);
	(void)snprintf(what, sizeof what, "mismatch: found an average of round %llu, but the "
	    "training ended after %llu rounds, in", (unsigned long long)s.step,
	    (unsigned long long)l->rounds);
	return fail(e, 3, what, l->apply);
}

void
link_release(struct link *l)
{
	ace_writer_free(l->out);
	ace_reader_free(l->in);
	if (l->fd >= 0)
		(void)close(l->fd);
	l->out = NULL;
	l->in = NULL;
	l->fd = -1;
}

static int
save(int fd, const struct model *m, struct ace_shard *s, const float *const *x,
    size_t nx, struct ace_error *e)
{
	struct ace_writer *w = ace_writer_new(fd, "train", e);
	int r = w == NULL ? -e->code : tensors_put(w, m, NULL, 0, e);
	size_t i;

	for (i = 0; r >= 0 && i < nx; i++) {
		s->kind = i == 0 ? s->kind : ACE_HISTORY;
		r = shard_put(w, s, x[i], m->n, e);
	}
	if (r >= 0)
		r = ace_writer_close(w, e);
	ace_writer_free(w);
	return r;
}

static int
replace(const char *file, const struct model *m, struct ace_shard s,
    const float *const *x, size_t nx, struct ace_error *e)
{
	char temp[4096];
	struct stat st;
	int r, fd;

	if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
		return fail(e, 2, "expected the name of a regular file, found", file);
	if ((size_t)snprintf(temp, sizeof temp, "%s.new", file) >= sizeof temp)
		return fail(e, 2, "the path is too long:", file);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(e, 4, "cannot open a new file beside", file);
	r = save(fd, m, &s, x, nx, e);
	if (r >= 0 && fsync(fd) < 0)
		r = fail(e, 4, "cannot sync", file);
	if (close(fd) < 0 && r >= 0)
		r = fail(e, 4, "cannot close", file);
	if (r >= 0 && rename(temp, file) < 0)
		r = fail(e, 4, "cannot rename to", file);
	if (r < 0)
		(void)unlink(temp);
	return r < 0 ? r : 0;
}

int
link_save(const char *file, const struct model *m, struct ace_shard s,
    const float *const *x, size_t nx, struct ace_error *e)
{
	char *target = realpath(file, NULL);	/* of a link, which stays */
	int r = replace(target != NULL ? target : file, m, s, x, nx, e);

	free(target);
	return r;
}

int
link_load(const char *file, const struct model *m, struct ace_shard *s,
    float *const *x, size_t nx, size_t least, struct ace_error *e)
{
	struct ace_reader *in = NULL;
	struct ace_shard other;
	int r = 0, fd = open(file, O_RDONLY | O_CLOEXEC);
	size_t i;

	if (fd < 0)
		return fail(e, 4, "cannot open", file);
	if ((in = ace_reader_new(fd, e)) == NULL)
		r = -e->code;
	for (i = 0; r >= 0 && i < nx; i++) {
		r = in_file(file, ace_read_shard(in, i == 0 ? s : &other, e), e);
		if (r == 0)
			break;
		if (r > 0)
			r = shard_get(in, file, m, NULL, x[i], e);
	}
	if (r >= 0 && i < least)
		r = fail(e, 3, i > 0 ? bare : "mismatch: found no model in", file);
	ace_reader_free(in);
	(void)close(fd);
	return r < 0 ? r : (int)i;
}
