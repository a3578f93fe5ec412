# Each target sets up what it needs: a virtual environment in .venv and, as root, Debian packages.
.PHONY: demo test check bench bench-backup soak clean

# what the tests need: every harness and client, a sandbox for the benchmark's evaluators, a browser for
# the viewer, and the services whose state is lost and brought back
TESTED := mini,smolagents,qwen,langchain,clients,backup,view,bench,ray,dev
DEBIAN := git bubblewrap sqlite3 patch openssl chromium=chromium postgresql dovecot-imapd cron=crontab \
	kubernetes-client=kubectl

comma := ,
EXTRAS_smolagents := smolagents
EXTRAS_qwen-agent := qwen
EXTRAS_langchain := langchain

demo:            ## the whole story offline: an agent breaks something, goes back, finishes; STORY=external
	@scripts/setup $(or $(EXTRAS_$(HARNESS)),mini)$(if $(filter external,$(STORY)),$(comma)backup postgresql)
	@.venv/bin/agentrewind demo $(if $(STORY),--story $(STORY)) $(if $(STRATEGY),--strategy $(STRATEGY)) \
		$(if $(HARNESS),--harness $(HARNESS))

test:            ## all tests, with coverage
	@scripts/setup $(TESTED) $(DEBIAN)
	.venv/bin/pytest -n 3 --cov --cov-report=term:skip-covered $(ARGS)

check:           ## linters, types, direction of imports, generated documents
	@scripts/setup $(TESTED) $(DEBIAN)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/mypy examples benchmarks
	.venv/bin/lint-imports
	.venv/bin/python scripts/cli_reference.py --check

bench:           ## measure snapshots and restores against git, and write docs/benchmarks.md
	@scripts/setup mini,dev
	.venv/bin/python benchmarks/workspace.py --sizes 1000,10000 --write docs/benchmarks.md $(ARGS)

bench-backup:    ## measure how much of a lost state comes back, per tool, and write docs/backup.md
	@scripts/setup $(TESTED) $(DEBIAN)
	PYTHONPATH=. .venv/bin/python benchmarks/backup.py --write docs/backup.md

soak:            ## the property tests, thousands of cases, and the tests that take long
	@scripts/setup $(TESTED) $(DEBIAN)
	AGENTREWIND_SOAK=1 AGENTREWIND_SEQUENCES=3000 .venv/bin/pytest -n 2 tests/properties $(ARGS)
	AGENTREWIND_LONG=1 .venv/bin/pytest -n 2 $$(sed '/^\#/d; s/\[.*//' tests/long.txt | sort -u) $(ARGS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
