# `make` lists all targets. Every target installs its requirements into .venv, from the lock files.
.DEFAULT_GOAL := help
.PHONY: help run history test test-system check fix bench faults failovers screenshots lock sdk reference clean tools
SHELL := /bin/bash

PYTHON ?= python3
# The number of test processes, each with its own PostgreSQL: two more than the cores, because tests also wait; at most four.
# The tests of tests/core need no database, and run faster than several processes start.
JOBS ?= $(if $(filter tests/core%,$(ARGS)),1,$(shell n=$$(nproc); echo $$((n > 2 ? 4 : n + 2))))
BIN := .venv/bin
# The tests start hundreds of Python processes. If PYTHONDONTWRITEBYTECODE is set, each would compile all modules again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest
PIP := $(PYTHON) -m pip --python .venv/bin/python --disable-pip-version-check
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

run: .venv/run ## start the sandbox with a demo merchant and its shop; Ctrl-C ends it
	@$(BIN)/cuota demo $(ARGS)

history: .venv/run ## fill the running sandbox of `make run` with six weeks of orders, payouts and disputes
	@$(BIN)/cuota demo history $(ARGS)

test: .venv/dev tests/openapi/node_modules tests/oidc/node_modules tools ## every test, against a real PostgreSQL and a real browser
	@echo "Test processes, each with a PostgreSQL of its own: $(JOBS)"
	@echo "Only some: make test ARGS=\"tests/flows/sandbox -x\". Tests that cannot run here are skipped, and counted at the end."
	$(PYTEST) $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile --no-loadscope-reorder) $(ARGS)

test-system: ## install the system packages that some tests need (Chromium, PHP, strace), with sudo if you are not root
	@tests/system_packages.sh

check: .venv/dev ## lint, formatting, types, imports, unused code, and that every test module can be loaded
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/vulture
	@$(PYTEST) --collect-only > .venv/collected || { grep -v '::' .venv/collected; exit 1; }

fix: .venv/dev ## apply the fixes of the linter and the formatter
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/dev .venv/peers/ready ## measure the speed, and compare it with the limits of this machine; writes bench/RESULTS.md
	@echo "Measuring each call of the merchant API on this machine, for about ten minutes. Leave it alone meanwhile."
	$(BIN)/python -m bench $(ARGS)

faults: .venv/dev tools ## inject a fault at every step, plant bugs, then kill and stop processes for minutes on a bad network; prints its seeds
	FAULTS_LONG=1 $(PYTEST) tests/faults
	FAULTS_LONG=1 $(PYTEST) tests/core tests/properties tests/hostile tests/web/api/test_schemathesis.py
	FAULTS_LONG=1 $(PYTEST) -o faulthandler_timeout=0 tests/rails/stripe/test_stripe_campaign.py
	FAULTS_LONG=1 $(PYTEST) -o faulthandler_timeout=0 -s tests/flows/payout/test_campaign.py
	$(BIN)/python tests/faults --seconds 300 $(ARGS)
	$(BIN)/python tests/faults --retries 10000 $(ARGS)

failovers: .venv/dev ## kill, freeze and switch a PostgreSQL primary 20 times under load (Debian 12)
	$(BIN)/python tests/deploy/failovers.py $(ARGS)

screenshots: .venv/dev tools ## take screenshots of every page and state, into .data/screenshots
	$(BIN)/python tests/pictures/screenshots.py .data/screenshots
	$(BIN)/python tests/pictures/sdk.py .data/screenshots

lock: .venv/dev ## recompile the lock files from pyproject.toml
	$(COMPILE) --extra build --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra build --extra dev --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml

sdk: ## build pay.js and page.js from sdk/ into the service, and test them (needs Node 20)
	cd sdk && npm ci --ignore-scripts && npm run build && npm test

reference: ## copy the API reference from reference/ into the service (needs Node 20)
	cd reference && npm ci --ignore-scripts --loglevel=error && npm run build

clean: ## remove what the targets have installed; the data stays
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis build src/*.egg-info sdk/node_modules reference/node_modules tests/openapi/node_modules tests/oidc/node_modules

# These targets never ask for a password; `make test-system` may.
tools:
	@tests/system_packages.sh --if-free

# A Debian without python3-venv has no ensurepip. Then the machine's own pip fills the environment.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Cuota needs Python 3.11 or later; $(PYTHON) is older. Set PYTHON=python3.11."; exit 1; }
	@$(PYTHON) -m venv --without-pip .venv

.venv/run: .venv/bin/python requirements.lock pyproject.toml
	@echo "Setting up .venv from requirements.lock (once; a minute or so)..."
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e . 2>&1 | grep -v -e '^ ' -e '^$$' || true
	@$(BIN)/cuota --help >/dev/null
	@touch $@

.venv/dev: .venv/bin/python requirements-dev.lock pyproject.toml
	@echo "Setting up .venv with what the tests need, from requirements-dev.lock (once; a few minutes)..."
	@$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e . 2>&1 | grep -v -e '^ ' -e '^$$' || true
	@$(BIN)/cuota --help >/dev/null
	@touch $@ .venv/run

# The linter and the client generators that the tests run on the OpenAPI document (Node 20).
tests/openapi/node_modules: tests/openapi/package-lock.json
	@echo "Setting up the OpenAPI generators in tests/openapi (once)..."
	@cd tests/openapi && npm ci --ignore-scripts --loglevel=error
	@touch $@

# The OpenID Connect provider at which the tests sign in (Node 20).
tests/oidc/node_modules: tests/oidc/package-lock.json
	@echo "Setting up the OpenID Connect provider in tests/oidc (once)..."
	@cd tests/oidc && npm ci --ignore-scripts --loglevel=error
	@touch $@

# Other systems, which bench compares with Cuota. Cuota itself does not need them.
.venv/peers/ready: .venv/dev bench/peers/requirements.lock
	@echo "Setting up .venv/peers (once)..."
	@$(PYTHON) -m venv --without-pip .venv/peers
	@$(PYTHON) -m pip --python .venv/peers/bin/python --disable-pip-version-check install --quiet \
		--require-hashes -r bench/peers/requirements.lock
	@touch $@
