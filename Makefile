# The commands of the README. Each installs what it needs (Debian, apt), builds in build/<preset>, and runs.
.DEFAULT_GOAL := help
LANES := gcc clang asan tsan
CHECKED := kernel|engine|simulation|conformance\.(without_store|memory|sqlite|redis)

# The programs of Debian's packages come first, because install-deps.sh installs those. (A version manager's shim would also start
# ten more processes.)
export PATH := /usr/bin:/bin:$(PATH)

.PHONY: help demo install test test-all test-nightly delayed-tests test-browser check soak chaos mutants bench bench-quick \
  bench-growth bench-languages docs docs-check lint lint-quick format clean $(LANES:%=test-%) package deb test-deb test-deploy release-check

help:
	@echo "make demo      build the program and run the flash sale: 8 processes share stock, with and without a lock"
	@echo "make install   build the library and the programs, and install them (PREFIX=/usr/local)"
	@echo "make test      build and run every test, in one lane"
	@echo "make test-all  the same, what g++ says of each source by itself, and the sanitizer lanes (asan, tsan)"
	@echo "make check     while you work: kernels, engine, simulator, and the conformance rules on memory, SQLite and one Redis"
	@echo "make test-LANE one lane of $(LANES); clang compiles every source by itself"
	@echo "make test-nightly  what \"make test\" leaves out, because it costs too much"
	@echo "make delayed-tests  the tests, while random calls of tests, programs and servers take longer"
	@echo "make test-browser  the page of holdfast serve in a headless Chromium"
	@echo "make soak      look for new failures in the simulator until stopped (docs/testing.md)"
	@echo "make chaos     kills, stops, cuts and failovers on a real server (STORE=redis MINUTES=3; docs/reliability.md)"
	@echo "make mutants   a test of the tests: put in seeded faults one by one, and print those that no test finds"
	@echo "make bench     measure the workloads against their floors; results in bench/results/"
	@echo "make bench-quick  three of them in short rounds, on every store, on the terminal only"
	@echo "make bench-growth  ever more names, leases, waiters and sessions: what an operation costs then"
	@echo "make bench-languages  C++, Python and Node beside redis-py, kazoo, redlock and redis-semaphore"
	@echo "make package   a tarball of programs, libraries and drivers that runs from any folder; into build/package"
	@echo "make deb       Debian packages, into build/deb   (make test-deb: install, use, upgrade, remove and purge them in a fresh Debian)"
	@echo "make release-check  what a release must pass: suites, packages, ABI, docs, versions, licences; long"
	@echo "make docs      the site: build/site/site/index.html, with the API reference (docs-check also opens it in a browser)"
	@echo "make lint      formatting, clang-tidy and the house rules   (make format rewrites the files)"
	@echo "make lint-quick  the same without the analyzer, in a tenth of the time"

demo:
	scripts/install-deps.sh demo
	scripts/build.sh release holdfast_tool
	build/release/bin/holdfast demo flash-sale --orders examples/data/orders.csv --workers 8

install:
	scripts/install-deps.sh demo
	scripts/build.sh release holdfast_tool
	cmake --install build/release --prefix $(or $(PREFIX),/usr/local)
	if [ "$$(id -u)" = 0 ]; then ldconfig; fi

test: test-gcc

# Each lane prints its own count at the end; the last line has the count of all lanes.
test-all:
	scripts/install-deps.sh test
	scripts/lane.sh gcc
	python3 -B scripts/each_source.py
	set -e; for lane in asan tsan; do scripts/lane.sh $$lane; done
	python3 -B scripts/summary.py build/gcc build/asan build/tsan

# The page of holdfast serve in a real browser.
test-browser:
	scripts/install-deps.sh demo
	scripts/install-deps.sh browser
	scripts/build.sh release holdfast_tool
	python3 -B tests/browser/serve_test.py build/release/bin/holdfast

check:
	scripts/install-deps.sh test
	scripts/lane.sh gcc --only kernel engine simulation conformance -R '^($(CHECKED))(\.|$$)'

$(LANES:%=test-%): test-%:
	scripts/install-deps.sh test
	scripts/lane.sh $*

# Tests that take too long for each commit, such as a program that embeds the library and compiles it with every store.
test-nightly:
	scripts/install-deps.sh nightly
	scripts/lane.sh gcc -L nightly
	scripts/install-deps.sh lint
	scripts/lint.sh --quick

# A machine that is busy with other work, as far as the tests can tell: random calls take longer. DELAYS is the seed.
DELAYED := engine|primitive|store|conformance|interop|tool|c|fault|fleet|python|observe|drivers
delayed-tests:
	scripts/install-deps.sh test
	HOLDFAST_DELAYS=$(or $(DELAYS),$$(date +%s)) scripts/lane.sh gcc -R '^($(DELAYED))(\.|$$)'

# Searches until it is stopped, on all cores, from a random seed. It prints the seeds that fail; --seed replays one.
soak:
	scripts/install-deps.sh test
	scripts/build.sh gcc test_simulation
	build/gcc/tests/test_simulation --soak $(or $(SECONDS),1e9)

# STORE is one of the suites chaos_* of tests/fault/store_chaos_test.cpp, or all of them, one after the other.
chaos:
	scripts/install-deps.sh test
	scripts/build.sh gcc test_fault
	seconds=$$((60 * $(or $(MINUTES),3))); HOLDFAST_CHAOS_SECONDS=$$seconds HOLDFAST_TEST_BOUND=$$((seconds + 180)) \
	  build/gcc/tests/test_fault --gtest_filter='chaos_$(or $(STORE),*).*'

mutants:
	scripts/install-deps.sh test
	tests/mutants/mutants.py run

bench bench-quick bench-growth:
	scripts/install-deps.sh bench
	scripts/build.sh release holdfast_bench $(if $(filter bench,$@),holdfast_tool holdfast_c)
	$(if $(filter bench-quick,$@),QUICK=1) $(if $(filter bench-growth,$@),GROWTH=1) scripts/bench.sh

bench-languages:
	scripts/install-deps.sh bench-languages
	scripts/build.sh release holdfast_bench holdfast_c
	python3 -B bench/languages.py --write

package:
	scripts/install-deps.sh package
	scripts/build.sh package holdfast_tool
	cd build/package && cpack -G TGZ

deb:
	scripts/install-deps.sh deb
	scripts/deb.sh

# Needs root, because it installs a fresh Debian in a folder.
test-deb:
	scripts/install-deps.sh deb
	scripts/test-deb.sh

test-deploy:
	scripts/install-deps.sh deb
	scripts/build.sh release holdfast_tool
	python3 -B tests/deploy/examples_test.py build/release/bin/holdfast

release-check:
	scripts/install-deps.sh deb
	scripts/release-check.sh

docs:
	scripts/install-deps.sh docs
	python3 -B scripts/site.py build/site

docs-check:
	scripts/install-deps.sh docs-check
	python3 -B scripts/site.py build/site
	python3 -B tests/docs/browser.py build/site/site build/site/pictures

# lint-quick leaves out the analyzer, and is part of test-nightly.
lint lint-quick:
	scripts/install-deps.sh lint
	scripts/lint.sh $(if $(filter lint-quick,$@),--quick)

format:
	scripts/install-deps.sh lint
	scripts/lint.sh --fix

clean:
	rm -rf build
