# Each target sets up what it needs: a virtual environment in .venv and, as root, Debian packages.
.PHONY: demo test check bench soak clean

demo:            ## the whole story offline: an agent breaks something, goes back, finishes
	@scripts/setup mini
	@.venv/bin/agentrewind demo $(if $(STRATEGY),--strategy $(STRATEGY)) $(if $(HARNESS),--harness $(HARNESS))

test:            ## all tests, with coverage
	@scripts/setup mini,dev
	.venv/bin/pytest -n 2 --cov --cov-report=term:skip-covered $(ARGS)

check:           ## linters, types, direction of imports, generated documents
	@scripts/setup mini,dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python scripts/cli_reference.py --check

bench:           ## measure snapshots and restores against git, and write docs/benchmarks.md
	@scripts/setup mini,dev
	.venv/bin/python benchmarks/workspace.py $(ARGS)

soak:            ## the property tests, thousands of cases
	@scripts/setup mini,dev
	AGENTREWIND_SOAK=1 .venv/bin/pytest -n 2 tests/properties $(ARGS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
