# Every target sets up what it needs in .venv, from PyPI alone; nothing is installed twice unless pyproject.toml changes.
#
#   make demo        a small history that breaks causal consistency, and what isocheck says about it
#   make test        the tests, without the large runs        make test-full   all of them
#   make test-quick  the files of tests/quick.txt: some of everything in less than 20 seconds, without servers
#   make bench       the benchmarks (BENCH="--quick" for a short look; results in benchmarks/results)
#   make bench-strong  the strong levels: what is left open, the time of each stage, and how it grows (BENCH="--quick")
#   make bench-peers   beside AWDIT=… PLUME=… VERISTRONG=… POLYSI=… and OLD=… (another checkout); writes docs/performance.md
#   make bench-synth   the synthesis problems, beside published times, and what each trick is worth
#   make bench-allocate  levels of drawn workloads, time, attack and precision of allocation
#   make bench-predict  predictions from runs of four programs, replayed, and random exploration beside them
#   make bench-confirm  the same predictions on a private PostgreSQL and MariaDB
#   make paper-plume   what a paper measured, measured here, and its page in docs/papers; also paper-isolde,
#                      paper-isopredict, paper-mixiso, paper-alone-together, each with -quick for minutes
#   make wheel       dist/plume_py-….whl, to install elsewhere
#   make man         docs/isocheck.1, the manual page, from the help of the commands
#   make fuzz        damaged input for every reader and command (FUZZ=600 seconds; what is wrong goes to fuzz-found/)
#   make soak        every command that writes, killed and starved at random moments (SOAK=300 seconds)
#   make lint        style and types                          make format      put the style right
#   make clean       remove what the others made, .venv excepted

PYTHON ?= python3
BENCH ?=
# Programs of others and another checkout, to run beside ours.
export AWDIT PLUME VERISTRONG POLYSI OLD PLUME_ARTIFACT
FUZZ ?= 600
SOAK ?= 300
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := demo
.PHONY: demo test test-quick test-full fuzz soak bench bench-strong bench-peers bench-synth bench-predict bench-confirm bench-allocate wheel man lint format clean

# Where PYTHONDONTWRITEBYTECODE is set Python would translate our files anew at every start.
BYTECODE = @$(BIN)/python -m compileall -q plume_py

demo: $(VENV)/.core
	$(BYTECODE)
	@$(BIN)/isocheck stats histories/demo.json
	@echo
	@code=0; $(BIN)/isocheck histories/demo.json --level TCC || code=$$?; echo; \
	if [ $$code -eq 1 ]; then echo "Exit code 1: the history breaks TCC, as this demo expects."; \
	else echo "expected exit code 1, got $$code" >&2; exit 1; fi

# Three processes on two cores: for a fifth of the time tests wait for servers and faults.
test: $(VENV)/.test
	$(BYTECODE)
	$(BIN)/python -m pytest -n 3 -m "not full"

test-quick: $(VENV)/.test
	$(BYTECODE)
	$(BIN)/python -m pytest -n 2 -m "not full" @tests/quick.txt

test-full: $(VENV)/.test
	$(BYTECODE)
	$(BIN)/python -m pytest -n 3

fuzz: $(VENV)/.test
	$(BYTECODE)
	PYTHONPATH=tests:. ISOCHECK_COMPILE=never $(BIN)/python -m fuzz $(FUZZ)

soak: $(VENV)/.test
	$(BYTECODE)
	PYTHONPATH=tests:. $(BIN)/python -m soak $(SOAK)

bench: $(VENV)/.core
	$(BYTECODE)
	$(BIN)/python -m benchmarks $(BENCH)

bench-strong: $(VENV)/.core
	$(BYTECODE)
	$(BIN)/python -m benchmarks.strong $(BENCH)
	$(BIN)/python -m benchmarks.strong_made $(BENCH)

bench-peers: $(VENV)/.core
	$(BYTECODE)
	$(BIN)/python -m benchmarks.peers $(BENCH)
	$(BIN)/python -m benchmarks.before_after $(BENCH)
	$(BIN)/python -m benchmarks.strong_peers $(BENCH)
	$(BIN)/python -m benchmarks.performance

bench-synth: $(VENV)/.core
	$(BYTECODE)
	$(BIN)/python -m benchmarks.synth $(BENCH)

bench-allocate: $(VENV)/.core
	$(BYTECODE)
	$(BIN)/python -m benchmarks.allocate $(BENCH)

bench-predict: $(VENV)/.core
	$(BYTECODE)
	$(BIN)/python -m benchmarks.predict $(BENCH)
	$(if $(BENCH),,for what in levels none windows brute; do $(BIN)/python -m benchmarks.predict_cases $$what; done)

bench-confirm: $(VENV)/.bench
	$(BYTECODE)
	$(BIN)/python -m benchmarks.confirm $(BENCH)

PAPERS := plume isolde isopredict mixiso alone-together
.PHONY: $(PAPERS:%=paper-%) $(PAPERS:%=paper-%-quick)

$(PAPERS:%=paper-%): paper-%: $(VENV)/.bench
	$(BYTECODE)
	$(BIN)/python -m benchmarks.papers $* $(BENCH)

$(PAPERS:%=paper-%-quick): paper-%-quick: $(VENV)/.bench
	$(BYTECODE)
	$(BIN)/python -m benchmarks.papers $* --quick $(BENCH)

wheel: $(BIN)/python
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist

man: $(VENV)/.core
	$(BIN)/python docs/man.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict plume_py

format: $(VENV)/.lint
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build benchmarks/work
	find plume_py tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "isocheck needs Python 3.11 or newer: make PYTHON=python3.x" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "this Python cannot make virtual environments: on Debian, apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps say which parts are installed; each part includes the core.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@ $(VENV)/.core
