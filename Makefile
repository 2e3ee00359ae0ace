# qlog: build, install, try out and test.
#
#   make            build qlog.so and src/bin/qlog_dump
#   make install    put them into the PostgreSQL installation that pg_config names (asks sudo when it must)
#   make demo       the tour on real input, in a private server
#   make test       everything that is tested; make test TESTS="unit regress" or TESTS=push for a part
#   make test LAYOUT=shared   all tests with a server, in servers with shared logs; or LAYOUT=hierarchical
#   make unit|fuzz|sim|spin|clang|lint|regress|isolation|layouts|tap|valgrind   one part
#   make bench      the measurements, in a private server; make bench CASES="push joint" for a part
#   make reference  write doc/reference.md from the COMMENTs of the extension
#   make indent     format the C sources the way PostgreSQL does
#
# demo, test and bench first install the Debian packages that are missing (make deps).
# The rest of this file must parse before PostgreSQL is installed, hence the conditional include.
#
# Variables: CC=clang, PG_CONFIG=..., SAN=1 (address and undefined behaviour sanitizers, core and its
# tests only), COPT=... (more compiler flags), with_llvm=yes (bitcode, off by default).

EXTENSION = qlog
MODULE_big = qlog
DATA = $(wildcard sql/qlog--*.sql)

# Regression tests, in the order in which they run. sql/NAME.sql without "--" in its name; lint
# fails when one is missing here.
REGRESS = install names options queue_create queue_drop auto_create queue_push push_batch push_batch_json push_limits dedup delay \
	queue_pop pop_limits consumer_groups queue_subscribe queue_seek queue_purge stat_groups plans pop_wait queue_wait pop_rollback queue_ack repeated_ack queue_nack queue_reject retry dead_letters queue_renew lease_expiry queue_peek peek_message \
	queue_set queue_rename queue_pause max_bytes grants every_function roles definitions \
	queue_transaction savepoints triggers statements parallel push_row joint prepare time_zones footprint null_arguments read_only privileges \
	views settings encoding retention partition_idle drop_database

# Those that run under valgrind as well; twenty times slower there.
VALGRIND_REGRESS = install queue_push push_batch queue_pop pop_wait queue_wait pop_rollback queue_ack queue_nack \
	queue_reject retry dead_letters queue_peek queue_transaction joint views

# Those that run in servers with shared logs and with hierarchical directories as well.
LAYOUT_REGRESS = install queue_create queue_drop push_batch dedup delay queue_pop queue_seek queue_purge retry dead_letters \
	queue_peek queue_transaction joint savepoints drop_database

ISOLATION = $(basename $(notdir $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation

.DEFAULT_GOAL := all

# ---------------------------------------------------------------------------------------------
# Where things are
# ---------------------------------------------------------------------------------------------

ifeq ($(origin CC),default)
CC = gcc
endif
cc_name := $(if $(findstring clang,$(notdir $(CC))),clang,gcc)

# Objects of each compiler, with and without sanitizers, live apart.
B := build/$(cc_name)$(if $(SAN),-san)

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

core_src := $(wildcard src/core/*.c src/store/*.c)
pg_src := $(wildcard src/pg/*.c)
bin_src := $(wildcard src/bin/*.c)
test_src := $(wildcard test/lib/*.c test/unit/*.c test/fuzz/*.c test/sim/*.c)

# A test program is a source file with a main(); the other ones are helpers of all of them.
has_main := ^(int[[:space:]]+)?main[(]
test_main := $(if $(test_src),$(shell grep -lE '$(has_main)' $(test_src)))
test_help := $(filter-out $(test_main),$(test_src))

objects = $(patsubst %.c,$(B)/%.o,$(1))
programs = $(patsubst %.c,$(B)/%,$(filter test/$(1)/%,$(test_main)))

core_lib := $(B)/libqlogcore.a
test_lib := $(B)/libqlogtest.a
OBJS = $(call objects,$(pg_src))
SCRIPTS_built = src/bin/qlog_dump
EXTRA_CLEAN = build

# ---------------------------------------------------------------------------------------------
# Flags
# ---------------------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith -Wvla -Werror
core_libs := -lzstd -lxxhash -llmdb

ifdef SAN
core_opt := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
else
core_opt := -g -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2
endif
core_flags := -std=c11 $(core_opt) -fPIC -fno-omit-frame-pointer $(warnings) $(COPT)
test_flags := $(core_flags) $(addprefix -I,src/core src/store test/lib test/unit test/fuzz test/sim)

SHLIB_LINK += $(core_lib) $(core_libs) -Wl,--exclude-libs,$(notdir $(core_lib))

# ---------------------------------------------------------------------------------------------
# The extension: PGXS
# ---------------------------------------------------------------------------------------------

ifdef PGXS
override with_llvm := $(if $(filter command,$(firstword $(origin with_llvm))),$(with_llvm),no)
include $(PGXS)

# PostgreSQL's headers are not ours to warn about, and its gcc-only flags are not for clang.
pg_cppflags := $(patsubst -I/%,-isystem /%,$(filter-out -I. -I./,$(CPPFLAGS))) -Isrc/pg -Isrc/store -Isrc/core
pg_cflags := $(filter-out -W% $(if $(filter clang,$(cc_name)),-fexcess-precision=%),$(CFLAGS))
version := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" qlog.control)
pg_flags := -std=c11 -DQLOG_VERSION=\"$(version)\" $(pg_cflags) $(CFLAGS_SL) $(warnings) $(COPT) $(pg_cppflags)
override CFLAGS := $(pg_cflags)

qlog.so: $(core_lib) $(B)/link.flags

# Installing as an ordinary user goes through sudo, unless the target is his own.
ifeq ($(DESTDIR),)
ifneq ($(shell test -w '$(pkglibdir)' -a -w '$(bindir)' && echo own),own)
override INSTALL := sudo /usr/bin/install -c
override MKDIR_P := sudo mkdir -p
endif
endif

# PGXS knows nothing of manual pages, and does not find a program again that was built in a directory.
install: install-man
uninstall: uninstall-rest
install-man:
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_DATA) doc/man/qlog_dump.1 '$(DESTDIR)$(mandir)/man1/qlog_dump.1'
uninstall-rest:
	rm -f '$(DESTDIR)$(mandir)/man1/qlog_dump.1' '$(DESTDIR)$(bindir)/qlog_dump'
.PHONY: install-man uninstall-rest

else

all install:
	@echo "'$(PG_CONFIG) --pgxs' names no file: the PostgreSQL headers are missing (make deps installs them)" >&2
	@exit 1

clean:
	rm -rf build qlog.so $(SCRIPTS_built)

endif

# ---------------------------------------------------------------------------------------------
# Rules
# ---------------------------------------------------------------------------------------------

# Rebuild when compiler or flags change.
$(B)/compile.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(core_flags) | $(pg_flags)' | cmp -s - $@ || echo '$(CC) $(core_flags) | $(pg_flags)' >$@

# The module is linked in one place by either compiler: note which one it was.
$(B)/link.flags: FORCE
	@mkdir -p $(@D)
	@test qlog.so -nt $@ && test "$$(cat build/linked 2>/dev/null)" = '$(B)' || \
		{ touch $@; echo '$(B)' >build/linked; }

$(B)/src/core/%.o: src/core/%.c $(B)/compile.flags
	@mkdir -p $(@D)
	$(CC) $(core_flags) -Wconversion -Isrc/core -MMD -MP -c -o $@ $<

$(B)/src/store/%.o: src/store/%.c $(B)/compile.flags
	@mkdir -p $(@D)
	$(CC) $(core_flags) -Wconversion -Isrc/core -Isrc/store -MMD -MP -c -o $@ $<

$(B)/src/bin/%.o: src/bin/%.c $(B)/compile.flags
	@mkdir -p $(@D)
	$(CC) $(core_flags) -Isrc/core -Isrc/store -MMD -MP -c -o $@ $<

$(B)/src/pg/%.o: src/pg/%.c $(B)/compile.flags
	@mkdir -p $(@D)
	$(CC) $(pg_flags) -MMD -MP -c -o $@ $<

$(B)/src/pg/%.bc: src/pg/%.c
	@mkdir -p $(@D)
	$(COMPILE.c.bc) -Isrc/pg -Isrc/store -Isrc/core -o $@ $<

$(B)/test/%.o: test/%.c $(B)/compile.flags
	@mkdir -p $(@D)
	$(CC) $(test_flags) -MMD -MP -c -o $@ $<

$(core_lib): $(call objects,$(core_src))
	rm -f $@
	ar rcs $@ $^

$(test_lib): $(call objects,$(test_help))
	rm -f $@
	ar rcs $@ $^

$(patsubst %.c,$(B)/%,$(test_main)): %: %.o $(test_lib) $(core_lib)
	$(CC) $(core_flags) -o $@ $(filter %.o,$^) $(test_lib) $(core_lib) $(core_libs) -lpthread -lm

# The simulator's test of itself: files that can have deliberate faults, compiled with them (qc_mutant.h).
mutants := $(patsubst %.c,$(B)/mutant/%.o,$(if $(test_src),$(shell grep -lw QC_MUTATED src/core/*.c test/sim/*.c)))
$(B)/test/sim/sim_mutants: $(mutants)

$(B)/mutant/%.o: %.c $(B)/compile.flags
	@mkdir -p $(@D)
	$(CC) $(test_flags) -DQC_MUTANTS -MMD -MP -c -o $@ $<

# The tests of qlog_dump call it as a function.
$(B)/test/unit/test_dump $(B)/test/fuzz/fuzz_dump: $(filter-out %/qlog_dump.o,$(call objects,$(bin_src)))

$(B)/src/bin/qlog_dump: $(call objects,$(bin_src)) $(core_lib)
	$(CC) $(core_flags) -o $@ $(filter %.o,$^) $(core_lib) $(core_libs)

src/bin/qlog_dump: $(B)/src/bin/qlog_dump
	cp $< $@

-include $(patsubst %.o,%.d,$(call objects,$(core_src) $(pg_src) $(bin_src) $(test_src)) $(mutants))

# ---------------------------------------------------------------------------------------------
# What people type
# ---------------------------------------------------------------------------------------------

stages := unit fuzz sim spin clang lint regress isolation layouts tap valgrind
run_tests := MAKE='$(MAKE)' CC='$(CC)' PG_CONFIG='$(PG_CONFIG)' REGRESS='$(REGRESS)' \
	VALGRIND_REGRESS='$(VALGRIND_REGRESS)' LAYOUT_REGRESS='$(LAYOUT_REGRESS)' LAYOUT='$(LAYOUT)' test/run

deps:
	@test/lib/deps.sh

test: deps
	@+$(run_tests) $(TESTS)

$(stages): deps
	@+$(run_tests) $@ $(TESTS)

demo: deps
	@$(MAKE) --no-print-directory -s -j2 all
	@$(MAKE) --no-print-directory -s install
	@PG_CONFIG='$(PG_CONFIG)' test/demo/run.sh

bench: deps
	@$(MAKE) --no-print-directory -s -j2 all
	@PG_CONFIG='$(PG_CONFIG)' test/bench/run.sh $(CASES)

reference: deps
	@$(MAKE) --no-print-directory -s -j2 all
	@PG_CONFIG='$(PG_CONFIG)' test/docs/reference.sh

indent: deps
	@$(MAKE) --no-print-directory -s -j2 objects
	@CC='$(CC)' test/lint/format.pl --write

qlog_dump: src/bin/qlog_dump

# For test/run and lint: build without installing, and say where the programs are.
objects: $(core_lib) $(call objects,$(bin_src) $(test_src)) $(if $(PGXS),$(OBJS))
lint-build: objects $(if $(PGXS),all)
list-%:
	@printf '%s\n' $(call programs,$*)
core-lib: $(core_lib)
show-pg-flags:
	@echo '$(pg_flags)'

FORCE:
.PHONY: FORCE all install clean deps test demo bench reference indent qlog_dump objects lint-build core-lib show-pg-flags $(stages)
