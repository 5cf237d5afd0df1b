# ace: gradient shards through Unix pipes.  GNU make.
#
#   make            programs and library, in build/, on all processors (or -j)
#   make check      the quick half of the tests, some minutes on two cores
#   make check-long the longer tests: each damage, kill and power cut; gigabytes
#   make asan       make check and some of check-long, with sanitizers
#   make coverage   lines and branches that the tests reach, by folder of lib
#   make mutants    N random mistakes from SEED on, and those that no test notices;
#                   or the mistakes of FROM=tests/mutants-by-hand
#   make demo       train a model through the pipes
#   make demo-hosts the same over ssh, between six simulated hosts; as root
#   make sweep      the demo's learning rates
#   make bench      speeds, beside cat and peers; TOPICS="hops shards", LONG=1
#   make dynacomm   DynaComm's cuts on four networks: table and picture
#   make deco       time to a target loss over slow and changing links
#   make table1     seven methods of training, four edges, eight seeds (hours);
#                   SEEDS=1, LOCAL=1: examples/compare.sh
#   make frontier   the accuracy at compression ratios from 10 to 1000 (hours)
#   make robust     the accuracy of each rule under thirteen attacks
#   make table1-sweep  each method with other rates, batches, intervals (hours)
#                   these four continue where they were stopped; RESULTS=DIR
#   make claims     each figure of the README's results, with its runs
#   make pytorch    digits or text in PyTorch; needs torch, sklearn, npm
#   make fuzz       each fuzz target for FUZZ_TIME seconds; needs clang
#   make torture    KILLS kills at random places, from SEED on; then every FAULTS-th
#                   failing call and power cut
#   make counts     instructions, compared with tests/counts.tsv; WRITE=yes
#                   writes that file
#   make house      lines, options, circular includes, depth: now, limit and goal
#   make lint       style, layers, symbols, pages, shell
#   make install    PREFIX, DESTDIR, LIB    make uninstall, make clean
#   make deps       install missing packages, as check, demo and lint do, too;
#                   with DEPS=no those print the names of what they need
#   make dist       an archive of the sources of the last commit, or of REV, with
#                   the pages as HTML (make html); and recipes that fetch it from URL
#   make deb        packages for Debian
#   make wheel      for pip, without root; ARCH=aarch64     make sdist  its sources
#   make check-packages  make, install, run and remove all packages; as root
#   make release    all files of a release, made twice, signed with the SSH key KEY
#   make help       this text
#
# make prints one short line per file; V=1 prints the commands.
# CFLAGS, CPPFLAGS and LDFLAGS are yours: the Makefile adds nothing to them.  LDLIBS come last.

BUILD   ?= build
PREFIX  ?= /usr/local
CFLAGS  ?= -O2 -g
# Missing packages are installed only at a terminal, in CI or by make deps, but not in the
# build of a package; otherwise they are named.  PACKAGER is not empty in such a build; some
# variables of brew are always set.
PACKAGER = $(DEB_BUILD_ARCH)$(RPM_BUILD_ROOT)$(NIX_BUILD_TOP)$(CONDA_BUILD)$(filter-out \
           %_PREFIX %_CELLAR %_REPOSITORY,$(filter HOMEBREW_%,$(.VARIABLES)))
DEPS    ?= $(if $(filter deps,$(MAKECMDGOALS)),yes,$(if $(PACKAGER),no,$(if \
           $(CI),yes,$(shell { [ -t 0 ] || [ -t 2 ]; } && echo yes || echo no))))
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
# Targets that only build run in parallel: -j from the command line or the environment, or
# on all processors.  Other targets run one after the other.
ifeq ($(MAKELEVEL),0)
ifneq ($(filter-out all programs examples tools build-all install deps $(BUILD)/%,$(MAKECMDGOALS)),)
.NOTPARALLEL:
else ifeq ($(filter -j%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),)
MAKEFLAGS += -j$(JOBS)
endif
endif
FUZZ_TIME ?= 60
KILLS   ?= 5000
SEED    ?= 1
FAULTS  ?= 1
N       ?= 200
# options of prove: print the failed tests and their comments
PROVE   ?= --failures --comments
# start the longest tests first, so that the others run beside them
LONGEST = $(patsubst %,tests/cli/%.bats,ace-patch install hostile runner history servers \
	    pytorch-replay runs long-lived)
CLI     ?= $(LONGEST) $(filter-out $(LONGEST),$(sort $(wildcard tests/cli/*.bats)))
comma   = ,
# $(call q,TEXT): quote TEXT for the shell.  Recipes quote every path with it, since the path
# of this folder, and paths from the user, may contain any character.
q       = '$(subst ','\'',$(1))'
# BUILD has one spelling, because dependency files contain it.  It has no special characters,
# because names of targets begin with it, which make cannot quote.
override BUILD := $(patsubst ./%,%,$(patsubst //%,%,$(subst //$(CURDIR)/,,//$(BUILD))))
ODD    := : % \ ' " $$ ~ * ? [ ] ( ) & | ; < > ` \#
ifneq ($(word 2,$(BUILD))$(strip $(foreach c,$(ODD),$(findstring $c,$(BUILD)))),)
$(error BUILD=$(BUILD): make cannot build into a folder with a blank or a special character in \
its name; name one without, relative to $(CURDIR) or absolute)
endif
# the absolute path of BUILD
AT      = $(if $(filter /%,$(BUILD)),$(BUILD),$(CURDIR)/$(BUILD))
# $(call say,CC): put before a command, to print a short line instead of the command
say     = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),$(if $(V),,@),@printf '  %-4s %s\n' $(1) '$(@:$(BUILD)/%=%)';)

# $(call once,NAME,COMMAND): run COMMAND at the first use of NAME, after make deps
once = $(eval $(1) := $$(shell $(2)))$($(1))
PKGS        = libarchive liblz4 libxxhash jansson libsodium
# the versions that have all functions that we call
PKGS_ENOUGH = $(PKGS) 'libxxhash >= 0.8.0' 'libsodium >= 1.0.14'
PKG_CFLAGS  = $(call once,PKG_CFLAGS,pkg-config --cflags $(PKGS))
PKG_LIBS    = $(call once,PKG_LIBS,pkg-config --libs $(PKGS))
ACE_LIBS    = $(call once,ACE_LIBS,pkg-config --libs liblz4 libxxhash)
BLAS_CFLAGS = $(call once,BLAS_CFLAGS,.ci/deps blas --cflags)
BLAS_LIBS   = $(call once,BLAS_LIBS,.ci/deps blas --libs)

# macros that the compiler or the user's flags define
MACROS      = $(call once,MACROS,$(CC) -std=c11 $(CPPFLAGS) $(CFLAGS) -dM -E -xc /dev/null | \
              sed -n 's/.define \(__FLT_EVAL_METHOD__\) /\1=/p; s/.define \(_FORTIFY_SOURCE\|__SSP_*[A-Z_]*\) .*/\1/p')

# s390x (1) and x87 (2) need these flags to calculate float in 32 bits
FLOAT_1     = -fexcess-precision=fast
FLOAT_2     = -msse2 -mfpmath=sse
FLOAT       = $(FLOAT_$(patsubst __FLT_EVAL_METHOD__=%,%,$(filter __FLT_EVAL_METHOD__=%,$(MACROS))))

# Flags for hardening; the compiler's only with -O and without sanitizers.  A flag is added only
# if neither the compiler nor the user sets it, on or off: _FORTIFY_SOURCE=3 stays 3.
OPTIMIZED   = $(if $(findstring -fsanitize,$(CFLAGS)),,$(filter-out -O0,$(filter -O%,$(CFLAGS))))
SAID        = $(MACROS) $(CPPFLAGS) $(CFLAGS)
HARD        = $(if $(OPTIMIZED),$(if $(findstring __SSP,$(SAID))$(findstring stack-protector,$(SAID)),,-fstack-protector-strong) \
              $(if $(findstring _FORTIFY_SOURCE,$(SAID)),,-D_FORTIFY_SOURCE=2))
LINKED      = $(CFLAGS) $(LDFLAGS)
HARD_Z      = $(if $(findstring relro,$(LINKED)),,relro) \
              $(if $(strip $(foreach z,z$(comma)now z$(comma)lazy,$(findstring $z,$(LINKED)) $(findstring $(subst $(comma), ,$z),$(LINKED)))),,now)
# only if the linker accepts them
HARD_TRIED  = $(call once,HARD_TRIED,echo 'int main(void) { return 0; }' | $(CC) -xc - -Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now -o /dev/null 2>/dev/null && echo yes)
HARD_LINK   = $(if $(HARD_TRIED),$(HARD_Z:%=-Wl$(comma)-z$(comma)%))

# -Wno-unused-parameter: functions in a table have the same parameters, used or not
ALL_CPPFLAGS = -D_GNU_SOURCE -Ilib $(PKG_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 -fPIC -fvisibility=hidden -ffp-contract=off $(FLOAT) \
               $(call q,-ffile-prefix-map=$(CURDIR)=.) \
               -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
               -Wmissing-prototypes -Wvla -Wno-unused-parameter $(HARD) $(CFLAGS)
LINK         = $(CC) $(ALL_CFLAGS) -pthread $(HARD_LINK) $(LDFLAGS) -o $@
SANITIZE     = -O1 -g -DACE_SANITIZED -fno-omit-frame-pointer -fno-sanitize-recover=all \
               -fsanitize=address,undefined

objs   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)))
PROGS  = $(patsubst cmd/%.c,$(BUILD)/%,$(wildcard cmd/*.c))
UNITS  = $(patsubst tests/%.c,$(BUILD)/%,$(wildcard tests/unit/*/test_*.c))
TOOLS  = $(patsubst %.c,$(BUILD)/%,$(filter-out tests/damage.c \
           tests/refuse.c tests/clip.c tests/intruder.c,\
           $(wildcard tests/*.c)))
DAMAGE = $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/damage.c tests/refuse.c))
CLIP   = $(patsubst tests/%.c,$(BUILD)/tests/%.so,$(wildcard tests/clip.c \
	   tests/intruder.c))
# files with tests of the long half, by a tag in .bats files, by ACE_DAMAGE in C
SLOW   = $(DAMAGE) $(BUILD)/unit/codec/test_codec $(shell grep -lE 'bats (file|test)_tags=long' tests/cli/*.bats)
ALONE  = $(patsubst %.c,$(BUILD)/%,$(wildcard examples/scale.c examples/attack.c))
TRAINC = $(filter-out examples/scale.c examples/attack.c,$(wildcard examples/*.c))
# not TRAIN: that is a variable of the demo
TRAINER = $(if $(TRAINC),$(BUILD)/examples/train)
FUZZ   = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
LIBALL = $(BUILD)/liball.a
LIBS   = $(BUILD)/libaceg.a $(BUILD)/libaceg.so.0

all: $(PROGS) $(LIBS)
programs: $(PROGS)

# ---- objects; changed flags rebuild ----

X86 = $(filter x86_64% amd64% i%86-%,$(call once,MACHINE,$(CC) -dumpmachine))
$(BUILD)/lib/kern/kern_avx2.o: ISA = $(if $(X86),-mavx2 -mf16c)
$(BUILD)/lib/kern/kern_avx512.o: ISA = $(if $(X86),-mavx512f -mavx512bw -mavx512vl -mavx512dq -mbmi2)
# files with loops that the compiler vectorises
VECTORS = $(if $(OPTIMIZED),-O3)
$(addprefix $(BUILD)/lib/,base/rng.o $(addprefix codec/,exact.o exact_given.o qsgd.o subset.o)): ISA = $(VECTORS)
$(BUILD)/examples/%.o: ISA = $(BLAS_CFLAGS)
# files with vector types; neither flag changes a value
$(BUILD)/examples/train_%.o: ISA = $(BLAS_CFLAGS) -O3 -fno-trapping-math

$(BUILD)/tests/emulate.o: ISA = -O3

COMPILE = $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ISA) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE)

# programs as functions, for tests/damage.c and refuse.c
$(BUILD)/inside/%.o: cmd/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(COMPILE) -Dmain=$(subst -,_,$*)_main -Wno-missing-prototypes

# deps first, if both are goals
$(BUILD)/flags: needed | $(filter deps,$(MAKECMDGOALS))
	@mkdir -p $(@D)
	@printf '%s\n' $(call q,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS)) | cmp -s - $@ || \
	 printf '%s\n' $(call q,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS)) >$@

needed: | $(filter deps,$(MAKECMDGOALS))
	@{ command -v $(firstword $(CC)) && pkg-config --exists $(PKGS_ENOUGH); } >/dev/null 2>&1 || \
	 .ci/deps -n build
	@theirs=$$(mkdir -p $(call q,$(BUILD)) 2>&1 && find $(call q,$(BUILD)) ! -type l ! -user $$(id -u) \
	 ! -writable -printf '%p belongs to %u' -quit 2>/dev/null); [ -z "$$theirs" ] || \
	 { echo "$$theirs: build elsewhere (make BUILD=DIR), or own it (chown -R)" >&2; exit 2; }

# ---- libraries: liball for our programs, libaceg for others, which exports only ace_* ----

$(LIBALL): $(call objs,lib/*.c lib/*/*.c)
	@rm -f $@
	$(call say,AR)$(AR) qcs $@ $^

# libaceg has the format, without command line and archives
PUBLIC = $(filter-out $(addprefix %/base/,arc.o cli.o pool.o sandbox.o),$(call objs,$(addsuffix *.c,lib/ $(addprefix lib/,format/ codec/ kern/ base/))))

$(BUILD)/libaceg.a: $(PUBLIC)
	$(call say,LD)$(LD) -r -o $(BUILD)/libaceg.o $^
	@objcopy --localize-hidden $(BUILD)/libaceg.o
	@rm -f $@
	@$(AR) qcs $@ $(BUILD)/libaceg.o

# its symbols have a version, so that a later library may have an old and a new function of
# one name, and that symbols of another library, libACE, are not taken for them
$(BUILD)/libaceg.so.0: $(PUBLIC) lib/aceg.map
	$(call say,LD)$(LINK) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/aceg.map $(PUBLIC) $(ACE_LIBS) -lm $(LDLIBS)

# ---- programs, tests, examples ----

$(PROGS): $(BUILD)/%: $(BUILD)/cmd/%.o $(LIBALL)
	$(call say,LD)$(LINK) $^ -Wl,--as-needed $(PKG_LIBS) -lm $(LDLIBS)

$(UNITS): $(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(LIBALL)
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) $^ $(PKG_LIBS) -lm $(LDLIBS)

# unit tests of the trainer
TRAIN_UNITS = $(filter $(BUILD)/unit/examples/%,$(UNITS))
$(TRAIN_UNITS): $(BUILD)/unit/examples/test_%: $(BUILD)/examples/%.o $(BUILD)/examples/train_model.o
$(TRAIN_UNITS): LDLIBS += $(BLAS_LIBS)

$(BUILD)/tests/bench-patches: $(patsubst %,$(BUILD)/examples/train_%.o,data model optim muon)
$(BUILD)/tests/bench-patches: LDLIBS += $(BLAS_LIBS)

$(TOOLS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIBALL)
	$(call say,LD)$(LINK) $^ $(PKG_LIBS) -lm $(LDLIBS)

# redirect the calls of our objects to tests/refuse.c
$(BUILD)/tests/refuse: LDLIBS += $(shell sed -n 's/^WRAP.*[ *]\([a-z0-9]*\), REFUSE.*/-Wl,--wrap=\1/p; s/^__wrap_\([a-z_]*\)\W.*/-Wl,--wrap=\1/p' tests/refuse.c)

$(DAMAGE): $(BUILD)/%: $(BUILD)/%.o $(PROGS:$(BUILD)/%=$(BUILD)/inside/%.o) $(LIBALL)
	$(call say,LD)$(LINK) $^ $(PKG_LIBS) -lm $(LDLIBS)

$(CLIP): $(BUILD)/tests/%.so: tests/%.c tests/clip.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -D_GNU_SOURCE -std=c11 -O1 -fPIC -shared -o $@ $<

$(ALONE): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/libaceg.a
	$(call say,LD)$(LINK) $^ $(ACE_LIBS) -lm $(LDLIBS)

$(TRAINER): $(patsubst %.c,$(BUILD)/%.o,$(TRAINC)) $(BUILD)/libaceg.a
	$(call say,LD)$(LINK) -pthread $^ $(ACE_LIBS) $(BLAS_LIBS) -lm $(LDLIBS)

examples: $(ALONE) $(TRAINER)

tools: $(TOOLS) $(CLIP)

build-all: all examples $(UNITS) $(TOOLS) $(DAMAGE) $(CLIP) $(FUZZ:=.o)

$(FUZZ): $(BUILD)/%: $(BUILD)/%.o $(LIBALL)
	$(call say,LD)$(LINK) -fsanitize=fuzzer $^ $(PKG_LIBS) -lm $(LDLIBS)

# ---- targets for users; `deps' and `needs' first install what a target needs ----

AGAIN = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

needs = @.ci/deps $(if $(filter no,$(DEPS)),-n) $(1)

deps:
	$(call needs,check)

deps-demo:
	$(call needs,demo)

check: deps
	@+$(AGAIN) run-check

check-long: deps
	@+$(AGAIN) run-check-long

# CLI: the files of tests/cli to run.  The quick half tries every 40th damage.  Two tests per
# processor, since many wait
PROVED = BUILD=$(call q,$(AT)) CC=$(call q,$(CC)) tests/prove -j$(shell expr 2 '*' $(JOBS)) $(PROVE)

run-check: build-all
	TOOK=$(call q,$(AT)/check.seconds) HALF=$${HALF:-quick} ACE_DAMAGE=$${ACE_DAMAGE:-40} $(PROVED) \
	 $(DAMAGE) $(UNITS) $(CLI)

run-check-long: build-all
	HALF=long $(PROVED) $(SLOW)

asan: deps
	@+ASAN_OPTIONS=exitcode=99:allocator_may_return_null=1 ACE_SANITIZED=1 \
	 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1 HALF=asan \
	 $(AGAIN) run-check BUILD=$(BUILD)/asan CFLAGS=$(call q,$(SANITIZE))

COUNTED = $(BUILD)/coverage/reached

# A failure here means nothing, since counting makes programs slow and large, and lets them
# write files.  They write their counts in exit, so _exit of children becomes exit.
coverage: deps
	@rm -rf $(COUNTED)
	@mkdir -p $(COUNTED)
	@+-REACHED=$(call q,$(AT)/coverage/reached) HALF=$${HALF:-all} ACE_DAMAGE=$${ACE_DAMAGE:-4} $(AGAIN) run-check \
	 BUILD=$(BUILD)/coverage CFLAGS='-O0 -g --coverage' CPPFLAGS='-DACE_NO_SANDBOX -D_exit=exit'
	@BUILD=$(BUILD)/coverage tests/coverage

# make coverage writes this list of the tests that reach each line
$(BUILD)/coverage/map: $(wildcard lib/*.c lib/*/*.[ch] cmd/*.c)
	-+$(MAKE) coverage

mutants: deps $(BUILD)/coverage/map
	BUILD=$(call q,$(AT)) tests/mutants -n $(N) -s $(SEED) $(if $(FROM),-f $(call q,$(FROM)))

fuzz:
	@+$(AGAIN) run-fuzz BUILD=$(BUILD)/fuzz CC=clang \
	 CFLAGS='-DALLOC_MOST=100000000 $(subst -fsanitize=,-fsanitize=fuzzer-no-link$(comma),$(SANITIZE))'

# libarchive allocates what a header claims without using it: limit an allocation, as on a
# small machine.  Our own code has ALLOC_MOST (lib/base/alloc.c).
run-fuzz: $(FUZZ)
	for f in $(FUZZ); do mkdir -p $$f.corpus; \
	 ASAN_OPTIONS=quarantine_size_mb=16:max_allocation_size_mb=200:allocator_may_return_null=1 \
	 $$f -max_total_time=$(FUZZ_TIME) -timeout=5 -rss_limit_mb=256 -print_final_stats=1 \
	 -artifact_prefix=$$f- $$f.corpus tests/golden tests/fuzz/seeds || exit 1; done

torture: deps
	@+$(AGAIN) run-torture

run-torture: all $(TOOLS) $(CLIP)
	BUILD=$(call q,$(AT)) $(BUILD)/tests/torture -n $(KILLS) -s $(SEED)
	BUILD=$(call q,$(AT)) $(BUILD)/tests/fault -e $(FAULTS)
	BUILD=$(call q,$(AT)) $(BUILD)/tests/power -e $(FAULTS)

# let one make at a time build in this tree
ONE = $(if $(shell command -v flock 2>/dev/null),flock -n $(call q,$(AT)/lock) true || \
 echo 'another make builds here: waiting'; flock $(call q,$(AT)/lock))

demo sweep: deps-demo needed
	@+$(ONE) $(AGAIN) ready
	@+$(AGAIN) run-$@

ready: all examples
	@:

run-demo run-sweep: all examples
	BUILD=$(call q,$(AT)) examples/demo.sh $(if $(filter %sweep,$@),--sweep)

demo-hosts: needed
	$(call needs,hosts)
	@+$(ONE) $(AGAIN) ready
	@+$(AGAIN) run-demo-hosts

run-demo-hosts: all examples
	BUILD=$(call q,$(AT)) examples/demo-hosts.sh

claims:
	@examples/claims.sh

bench: deps
	@+$(AGAIN) run-bench

run-bench: all examples $(TOOLS)
	BUILD=$(call q,$(AT)) tests/bench $(TOPICS)

counts:
	$(call needs,counts)
	@+$(AGAIN) run-counts

run-counts: $(PROGS) $(BUILD)/tests/counts $(BUILD)/tests/mkshards
	@BUILD=$(call q,$(AT)) CC=$(call q,$(CC)) tests/counts $(if $(WRITE),--write)

# ---- experiments: examples/NAME.sh, tables and pictures ----

RESULTS    ?= $(BUILD)/results
EXPERIMENTS = dynacomm deco table1 frontier table1-sweep robust

$(EXPERIMENTS): deps
	$(call needs,plot)
	@+$(AGAIN) run-$@

$(EXPERIMENTS:%=run-%): run-%: all examples $(TOOLS)
	BUILD=$(call q,$(AT)) examples/$*.sh $(call q,$(RESULTS))

pytorch: all
	BUILD=$(call q,$(AT)) examples/pytorch.sh $(call q,$(RESULTS))

lint:
	$(call needs,lint)
	@+$(AGAIN) all examples $(TOOLS)
	BUILD=$(call q,$(AT)) CC=$(call q,$(CC)) tests/lint

house: $(PROGS) $(BUILD)/tests/mkshards
	@BUILD=$(call q,$(AT)) tests/house

# ---- packages, built under $(BUILD)/packages ----

PACKAGES ?= $(AT)/packages
REV     ?= HEAD
# the address of releases, for recipes that fetch them
URL     ?= https://ace.example/releases

html:
	$(call needs,html)
	@.packaging/html $(BUILD)/html

dist:
	$(if $(wildcard man/html),,$(call needs,dist))
	@URL=$(call q,$(URL)) .packaging/dist $(call q,$(PACKAGES)) $(call q,$(REV))

# KEY: the SSH key that signs
release:
	$(call needs,release)
	@URL=$(call q,$(URL)) .packaging/release $(call q,$(KEY)) $(BUILD)/release

deb:
	$(call needs,deb)
	.packaging/deb $(call q,$(PACKAGES))

# Static programs with musl, which run on any Linux.  ARCH is this machine's, or aarch64, for
# which Debian has a compiler.
ARCH     ?= $(shell uname -m)
FOREIGN   = $(filter-out -$(shell uname -m),-$(ARCH))
# relative if BUILD is: then no compiler flag contains the path of this folder
MUSL      = $(BUILD)/musl$(FOREIGN)
HARDEN    = -O2 -g -fstack-protector-strong -fstack-clash-protection
MUSL_MAKE = PKG_CONFIG_LIBDIR=$(call q,$(MUSL)/libs/lib/pkgconfig) $(AGAIN) CC=$(call q,$(MUSL)/libs/cc) \
            AR=$(call q,$(MUSL)/libs/ar) CFLAGS=$(call q,$(HARDEN)) BUILD=$(call q,$(MUSL)/ace)
wheel:
	$(call needs,musl$(FOREIGN))
	.packaging/musl $(call q,$(MUSL)) $(call q,$(ARCH))
	@+$(MUSL_MAKE) programs LDFLAGS='-static -Wl,-z,relro,-z,now'
	.packaging/backend.py wheel $(call q,$(MUSL)) $(call q,$(PACKAGES)) $(call q,$(ARCH))

sdist:
	$(if $(wildcard man/html),,$(call needs,sdist))
	.packaging/backend.py sdist $(call q,$(PACKAGES))

check-packages: all
	$(call needs,packages)
	BUILD=$(call q,$(AT)) CC=$(call q,$(CC)) CFLAGS=$(call q,$(CFLAGS)) MAKE=$(call q,$(MAKE)) \
	 .packaging/check $(call q,$(PACKAGES))

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

# ---- install ----

VERSION = $(shell sed -n 's/.*VERSION "\(.*\)"/\1/p' lib/base/version.h)
# the folder of libraries below PREFIX, for example lib64
LIB     = lib
COMPL   = bash-completion/completions/ace zsh/site-functions/_ace \
          fish/vendor_completions.d/ace.fish
# bash and fish look for a file with the program's name
NAMES   = $(foreach p,$(filter-out ace,$(notdir $(PROGS))),bash-completion/completions/$p \
          fish/vendor_completions.d/$p.fish)
# folders that uninstall removes if they are empty
FOLDERS = $(LIB)/pkgconfig lib/systemd/user lib/systemd $(addprefix share/,ace/trainers ace/patches/__pycache__ \
          ace/pytorch/__pycache__ \
          ace/pytorch/ace_shards/__pycache__ ace/pytorch/ace_shards ace/hosts ace/patches ace/pytorch ace mime/packages mime \
          man/man1 man/man5 man/man7 bash-completion/completions bash-completion \
          zsh/site-functions zsh fish/vendor_completions.d fish)

UNITS_OF_SYSTEMD = ace-cloud@.service ace-edge@.service

# $(call sedded,TEXT): quote TEXT as the replacement in sed's s|...|...|
sedded  = $(subst |,\|,$(subst &,\&,$(subst \,\\,$(1))))

# TO may have spaces; folders and files are readable for everybody, whatever the umask
install uninstall: export TO := $(DESTDIR)$(PREFIX)

install: all
	umask 022; mkdir -p $(foreach d,bin include $(LIB)/pkgconfig lib/systemd/user \
	 $(addprefix share/,man/man1 man/man5 man/man7 ace/trainers ace/hosts ace/patches \
	 ace/pytorch/ace_shards mime/packages $(dir $(COMPL))),"$$TO/$d")
	install -m 755 $(PROGS) "$$TO/bin/"
	install -m 644 lib/aceg.h "$$TO/include/"
	install -m 644 $(BUILD)/libaceg.a "$$TO/$(LIB)/"
	install -m 755 $(BUILD)/libaceg.so.0 "$$TO/$(LIB)/"
	ln -sf libaceg.so.0 "$$TO/$(LIB)/libaceg.so"
	umask 022; sed $(call q,s|@PREFIX@|$(call sedded,$(PREFIX))|; s|@LIB@|$(call sedded,$(LIB))|; s|@VERSION@|$(VERSION)|) \
	 lib/libaceg.pc.in >"$$TO/$(LIB)/pkgconfig/libaceg.pc"
	for f in man/*.[157]; do \
	 install -m 644 $$f "$$TO/share/man/man$${f##*.}/" || exit 1; done
	install -m 644 man/ace.magic examples/plot.gnuplot examples/scale.c "$$TO/share/ace/"
	install -m 644 man/ace.xml "$$TO/share/mime/packages/"
	install -m 644 $(filter-out %.sh,$(wildcard examples/hosts/*)) "$$TO/share/ace/hosts/"
	install -m 755 examples/hosts/*.sh "$$TO/share/ace/hosts/"
	install -m 644 examples/trainers/* "$$TO/share/ace/trainers/"
	umask 022; for f in $(UNITS_OF_SYSTEMD); do \
	 sed $(call q,s|@PREFIX@|$(call sedded,$(PREFIX))|) "examples/systemd/$$f" \
	 >"$$TO/lib/systemd/user/$$f" || exit 1; done
	install -m 644 examples/patches/*.py "$$TO/share/ace/patches/"
	install -m 755 examples/patches/*.sh "$$TO/share/ace/patches/"
	install -m 644 examples/pytorch/*.py "$$TO/share/ace/pytorch/"
	install -m 644 examples/pytorch/ace_shards/*.py "$$TO/share/ace/pytorch/ace_shards/"
	for f in $(COMPL); do case $$f in \
	 */ace) s=ace.bash ;; *) s=$${f##*/} ;; esac; \
	 install -m 644 completions/$$s "$$TO/share/$$f" || exit 1; done
	for f in $(NAMES); do case $$f in *.fish) s=ace.fish ;; *) s=ace ;; esac; \
	 ln -sf $$s "$$TO/share/$$f" || exit 1; done
	@[ -n $(call q,$(DESTDIR)) ] || ! command -v fish >/dev/null || \
	 case $(call q,:$(XDG_DATA_DIRS):/usr/share:) in *$(call q,:$(PREFIX)/share:)*) ;; *) \
	 echo fish completes them where XDG_DATA_DIRS has $(call q,$(PREFIX)/share) in it ;; esac

uninstall:
	rm -f $(foreach f,$(PROGS:$(BUILD)/%=bin/%) include/aceg.h \
	 $(addprefix $(LIB)/,libaceg.a libaceg.so libaceg.so.0 pkgconfig/libaceg.pc) \
	 $(foreach f,$(wildcard man/*.[157]),share/man/man$(subst .,,$(suffix $f))/$(notdir $f)) \
	 $(addprefix share/,ace/ace.magic ace/plot.gnuplot ace/scale.c mime/packages/ace.xml $(COMPL) $(NAMES)) \
	 $(UNITS_OF_SYSTEMD:%=lib/systemd/user/%) \
	 $(patsubst examples/%,share/ace/%,$(wildcard examples/trainers/* examples/hosts/* examples/patches/* \
	  examples/pytorch/*.py examples/pytorch/*/*.py)),"$$TO/$f")
	for f in $(patsubst examples/%.py,%,$(wildcard examples/patches/*.py examples/pytorch/*.py \
	 examples/pytorch/*/*.py)); do \
	 rm -f "$$TO/share/ace/$${f%/*}/__pycache__/$${f##*/}".*.pyc; done
	for d in $(FOLDERS); do rmdir "$$TO/$$d" 2>/dev/null || :; done

clean:
	rm -rf $(BUILD)

.PHONY: all programs html dist release deb wheel sdist check-packages help build-all fuzz run-fuzz torture run-torture examples ready needed deps deps-demo check \
	run-check check-long run-check-long tools coverage mutants asan demo demo-hosts sweep claims bench counts run-counts run-demo run-demo-hosts run-sweep run-bench house \
	$(EXPERIMENTS) $(EXPERIMENTS:%=run-%) pytorch lint install uninstall clean
.SECONDARY:
# but not the dependencies of other builds below BUILD, which may be running
-include $(shell find $(addprefix $(BUILD)/,cmd examples inside lib tests) -name '*.d' -type f 2>/dev/null)
