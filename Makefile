.PHONY: setup check test browser bench docs fix build vendor screenshots constraints

setup: ## everything a developer needs
	uv sync
	npm install --no-package-lock --no-audit --no-fund

check: ## lint, format, types, import contracts, front-end lint
	uv run ruff check
	uv run ruff format --check
	uv run mypy
	uv run lint-imports
	npx --no-install biome ci

test: ## the whole suite
	uv run pytest

browser: ## only what drives Chromium
	uv run pytest tests/browser

bench: ## measure the budgets, side by side, and print a table
	uv run --group bench python -m bench

docs: ## write the generated pages anew
	uv run python -m tools.docs

fix: ## what can be put right by machine
	uv run ruff check --fix
	uv run ruff format
	npx --no-install biome check --write

build: ## wheel and source archive into dist/
	uv build

vendor: ## fetch the pinned front-end libraries and write their manifest
	uv run python -m tools.vendor

screenshots: ## every page in both themes, into docs/images/
	uv run python -m tools.screenshots

constraints: ## pin what is installed now, after a green run
	uv run python -m tools.constraints
