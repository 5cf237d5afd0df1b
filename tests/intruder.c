/*
 * intruder: try what an attacker's code could do in one of our programs.  Preload it; when the
 * program ends, it makes every attempt and prints one line each on standard error:
 * "intruder: WHAT yes" or "no".
 *
 *   ACE_INTRUDER_READ   a file to read, and of which to change mode, times and attributes
 *   ACE_INTRUDER_WRITE  a file to make
 *   ACE_INTRUDER_CHANGE a file to open for writing and to truncate
 *   ACE_INTRUDER_FOLDER a folder to make
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int inside;	/* not 0: attempts have begun; processes started by them make none */

static void
says(const char *what, int done)
{
	char line[80];
	int n = snprintf(line, sizeof(line), "intruder: %s %s\n", what,
	    done ? "yes" : "no");

	if (n > 0 && write(2, line, (size_t)n) < 0)
		_exit(99);
}

static int
reads(void)
{
	const char *path = getenv("ACE_INTRUDER_READ");
	int fd = path != NULL ? open(path, O_RDONLY) : -1;
	char c;

	return fd >= 0 && read(fd, &c, 1) == 1;
}

static int
writes(void)
{
	const char *path = getenv("ACE_INTRUDER_WRITE");
	int fd = path != NULL ? open(path, O_WRONLY | O_CREAT, 0600) : -1;

	return fd >= 0 && write(fd, "x", 1) == 1;
}

static int
changes(void)
{
	const char *path = getenv("ACE_INTRUDER_CHANGE");
	int fd = path != NULL ? open(path, O_WRONLY) : -1;

	return fd >= 0;
}

static int
folders(void)
{
	const char *path = getenv("ACE_INTRUDER_FOLDER");

	return path != NULL && mkdir(path, 0700) == 0;
}

static int
listens(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

static int
starts(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		(void)unsetenv("LD_PRELOAD");
		(void)execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Send a datagram, which needs no connection. */
static int
sends(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons(9);
	return fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&a,
	    sizeof(a)) == 1;
}

static int
signals(void)
{
	return kill(getppid(), 0) == 0;
}

/* Try the processor's other ways to call the kernel, which number the calls differently. Any
 * result but EPERM or, for the first way, a fault means that they are open. */
#ifdef __x86_64__
static sigjmp_buf no_such_way;

static void
faults(int sig)
{
	siglongjmp(no_such_way, sig);
}

static int
detours(void)
{
	void (*was)(int) = signal(SIGSEGV, faults);
	volatile long r = -EPERM;
	long nr = 20;	/* getpid in the older numbering */

	if (sigsetjmp(no_such_way, 1) == 0) {
		__asm__ volatile("int $0x80" : "+a"(nr) : : "memory", "r8",
		    "r9", "r10", "r11");
		r = nr;
	}
	(void)signal(SIGSEGV, was);
	return r != -EPERM ||
	    syscall(0x40000000 + SYS_getpid) >= 0 || errno != EPERM;
}
#else
static int
detours(void)
{
	return 0;
}
#endif

/* Return 1 when a call reached the kernel: it succeeded, or failed with another
 * error than EPERM. */
static int
passes(long r)
{
	return r >= 0 || errno != EPERM;
}

/* Try the two ioctls that type into a terminal, here on a pipe. */
static int
types(void)
{
	int fd[2], r;

	if (pipe(fd) < 0)
		return 1;
	r = passes(ioctl(fd[0], TIOCSTI, "x"));
	return passes(ioctl(fd[0], TIOCLINUX, "x")) || r;
}

static int
forks(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

/* Change a limit of the parent (to our own, which is the same), or read it. */
static int
limits(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_CPU, &l) < 0 ||
	    passes(prlimit(getppid(), RLIMIT_CPU, &l, NULL)) ||
	    passes(prlimit(getppid(), RLIMIT_CPU, NULL, &l));
}

static int
modes(void)
{
	const char *path = getenv("ACE_INTRUDER_READ");

	return path != NULL && (chmod(path, 0666) == 0 ||
	    fchmodat(AT_FDCWD, path, 0666, 0) == 0 || passes(fchmod(0, 0600)));
}

static int
times(void)
{
	const char *path = getenv("ACE_INTRUDER_READ");

	return path != NULL && utimensat(AT_FDCWD, path, NULL, 0) == 0;
}

static int
attributes(void)
{
	const char *path = getenv("ACE_INTRUDER_READ");

	return path != NULL && passes(setxattr(path, "user.x", "x", 1, 0));
}

static int
shares(void)
{
	int id = shmget(IPC_PRIVATE, 4096, 0600), q = msgget(IPC_PRIVATE, 0600);

	if (id >= 0)
		(void)shmctl(id, IPC_RMID, NULL);
	if (q >= 0)
		(void)msgctl(q, IPC_RMID, NULL);
	return id >= 0 || q >= 0;
}

/* Change the scheduling of the parent. */
static int
schedules(void)
{
	struct sched_param p = { 0 };
	cpu_set_t all;

	(void)sched_getaffinity(0, sizeof(all), &all);
	return passes(setpriority(PRIO_PROCESS, (id_t)getppid(), 19)) ||
	    passes(sched_setaffinity(getppid(), sizeof(all), &all)) ||
	    passes(sched_setscheduler(getppid(), SCHED_OTHER, &p)) ||
	    passes(syscall(SYS_ioprio_set, 1, getppid(), 0));
}

/* Make a namespace in which the process is root. */
static int
worlds(void)
{
	long r = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (r == 0)
		_exit(0);
	return passes(r) || passes(unshare(CLONE_NEWUSER));
}

/* Name the parent as the process that the kernel signals when input arrives. */
static int
owns(void)
{
	int fd[2];

	return pipe(fd) < 0 || passes(fcntl(fd[0], F_SETOWN, getppid()));
}

/* Try calls that could erase what was printed: standard error may be a log file. */
static int
erases(void)
{
	int copy;

	if (passes(fcntl(2, F_SETFL, 0)) || passes(lseek(2, 0, SEEK_CUR)) ||
	    passes(pwrite(2, "", 0, 0)) || passes(ftruncate(2, 0)))
		return 1;
	copy = dup(2);
	return copy >= 0 || passes(fcntl(2, F_DUPFD, 20)) || passes(dup2(2, 20)) ||
	    passes(dup3(2, 21, 0));
}

/* Make a thread in a namespace of its own, which needs no new process. */
#ifdef __x86_64__
static int
threads(void)
{
	static char stack[4096] __attribute__((aligned(16)));
	const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
	    CLONE_THREAD | CLONE_SYSVSEM | CLONE_NEWUTS;
	register long top __asm__("rsi") = (long)(stack + sizeof(stack));
	long r = SYS_clone;

	/* the thread ends immediately, since it has no stack to return to */
	__asm__ volatile("xor %%edx, %%edx\n\txor %%r10d, %%r10d\n\t"
	    "xor %%r8d, %%r8d\n\tsyscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\t"
	    "mov %[end], %%eax\n\txor %%edi, %%edi\n\tsyscall\n1:"
	    : "+a"(r), "+r"(top) : "D"(flags), [end] "i"(SYS_exit)
	    : "rcx", "rdx", "r8", "r10", "r11", "memory");
	return r != -EPERM;
}
#else
static int
threads(void)
{
	return 0;
}
#endif

/* Truncate a file: by opening it read-only with O_TRUNC, or by its path. */
static int
empties(void)
{
	const char *path = getenv("ACE_INTRUDER_CHANGE");
	int fd = path != NULL ? open(path, O_RDONLY | O_TRUNC) : -1;

	return fd >= 0 || (path != NULL && truncate(path, 0) == 0);
}

__attribute__((destructor)) static void
intrude(void)
{
	if (inside++ != 0)
		return;
	says("reads", reads());
	says("writes", writes());
	says("changes", changes());
	says("folders", folders());
	says("listens", listens());
	says("sends", sends());
	says("starts", starts());
	says("signals", signals());
	says("detours", detours());
	says("types", types());
	says("forks", forks());
	says("limits", limits());
	says("modes", modes());
	says("times", times());
	says("attributes", attributes());
	says("shares", shares());
	says("schedules", schedules());
	says("worlds", worlds());
	says("owns", owns());
	says("empties", empties());
	says("threads", threads());
	says("erases", erases());
}

/* Make the attempts also in a child of our program, which ends by _exit. */
void
_exit(int status)
{
	intrude();
	for (;;)
		(void)syscall(SYS_exit_group, status);
}
