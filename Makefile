# Each target is one line a person could type, and sets up what it needs: a fresh machine has only Python and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo digits test test-extras check bench mutants results clean

demo: .venv/ready  ## CE, GM and VC on scikit-learn's digits, three seeds each, evaluated: ends with the path of a page
	$(BIN)/varclass compare digits --seeds 3 --suite clean,shift,ood,adversarial,latents --ood noise --samples 200 \
		--severities 1,3,5 --epsilons 0.02,0.05,0.1,0.2 --runs-dir demo/runs --output demo/report.html

digits: .venv/ready  ## the heads by hand in a plain loop, softmax beside them: a table and a picture
	$(BIN)/python examples/digits.py

test: .venv/ready  ## everything that must hold
	$(BIN)/python -m pytest

test-extras:  ## each optional extra alone in its own environment; minutes, and a download of torch for each
	$(PYTHON) tests/extras.py

check: .venv/ready  ## lint, format, types, import contracts
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: .venv/ready  ## time and memory of the head and of a training step against softmax, side by side
	$(BIN)/python benchmarks/head.py
	$(BIN)/python benchmarks/train.py

mutants: .venv/ready  ## break the core in one line at a time; the tests must notice every time
	$(BIN)/python tests/mutants.py

results: .venv/ready  ## docs/results.md and the README's table from results/paper
	$(BIN)/python results/render.py

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:  ## remove the environment and every cache
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
