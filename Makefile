# Everything that can be run here. `make` alone shows it.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo demo-reset test test-api check walkthrough model-check mutants red kill-each kills outages bad-agent notices due simulate model storm bench test-browser clean

VENV := .venv
IN_VENV := $(VENV)/bin/python
RUN_DIR := $(or $(AFTERSEND_RUN_DIR),.run)
TO_RUN := $(VENV)/.set-up-embedded
TO_TEST := $(VENV)/.set-up-embedded+test+browser
TO_CHECK := $(VENV)/.set-up-embedded+test+browser+lint

help:  ## show this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

demo: $(TO_RUN)  ## start everything on this machine and print address and logins; Ctrl-C stops
	@$(IN_VENV) -m config.supervisor

demo-reset: $(TO_RUN)  ## forget what the demo stored; the next `make demo` starts afresh
	@$(IN_VENV) -m config.embedded forget

test: $(TO_TEST)  ## run the whole suite on servers of its own
	@mkdir -p $(RUN_DIR)
	@$(IN_VENV) -m pytest -n 2 --dist worksteal -rs --junitxml=$(RUN_DIR)/junit.xml; \
	  ended=$$?; $(IN_VENV) -m config.embedded stop test; exit $$ended

test-api: $(TO_TEST)  ## 5,000 generated calls against a real process: it is as its document says; API_SEED= API_CASES=
	@API_CASES=$(or $(API_CASES),5000) $(IN_VENV) -m pytest tests/api_schema -n 0 -s -p no:randomly; \
	  ended=$$?; $(IN_VENV) -m config.embedded stop test; exit $$ended

check: $(TO_CHECK)  ## formatting, lint, types, layers, templates, migrations, production settings
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(VENV)/bin/mypy .
	$(VENV)/bin/lint-imports
	find templates -name '*.html' -print0 | xargs -0 -r $(VENV)/bin/djade --check
	@# Models against migration files; that no database runs here is nothing to warn of.
	AFTERSEND_ENV=test $(IN_VENV) -W ignore::RuntimeWarning manage.py makemigrations --check
	$(AS_IN_PRODUCTION) $(IN_VENV) manage.py check --deploy --fail-level WARNING

walkthrough: $(TO_TEST)  ## a support afternoon with lost answers and killed workers, for real
	@$(IN_VENV) -m tests.walkthrough

model-check: $(TO_TEST)  ## decide against its restatement, every situation; ATTEMPTS=2 or 3
	@$(IN_VENV) -m tests.model.check

model: $(TO_TEST)  ## the protocol itself, every state; each rule left out must hurt. REPLAY=1: out of the engine; TRACES=1: which test
	@$(IN_VENV) -m tests.model.protocol; \
	  ended=$$?; if [ -n "$(REPLAY)" ]; then $(IN_VENV) -m config.embedded stop test; fi; exit $$ended

mutants: $(TO_TEST)  ## change what decides, one line at a time, and see the tests notice; EVERY=n for a sample
	@$(IN_VENV) -m tests.mutants

red: $(TO_TEST)  ## break guard after guard and see the tests notice
	@$(IN_VENV) -m tests.red; \
	  ended=$$?; $(IN_VENV) -m config.embedded stop test; exit $$ended

bad-agent: $(TO_TEST)  ## ten thousand hostile calls (CALLS=, SEED=) against the refunds that were really wanted
	@$(IN_VENV) -m tests.bad_agent

notices: $(TO_TEST)  ## a storm of notices (DELIVERIES=, SEED=): doubled, late, forged; every refund ends as the provider has it
	@$(IN_VENV) -m tests.notices; \
	  ended=$$?; $(IN_VENV) -m config.embedded stop test; exit $$ended

due: $(TO_TEST)  ## refunds of unknown outcome (DUE=10000, SEED=), all due at once: the rate is kept, all of them end
	@$(IN_VENV) -m tests.due_at_once

simulate: $(TO_TEST)  ## the engine in the weather of many seeds (SCHEDULES=, SEED=); MUTATIONS=1: rule after rule taken out (EVERY=, ONLY=)
	@$(IN_VENV) -m tests.simulation; \
	  ended=$$?; $(IN_VENV) -m config.embedded stop test; exit $$ended

storm: $(TO_TEST)  ## refunds (OPERATIONS=, SEED=) while processes are killed (KILLS=), commits cut, databases lost; BROKER=rabbitmq
	@$(IN_VENV) -m tests.storm

bench: $(TO_TEST)  ## what a refund costs, and whether it costs the same among many (SIZE=, ROUNDS=, OPS=); BREAK=
	@$(IN_VENV) -m tests.bench

test-browser: $(TO_TEST)  ## the console in a real browser, on servers of its own
	@mkdir -p $(RUN_DIR)
	@$(IN_VENV) -m pytest tests/browser -n 2 --dist worksteal -rs; \
	  ended=$$?; $(IN_VENV) -m config.embedded stop test; exit $$ended

kill-each: $(TO_TEST)  ## with a running demo: kill each program in turn while refunds go on
	@$(IN_VENV) -m tests.kill_each

kills: $(TO_TEST)  ## senders killed once the provider has paid (OPERATIONS=200, SEED=), keys ignored and honoured; BREAK=requeue
	@$(IN_VENV) -m tests.kills

outages: $(TO_TEST)  ## full disks, no connections, restarts, migrations, an older release beside (ONLY=, SEED=, STOCK=); BREAK=
	@$(IN_VENV) -m tests.outages

clean:  ## remove the environment, the servers and everything they stored
	@if [ -x $(IN_VENV) ]; then $(IN_VENV) -m config.embedded forget; fi
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The values only have the right shape: nothing is contacted.
AS_IN_PRODUCTION := env AFTERSEND_ENV=production \
  AFTERSEND_SECRET_KEY=only-for-checking-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGH \
  AFTERSEND_KEY_PEPPER=only-for-checking-9876543210-abcdefghijklmnopqrstuvwxyz-ABCDEFGH \
  AFTERSEND_HOSTS=refunds.example AFTERSEND_BASE_URL=https://refunds.example \
  DATABASE_URL=postgresql://aftersend@database.example/aftersend \
  CELERY_BROKER_URL=amqps://aftersend@broker.example// \
  CACHE_URL=rediss://cache.example/1 \
  AFTERSEND_EMAIL_URL=smtps://mail.example AFTERSEND_EMAIL_FROM=refunds@refunds.example

# Set-up. A stamp names the dependency groups that the environment has; nothing is ever taken out,
# so that `make demo` after `make test` does not undo it.
PYTHON ?= $(shell for name in python3.13 python3 python; do \
  $$name -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null && command -v $$name && break; done)

$(VENV)/bin/uv:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "Python 3.13 was not found. Install it (Debian 13, Ubuntu 25.04: apt install python3.13-venv;" >&2; \
	  echo "elsewhere: pyenv install 3.13, or uv python install 3.13), or say where it is:" >&2; \
	  echo "  make $(MAKECMDGOALS) PYTHON=/path/to/python3.13" >&2; exit 1; fi
	@echo "Setting up $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.13.9,<0.14'

$(VENV)/.set-up-%: pyproject.toml refunds/mcp_client/pyproject.toml uv.lock | $(VENV)/bin/uv
	@$(VENV)/bin/uv sync --quiet --frozen --inexact --no-python-downloads \
	  $(foreach group,$(subst +, ,$*),--group $(group))
	@touch $@
