# What one does with mooring from a checkout: `make` lists it. Everything lives in .venv, from the
# pinned and hashed files in requirements/; nothing but Python 3.11 or later and make is needed.

PYTHON ?= python3
UV ?= uv
WORKERS ?= auto
PYTEST_ARGS ?=
SEEDS ?= 200
ARGS ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
IS_SUPPORTED := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
SHOW_VERSION := -c 'import sys; print(sys.version.split()[0])' 2>/dev/null
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -n")
TYPED := $(wildcard src policies/src examples benchmarks tools/control-plane tools/fuzz)

.DEFAULT_GOAL := help
.PHONY: help demo test tests fuzz test-live test-load control-plane test-web chromium lint format bench bench-beside bench-live bench-pressure bench-reference bench-scheduler-perf bench-full lock clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

demo: .venv/.base  ## Simulate the cluster that comes with mooring
	$(BIN)/mooring demo

# Side by side, since checking types keeps only one core busy.
test: .venv/.dev  ## Run the checks and tests that need nothing but Python
	@$(MAKE) --no-print-directory -j2 lint tests

tests: .venv/.dev
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not long and not live and not web" $(PYTEST_ARGS)

test-long: .venv/.dev  ## Run the tests that need nothing but Python, and minutes: random lives of clusters, many processes
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "long" $(PYTEST_ARGS)
	$(BIN)/python -m tools.fuzz --seeds 100

fuzz: .venv/.dev  ## Run the live scheduler under random faults, in virtual time (SEEDS=10000, ARGS='--seed 17')
	$(BIN)/python -m tools.fuzz --seeds $(SEEDS) $(ARGS)

test-live: .venv/.dev control-plane  ## Run mooring against a real kube-apiserver, and break things
	MOORING_LIVE=required $(BIN)/pytest -m live tests/live $(PYTEST_ARGS)

test-load: .venv/.dev control-plane  ## Kill schedulers and the API server under load, and read etcd's truth (15 minutes)
	PYTHONPATH=tools/control-plane $(BIN)/python -m tools.load $(ARGS)

control-plane:  ## Build a kube-apiserver to test against, once (needs Go)
	@tools/control-plane/build.sh

test-web: .venv/.web chromium  ## Test the page in a real browser
	MOORING_WEB=required $(BIN)/pytest -m web tests/web $(PYTEST_ARGS)
	@echo "pictures of every view, and what was measured, are in .screenshots/"

# Debian's own, since a browser that pip or npm would fetch is not pinned by anything here.
chromium:  ## Install the browser that the page is tested in, once (Debian; needs root)
	@command -v chromium >/dev/null || { \
		$(AS_ROOT) true 2>/dev/null && command -v apt-get >/dev/null || { \
			echo "make test-web needs Chromium. Install it so that \`chromium\` is found, for example:" \
				"apt-get install --no-install-recommends chromium" >&2; exit 1; }; \
		$(AS_ROOT) apt-get update -q && \
		$(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium; }

lint: .venv/.dev  ## Check style, format, types and the order of the rooms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports --no-logo
	$(BIN)/lint-imports --no-logo --config policies/pyproject.toml

format: .venv/.dev  ## Format the code and mend what can be mended safely
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

bench: .venv/.base  ## Measure decisions per second, in a few minutes
	$(BIN)/python -m benchmarks.suite --nodes 500 5000 --most-s 2 --write .benchmarks

bench-beside: .venv/.base  ## Measure decisions beside an earlier commit, in turns (COMMIT=HEAD~1)
	$(BIN)/python -m benchmarks.beside_commit $(or $(COMMIT),HEAD~1) $(ARGS)

bench-live: .venv/.dev control-plane  ## Measure pods bound per second beside kube-scheduler (10 minutes)
	@$(BIN)/python -m compileall -q src
	PYTHONPATH=tools/control-plane $(BIN)/python -m benchmarks.live --write benchmarks/results $(ARGS)
	$(BIN)/python -m benchmarks.report

# The rest takes an hour: make bench-pressure PRESSURE='--scenarios c f g'
PRESSURE ?= --fresh --scenarios a b c/10 d e h
bench-pressure: .venv/.dev control-plane  ## Measure what pressure does to mooring and kube-scheduler (25 minutes)
	@$(BIN)/python -m compileall -q src
	PYTHONPATH=tools/control-plane $(BIN)/python -m benchmarks.pressure --write benchmarks/results $(PRESSURE)
	$(BIN)/python -m benchmarks.report

# In a quarter of an hour: make bench-reference ARGS='--rounds 1 --seconds 1.5'
bench-reference: .venv/.base  ## Measure decisions beside kube-scheduler's own cycle (40 minutes; needs Go)
	$(BIN)/python -m benchmarks.beside_reference --write benchmarks/results $(ARGS); \
		status=$$?; $(BIN)/python -m benchmarks.report && exit $$status

bench-scheduler-perf: .venv/.base control-plane  ## Run upstream's performance workloads in process (minutes)
	$(BIN)/python -m benchmarks.scheduler_perf --labels performance --write benchmarks/results

# One after another, since they share the machine; the page is written from what they found.
bench-full: .venv/.base  ## Measure everything, and write docs/performance.md (twenty minutes)
	$(BIN)/python -m benchmarks.suite --nodes 500 5000 15000 --most-s 2 \
		--write benchmarks/results
	$(BIN)/python -m benchmarks.growth --write benchmarks/results
	$(BIN)/python -m benchmarks.memory --write benchmarks/results
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.slow_edges

# The options leave out of the files everything that is true of one machine only. One NumPy for all
# versions of Python (`fewest`), so that all of them are tested with the same. Extras stay in the files:
# without them, older pips look at a package's newest version first, which has no hash here, and give up.
COMPILE := $(UV) pip compile --quiet --no-config --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-header --no-annotate --no-emit-index-url \
	--no-emit-package mooring --no-strip-extras

lock:  ## Pin the requirements again (UPGRADE=--upgrade for newer versions; needs uv)
	$(COMPILE) $(UPGRADE) requirements/base.in -o requirements/base.txt
	$(COMPILE) $(UPGRADE) requirements/build.in -o requirements/build.txt -c requirements/base.txt
	$(COMPILE) $(UPGRADE) requirements/live.in -o requirements/live.txt -c requirements/base.txt
	$(COMPILE) $(UPGRADE) requirements/sweep.in -o requirements/sweep.txt -c requirements/base.txt
	$(COMPILE) $(UPGRADE) requirements/gym.in -o requirements/gym.txt -c requirements/base.txt
	$(COMPILE) $(UPGRADE) requirements/dev.in -o requirements/dev.txt \
		-c requirements/base.txt -c requirements/build.txt -c requirements/live.txt \
		-c requirements/sweep.txt -c requirements/gym.txt
	$(COMPILE) $(UPGRADE) requirements/web-tests.in -o requirements/web-tests.txt -c requirements/dev.txt

clean:  ## Remove .venv and everything else that was made here
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache \
		.hypothesis .benchmarks .screenshots .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment grows in steps, each with a stamp: the interpreter, what mooring runs on, what
# its developers use. So `make demo` and `make test` may come in either order.

.venv/.python:
	@$(BIN)/python $(IS_SUPPORTED) || $(PYTHON) $(IS_SUPPORTED) || { \
		echo "mooring needs Python 3.11 or later; '$(PYTHON)' is" \
			"$$($(PYTHON) $(SHOW_VERSION) || echo missing)." \
			"Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python $(IS_SUPPORTED) || $(PYTHON) -m venv --clear .venv
	@touch $@

.venv/.base: .venv/.python requirements/base.txt requirements/build.txt pyproject.toml policies/pyproject.toml
	@echo "installing mooring into .venv"
	@$(PIP) install --require-hashes -r requirements/base.txt -r requirements/build.txt
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable . --editable policies
	@# Where PYTHONDONTWRITEBYTECODE is set, every command would compile all modules: a third of a second.
	@$(BIN)/python -m compileall -q src policies/src
	@touch $@

.venv/.dev: .venv/.base requirements/dev.txt
	@echo "installing the development tools into .venv"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

.venv/.web: .venv/.dev requirements/web-tests.txt
	@echo "installing what drives a browser into .venv"
	@$(PIP) install --require-hashes -r requirements/web-tests.txt
	@touch $@
