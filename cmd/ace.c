/*
 * ace: one command for all programs. `ace inspect FILE` runs `ace-inspect FILE`: the
 * program of that name beside this one, if this one was called by path, or else in PATH. So any
 * other program in PATH that is called ace-NAME is a command, too.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/err.h"
#include "kern/kern.h"

/* Names and descriptions only: each program has its own options and --help. */
#define COMMAND(name, about) { name, "", about, NULL, NULL, 0 }
static const struct cli_command commands[] = {
	COMMAND("cloud", "Averages the devices of a run, in a folder"),
	COMMAND("edge", "Trains as a device of a run, beside your program"),
	COMMAND("add", "Lets a device into a run"),
	COMMAND("relay", "Averages devices near by, as one device of a cloud"),
	COMMAND("remove", "Takes a device out of a run"),
	COMMAND("watch", "Shows the progress of a run"),
	COMMAND("example", "Writes a training script to begin with"),
	COMMAND("import", "Makes a stream of gradient shards of tensor files"),
	COMMAND("expand", "Decodes to plain values, and adds the residual"),
	COMMAND("score", "Adds the statistics and importance of every group"),
	COMMAND("policy", "Decides how hard to compress and how often to send"),
	COMMAND("select", "Plans a codec for every group within a budget"),
	COMMAND("compress", "Codes as planned, and keeps what was lost"),
	COMMAND("step", "Runs five of these, expand to compress, in one process"),
	COMMAND("meter", "Passes bytes, and measures the link"),
	COMMAND("recv", "Receives shards into a spool, and answers"),
	COMMAND("ack", "Takes the answers into a device's state"),
	COMMAND("sign", "Signs shards, or passes those that are signed"),
	COMMAND("aggregate", "Computes the weighted mean or sum of many streams"),
	COMMAND("export", "Writes a shard of a stream as a tensor file"),
	COMMAND("inspect", "Lists, verifies, measures and compares"),
	COMMAND("cut", "Copies the chosen shards and tensors, byte for byte"),
	COMMAND("archive", "Puts shards of runs into archives, and takes them out"),
	COMMAND("diff", "Writes the patch that makes one model of another"),
	COMMAND("patch", "Makes the next model of a model with a patch"),
	COMMAND("status", "Shows the state of a spool or of a device"),
	COMMAND("advise", "Answers questions before a run with tables"),
	COMMAND("help", "Prints this text, or the --help of a command"),
	{ NULL, NULL, NULL, NULL, NULL, 0 }
};

/* Return 1 for commands of ace-cloud: `ace add' is `ace-cloud add'. */
static int
ace_is_clouds(const char *name)
{
	return strcmp(name, "add") == 0 || strcmp(name, "remove") == 0 ||
	    strcmp(name, "relay") == 0 || strcmp(name, "watch") == 0 ||
	    strcmp(name, "example") == 0;
}

/* Replace this process by the program of the command argv[0]. The words after it become its
 * arguments. A command of ace-cloud overwrites argv[-1]. */
static int
ace_run(const char *self, char **argv, struct err *e)
{
	static char cloud[] = "cloud";
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	const char *slash = strrchr(self, '/');
	size_t dir = slash != NULL ? (size_t)(slash - self) + 1 : 0;
	char path[4096];

	if (ace_is_clouds(argv[0]))
		*--argv = cloud;
	if (argv[0][0] == '\0' || argv[0][strspn(argv[0], letters)] != '\0' ||
	    dir + strlen(argv[0]) + sizeof("ace-") > sizeof(path))
		return err_set(e, ERR_USAGE, "'%s' is not a valid name of a command: "
		    "'ace --help' lists the commands", argv[0]);
	memcpy(path, self, dir);
	memcpy(path + dir, "ace-", 4);
	memcpy(path + dir + 4, argv[0], strlen(argv[0]) + 1);
	argv[0] = path + dir;
	if (dir > 0)
		(void)execv(path, argv);
	if (dir == 0 || errno == ENOENT)
		(void)execvp(path + dir, argv);
	if (errno == ENOENT)
		return err_set(e, ERR_USAGE, "no program '%s' beside ace or in PATH: install it, "
		    "or see 'ace --help' for the commands", path + dir);
	return err_set(e, ERR_SYS, "'%s': %s", path + dir, strerror(errno));
}

int
main(int argc, char **argv)
{
	static char self[] = "ace", help[] = "--help";
	char *usual[] = { self, help, NULL };
	struct cli c = {
		.prog = "ace",
		.usage = "COMMAND [arguments] | help [COMMAND]",
		.about = "Compresses gradients, delivers them and averages them: one "
		    "program for each command.",
		.examples = "ace inspect edge1.aceg\n"
		    "ace help compress\n",
		.commands = commands,
		.kernels = kern_name
	};
	struct err e = ERR_INIT;
	int asked = argc > 1 && strcmp(argv[1], "help") == 0, r;

	if (asked && argc > 2 && strcmp(argv[2], "ace") != 0) {
		/* accept the name of a command or of its program */
		char *words[] = { NULL, argv[2] +
		    (strncmp(argv[2], "ace-", 4) == 0 ? 4 : 0), help, NULL };

		r = ace_run(argv[0], words + 1, &e);
	} else if (asked) {
		r = cli_parse(&c, 2, usual, &e);
	} else if (argc < 2 || argv[1][0] == '-') {
		r = cli_command(&c, argc, argv, &e);
	} else {
		r = ace_run(argv[0], argv + 1, &e);
	}
	return cli_exit(&c, r, &e);
}
