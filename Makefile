# ace: gradient shards through Unix pipes.  GNU make.
#
#   make            programs and library, under build/
#   make check      all tests            make asan     the same, sanitized
#   make demo       train a model through the pipes
#   make lint       style, layers, symbols, pages, shell
#   make install    PREFIX, DESTDIR      make clean

BUILD   ?= build
PREFIX  ?= /usr/local
CFLAGS  ?= -O2 -g
PKGS     = libarchive liblz4 libxxhash jansson

ALL_CPPFLAGS = -D_GNU_SOURCE -Ilib $(shell pkg-config --cflags $(PKGS)) $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 -fPIC -fvisibility=hidden -ffp-contract=off \
               -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
               -Wmissing-prototypes -Wvla $(CFLAGS)
ALL_LDLIBS   = $(shell pkg-config --libs $(PKGS)) -lm $(LDLIBS)

LIBSRC = $(wildcard lib/*.c lib/*/*.c)
LIBOBJ = $(LIBSRC:%.c=$(BUILD)/%.o)
PROGS  = $(patsubst cmd/%.c,$(BUILD)/%,$(wildcard cmd/ace-*.c))
UNITS  = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*/test_*.c))
LIB    = $(BUILD)/libace_all.a

all: $(PROGS)

$(BUILD)/lib/kern/kern_avx2.o: ISA = -mavx2 -mf16c
$(BUILD)/lib/kern/kern_avx512.o: ISA = -mavx512f -mavx512bw -mavx512vl -mavx512dq

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ISA) -MMD -MP -c -o $@ $<

$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS)' | cmp -s - $@ || \
	 echo '$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS)' >$@

$(LIB): $(LIBOBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(PROGS): $(BUILD)/%: $(BUILD)/cmd/%.o $(LIB)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

$(UNITS): $(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(LIB)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(ALL_LDLIBS)

check: all $(UNITS)
	BUILD='$(abspath $(BUILD))' prove $(PROVE) -e tests/run $(wildcard tests/cli/*.bats) $(UNITS)

clean:
	rm -rf $(BUILD)

.PHONY: all check clean force
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
