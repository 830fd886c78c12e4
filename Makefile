# The commands of the README. Each installs what it needs (Debian, apt), builds in build/<preset>, and runs.
.DEFAULT_GOAL := help
LANES := clang asan tsan gcc

.PHONY: help demo test bench lint format clean $(LANES:%=test-%)

help:
	@echo "make demo   build the program and run the flash sale: 8 processes share stock, with and without a lock"
	@echo "make test   build and run every test in four lanes: $(LANES)   (one lane: make test-gcc)"
	@echo "make bench  measure the workloads against their floors; results in bench/results/"
	@echo "make lint   formatting, clang-tidy and the house rules   (make format rewrites the files)"

demo:
	scripts/install-deps.sh demo
	scripts/build.sh release holdfast_tool
	build/release/bin/holdfast demo flash-sale --orders examples/data/orders.csv --workers 8

# gcc comes last: its summary, over every test, is the closing line.
test:
	scripts/install-deps.sh test
	set -e; for lane in $(LANES); do scripts/lane.sh $$lane; done

$(LANES:%=test-%): test-%:
	scripts/install-deps.sh test
	scripts/lane.sh $*

bench:
	scripts/install-deps.sh bench
	scripts/build.sh release holdfast_bench
	scripts/bench.sh

lint:
	scripts/install-deps.sh lint
	scripts/lint.sh

format:
	scripts/install-deps.sh lint
	scripts/lint.sh --fix

clean:
	rm -rf build
