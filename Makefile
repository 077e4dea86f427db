# The verbs of this project. `make` alone lists them.
#
# There are two optimised builds. What is tested lies in .build/tests: one compilation of the
# command, the server, the stand-in and all suites, linked dynamically (there is no static Testing
# library), in which a warning is an error. What is released lies in .build/release: the command and
# the server, with Swift's standard library and Foundation linked statically. For daily work there
# is `swift build`, without make: the debug build, in which a warning is an error, too.

SWIFT ?= swift
# More options for each release build.
SWIFT_FLAGS ?=
# With BUILT=1, packages are made of the programs that are there, and nothing is compiled.
BUILT ?=
PREFIX ?= /usr/local
DESTDIR ?=

RELEASE := .build/release
TESTED := .build/tests/release
MANUAL := .build/manual
COMPLETIONS := .build/completions
DIST := .build/dist

# The command is stripped as it is linked; `make release STRIP=` leaves its symbols in. It does not
# depend on the folder it is built in: no path of it is inside, and the build ID comes from the
# content.
ifeq ($(shell uname -s),Darwin)
  STRIP ?= -Xlinker -S -Xlinker -x
  LINK :=
else
  STRIP ?= -Xlinker --strip-all
  # lld comes with the toolchain. Of what it writes, 1.1 MB of relocations can be packed, where the
  # C library reads that (glibc 2.36).
  PACK := $(shell getconf GNU_LIBC_VERSION 2>/dev/null | awk -F '[ .]' '$$2 > 2 || $$3 >= 36 { print "-Xlinker -z -Xlinker pack-relative-relocs" }')
  # All of its symbols are bound as it is started, and their table is read-only from then on.
  LINK := --static-swift-stdlib --disable-local-rpath -Xswiftc -use-ld=lld -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now \
    -Xcc -fstack-protector-strong -Xlinker --build-id=sha1 -Xlinker --no-export-dynamic -Xlinker --no-eh-frame-hdr \
    -Xlinker -T -Xlinker '$(CURDIR)/Packaging/release.ld' $(PACK)
endif
PATH_FREE := -Xswiftc -file-prefix-map -Xswiftc '$(CURDIR)=.' -Xcc '-ffile-prefix-map=$(CURDIR)=.'
BUILD_RELEASE = $(SWIFT) build -c release $(SWIFT_FLAGS) $(LINK) $(PATH_FREE) $(STRIP)

# The server. Its dependencies are fetched where it is built; without the variable they stay, and
# nothing is compiled again.
SERVE := $(RELEASE)/carpack-serve
BUILD_SERVE = CARPACK_BUILD_SERVE=1 $(BUILD_RELEASE) --product carpack-serve

# The settings are the same each time, so that nothing is compiled again. Debug information would
# take a tenth of the time.
BUILD_TESTED = CARPACK_TESTED=1 $(SWIFT) build -c release --scratch-path .build/tests \
  -debug-info-format none --explicit-target-dependency-import-check error

# Programs and suites run the command that was built for them, or the one that CARPACK_BIN names.
COMMAND = $(or $(CARPACK_BIN),$(CURDIR)/$(RELEASE)/carpack)
TESTED_COMMAND = $(or $(CARPACK_BIN),$(CURDIR)/$(TESTED)/carpack)
RUN_SUITES = CARPACK_BIN="$(TESTED_COMMAND)" SWIFT="$(SWIFT)" Scripts/run-suites.sh

# Packages bear the date of the last commit, so that the same commit gives the same bytes.
EPOCH = $${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || date +%s)}

LINTED := Package.swift Sources Tests Benchmarks/Sources Fuzz/Sources Serve/Sources
DOCC ?= $(shell command -v docc || xcrun --find docc)
# CarpackKit is for other programs; of the others, what the package uses itself is described, too.
DOCUMENTED := CarpackKit IPLD ATProtocol Archive HTTP XRPC ObjectStore Live Fleet

FUZZERS ?=
FUZZ_SECONDS ?= 600
TORTURE_SECONDS ?= 600
SEQUENCES ?= 20000
MINUTES ?= 10
ACCOUNTS ?= 600

# The suites in which tasks and threads meet. The runtime looks for the sanitizer among the symbols
# that the program exports, to tell it of tasks.
THREADS := --sanitize=thread --scratch-path .build/sanitized -Xlinker --export-dynamic
SANITIZING := TSAN_OPTIONS='exitcode=66:suppressions=$(CURDIR)/Scripts/thread-sanitizer.txt'
BRIEF_THREADS := $(subst .build/sanitized,.build/sanitized-briefly,$(THREADS))
BRIEFLY_SANITIZED := XRPCTests ObjectStoreTests
SANITIZED := XRPCTests|NetworkTests|BackupTests.*(Blobs_on_their|blob_that_arrives|repository_that_arrives|accounts|fleet)

# A Python that has playwright; Chromium is looked for where Debian has it.
BROWSER_PYTHON ?= python3
# A Python that has atproto, if there is one.
CLIENT_PYTHON ?= python3

# Verbs of several steps take them in order.
.NOTPARALLEL:
.PHONY: viewer test-viewer run-page-tests run-browser-tests test-packaging run-packaging-tests serve test-serve run-server-tests test-suites run-suites demo-view help dependencies requirements build release test sanitize sanitize-briefly torture sequences fleet-drill restore-all demo fixtures schemas lint format docs bench \
  bench-network fuzz man completions install uninstall reproducible tarball deb sbom container-root dist check-completions clean

help: ## list these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' Makefile

dependencies: ## say which system packages are missing, and install them if you agree (YES=1 does not ask)
	@Scripts/dependencies.sh install

# Whatever builds has this first. It installs nothing, except for `make demo` and `make test`, which
# say what they install.
requirements:
	@Scripts/dependencies.sh $(or $(REQUIREMENTS),check)

demo demo-view test: REQUIREMENTS := install --yes

build: requirements ## everything that is tested, in one optimised build: command, server, suites; a warning is an error
	CARPACK_BUILD_SERVE=1 $(BUILD_TESTED) --build-tests

release: $(if $(BUILT),,requirements) ## the command as it is released, in one file: .build/release/carpack
	$(if $(BUILT),,$(BUILD_RELEASE) --product carpack)

test: build ## build and run all tests: page, server, suites (set CARPACK_CORPUS to have real repositories in them)
	@# Browsers would take the cores from what waits for servers.
	@BESIDE="run-server-tests run-page-tests run-packaging-tests" BEHIND=run-browser-tests $(RUN_SUITES)

test-suites: build run-suites ## the suites alone

run-suites:
	$(RUN_SUITES)

sanitize: requirements ## run the suites of the network, and the command they drive, under the thread sanitizer
	$(SWIFT) build $(THREADS) --product carpack
	CARPACK_BIN=$(CURDIR)/.build/sanitized/debug/carpack $(SANITIZING) \
	  $(SWIFT) test $(THREADS) --filter '$(SANITIZED)'

# What is built with the sanitizer for these suites is a tenth of the whole.
sanitize-briefly: requirements ## run the suites of HTTP and of object stores under the thread sanitizer
	CARPACK_SUITES='$(BRIEFLY_SANITIZED)' $(SWIFT) build $(BRIEF_THREADS) --product carpackPackageTests
	$(SANITIZING) .build/sanitized-briefly/debug/carpackPackageTests.xctest --testing-library swift-testing

torture: build ## fail, cut off, kill and damage at random for TORTURE_SECONDS=600
	CARPACK_TORTURE=$(TORTURE_SECONDS) $(RUN_SUITES) 'TortureTests|MaintenanceModelTests|RecoveryTests|PackingPowerLossTests'

fleet-drill: build ## four workers and twelve hosts, three of them bad, in trouble for MINUTES=10 (ACCOUNTS=600; it takes CARPACK_TEST_DATABASE)
	CARPACK_DRILL=$(MINUTES) CARPACK_DRILL_ACCOUNTS=$(ACCOUNTS) $(RUN_SUITES) 'a fleet in trouble'

restore-all: release ## restore 500 accounts of 2 GB onto the stand-in, killed ten times (ACCOUNTS=500 KILLS=10 and others)
	$(SWIFT) build -c release $(SWIFT_FLAGS) --product stand-in
	Scripts/restore-all.py $(COMMAND) $(RELEASE)/stand-in

sequences: build ## do one thing after the other to archives, in SEQUENCES=20000 random sequences (SEED=… has one again)
	CARPACK_SEQUENCES=$(if $(SEED),1,$(SEQUENCES)) $(if $(SEED),CARPACK_SEED=$(SEED)) $(RUN_SUITES) 'one thing after the other'

# Command, server and stand-in in one pass, with the settings of `make build`, so that `view` and
# `export --sqlite` work afterwards.
demo: requirements ## back up from a server on loopback, be killed, go on; pack, verify and extract an account in Fixtures/
	CARPACK_BUILD_SERVE=1 $(BUILD_TESTED)
	@Scripts/demo.sh "$(TESTED_COMMAND)" "$(CURDIR)/$(TESTED)/stand-in"

viewer: ## put the page of Serve/Viewer together: .build/viewer.html, and into the command
	@mkdir -p .build
	python3 Serve/Viewer/build.py .build/viewer.html Sources/Viewer/ViewerPage.swift

serve: release ## the server of archives, optimised, where the command finds it (the first time takes minutes)
	$(if $(BUILT),,$(BUILD_SERVE))

test-serve: build run-server-tests ## test the server with clients of its kind (CLIENT_PYTHON=… one that has atproto)

run-server-tests:
	$(CLIENT_PYTHON) Serve/Tests/clients.py "$(TESTED_COMMAND)" $(TESTED)/carpack-serve

demo-view: release serve ## look at an account of Fixtures/ in the browser
	@Scripts/demo-view.sh "$(COMMAND)" "$(CURDIR)/$(SERVE)"

test-viewer: build run-page-tests run-browser-tests ## test the page: its readers with node, and in Chromium (with playwright) and Firefox where they are there

test-packaging: build run-packaging-tests ## test the install script, units, compose files, the container's root, the page of the format

run-packaging-tests:
	Scripts/check-packaging.py "$(TESTED_COMMAND)" $(TESTED)/carpack-serve

# The page in the command is the one that its sources make.
run-page-tests: viewer
	"$(TESTED_COMMAND)" view --page .build/viewer-of-command.html --force
	cmp .build/viewer.html .build/viewer-of-command.html
	@if command -v node >/dev/null; then CARPACK_BIN="$(TESTED_COMMAND)" node --test Serve/Viewer/tests/*.test.js; \
	  else echo 'the readers of the page were not tested: there is no node'; fi
	python3 Serve/Viewer/tests/firefox.py "$(TESTED_COMMAND)"

# Two processes take turns with the tests: each waits for its browser most of the time.
run-browser-tests:
	@$(BROWSER_PYTHON) Serve/Viewer/tests/browser.py "$(TESTED_COMMAND)" --part 1/2 & \
	  $(BROWSER_PYTHON) Serve/Viewer/tests/browser.py "$(TESTED_COMMAND)" --part 2/2; \
	  status=$$?; wait $$! && exit $$status

schemas: release ## write Docs/JSON.md and Docs/schemas again, from the reports
	rm -f Docs/schemas/*.schema.json
	"$(COMMAND)" ---schemas Docs

fixtures: ## write Fixtures/ again, byte for byte the same
	python3 Fixtures/generate.py

lint: ## what `make format` would change, and what it cannot
	$(SWIFT) format lint --strict --recursive --parallel $(LINTED)

format: ## put every Swift file into the project's form
	$(SWIFT) format --in-place --recursive --parallel $(LINTED)

docs: requirements ## documentation of the libraries, one site: .build/documentation/carpack.doccarchive; a dead link is an error
	@rm -rf .build/documentation && mkdir -p .build/documentation
	@failed=0; for target in $(DOCUMENTED); do \
	  echo "documenting $$target"; \
	  CARPACK_DOCS=1 $(SWIFT) package --scratch-path .build/docs \
	    --allow-writing-to-directory .build/documentation \
	    generate-documentation --target $$target --warnings-as-errors \
	    $$([ $$target = CarpackKit ] || echo --symbol-graph-minimum-access-level package) \
	    --output-path .build/documentation/$$target.doccarchive || failed=1; \
	done; exit $$failed
	@$(DOCC) merge $(DOCUMENTED:%=.build/documentation/%.doccarchive) \
	  --synthesized-landing-page-name carpack --output-path .build/documentation/carpack.doccarchive

bench: release ## measure whole commands against other programs into Benchmarks/RESULTS.md (RECORDS=100000 MEDIA=500 RUNS=5 and others)
	@python3 Benchmarks/measure.py "$(COMMAND)"

bench-network: release ## measure backups from a server on loopback against curl and one connection (BLOBS=2000 ROUNDS=5 SERIAL=100)
	$(BUILD_RELEASE) --product stand-in
	@Benchmarks/network.sh "$(COMMAND)" "$(CURDIR)/$(RELEASE)/stand-in"

fuzz: requirements ## feed every parser hostile bytes, FUZZ_SECONDS=600 each, FUZZERS="…" for some of them
	Fuzz/run.sh $(FUZZ_SECONDS) $(FUZZERS)

man: release ## manual pages, one for each verb and carpack-archive(5): .build/manual
	@rm -rf $(MANUAL)
	@SOURCE_DATE_EPOCH=$(EPOCH) Scripts/generate-manual.py "$(COMMAND)" $(MANUAL)
	@SOURCE_DATE_EPOCH=$(EPOCH) Scripts/format-manual.py "$$(Scripts/version.sh)" <Docs/FORMAT.md >$(MANUAL)/carpack-archive.5

completions: release ## completions for bash, zsh and fish: .build/completions
	@mkdir -p $(COMPLETIONS)
	@"$(COMMAND)" --generate-completion-script bash > $(COMPLETIONS)/carpack.bash
	@"$(COMMAND)" --generate-completion-script zsh > $(COMPLETIONS)/_carpack
	@"$(COMMAND)" --generate-completion-script fish > $(COMPLETIONS)/carpack.fish

BIN := $(DESTDIR)$(PREFIX)/bin
MAN1 := $(DESTDIR)$(PREFIX)/share/man/man1
MAN5 := $(DESTDIR)$(PREFIX)/share/man/man5
BASH_COMPLETIONS := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH_COMPLETIONS := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

EXAMPLES := $(DESTDIR)$(PREFIX)/share/doc/carpack/examples

# On Linux also the timers and services of systemd, which nothing starts by itself.
UNITS := $(DESTDIR)$(PREFIX)/lib/systemd
LINUX := $(filter Linux,$(shell uname -s))

install: release serve man completions ## install under PREFIX=/usr/local (packagers: DESTDIR=)
	install -d $(BIN) $(MAN1) $(MAN5) $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS) $(if $(LINUX),$(UNITS)/system $(UNITS)/user)
	install -m 755 $(RELEASE)/carpack $(BIN)/carpack
	install -m 755 $(SERVE) $(BIN)/carpack-serve
	install -m 644 $(MANUAL)/carpack*.1 $(MAN1)
	install -m 644 $(MANUAL)/carpack-archive.5 $(MAN5)
	install -m 644 $(COMPLETIONS)/carpack.bash $(BASH_COMPLETIONS)/carpack
	install -m 644 $(COMPLETIONS)/_carpack $(ZSH_COMPLETIONS)/_carpack
	install -m 644 $(COMPLETIONS)/carpack.fish $(FISH_COMPLETIONS)/carpack.fish
	install -d $(EXAMPLES)
	install -m 644 Packaging/config.toml $(EXAMPLES)/config.toml
	$(if $(LINUX),install -m 644 Packaging/systemd/system/* $(UNITS)/system)
	$(if $(LINUX),install -m 644 Sources/carpack/Units/* $(UNITS)/user)

uninstall: ## take away what `make install` with the same PREFIX put there
	rm -f $(BIN)/carpack $(BIN)/carpack-serve $(MAN1)/carpack.1 $(MAN1)/carpack-*.1 $(MAN5)/carpack-archive.5 $(BASH_COMPLETIONS)/carpack \
	  $(ZSH_COMPLETIONS)/_carpack $(FISH_COMPLETIONS)/carpack.fish $(EXAMPLES)/config.toml \
	  $(UNITS)/system/carpack-* $(UNITS)/user/carpack-*

reproducible: requirements ## build programs and packages in two folders, and compare them byte for byte
	@Scripts/check-reproducible.sh

deb: release serve ## Debian package, checked by lintian where it is installed: .build/dist
	@rm -rf .build/stage/deb
	@$(MAKE) --no-print-directory -s install DESTDIR=.build/stage/deb PREFIX=/usr
	@SOURCE_DATE_EPOCH=$(EPOCH) Scripts/build-deb.sh .build/stage/deb $(DIST)

tarball: release serve ## the command with all that belongs to it, for any folder: .build/dist
	@rm -rf .build/stage/tarball
	@$(MAKE) --no-print-directory -s install DESTDIR=.build/stage/tarball PREFIX=
	@SOURCE_DATE_EPOCH=$(EPOCH) Scripts/build-tarball.sh .build/stage/tarball $(DIST)

sbom: release serve ## what the command is made of, as SPDX 2.3: .build/dist
	@mkdir -p $(DIST)
	@SOURCE_DATE_EPOCH=$(EPOCH) Scripts/generate-sbom.py "$(COMMAND)" $(SERVE) > $(DIST)/carpack.spdx.json
	@echo $(DIST)/carpack.spdx.json

container-root: release serve ## the folder that the Containerfile makes an image of: .build/container
	@rm -rf .build/container
	@Packaging/container/root.sh $(RELEASE)/carpack $(SERVE) .build/container

dist: release serve ## all packages, and their digests: .build/dist
	@rm -rf $(DIST)
	@$(if $(LINUX),Scripts/check-hardening.sh $(RELEASE)/carpack $(SERVE))
	@$(MAKE) --no-print-directory deb tarball sbom
	@install -m 755 Packaging/install.sh $(DIST)
	@cd $(DIST) && sha256sum *.deb *.tar.gz *.json *.sh > SHA256SUMS && cat SHA256SUMS

check-completions: release ## try the completions in a real bash, zsh and fish
	@Scripts/check-completions.py "$(COMMAND)"

clean: ## take away everything that was built
	rm -rf .build
