# The whole developer manual: `make demo` runs the main job, `make test` the tests. CI calls the same words.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-nojit test-lbs lint bench soak results docs clean help

help:
	@echo "make demo   simulate a town and run the main job (out/demo)"
	@echo "make test   the test suite      make lint   ruff and mypy"
	@echo "make test-nojit  coverage of the compiled kernels, by running them as plain Python"
	@echo "make test-lbs  decoys at a real geocoder, Nominatim (about 2 minutes)"
	@echo "make bench  speed and growth    make soak   tests that take longer than a coffee"
	@echo "make docs   the site, in build/site: open build/site/index.html"
	@echo "make results  the tables of docs/results.md, printed, and docs/certificate.csv, measured anew on ../shared (hours)"

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

# what the package needs to run, and what its tests need on top
$(VENV)/runs: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo "installing elsewhere into $(VENV): about a minute"
	$(PIP) .
	@touch $@

$(VENV)/installed: $(VENV)/runs
	$(PIP) '.[dev]'
	@touch $@

demo: $(VENV)/runs
	@echo "the first run compiles for about a minute, and then works for about another"
	$(BIN)/elsewhere demo -o out/demo --force

# two workers of one thread each; a file of tests stays with one of them, so that what its tests share is made once;
# long files come first (tests/conftest.py)
test: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder \
		-m "not soak and not lbs" $(ARGS)

# coverage does not see compiled code: the tests that compare kernels with their slow twins once more, as plain Python,
# where unsigned numbers warn when they wrap around; frequencies of many draws would take minutes
TWINS := twin or definition or defined or naive or golden or enumeration or double_loop or by_hand or published_answers \
	or from_positions or slope or small_cases or all_mappings or start_value or brute_force or many_places or a_stream \
	or exact_viterbi or the_path_of or ffbs or are_the_smallest or service_sees or its_point_of_the_sum \
	or in_reach_and_beyond or by_the_law or by_proposals
test-nojit: $(VENV)/installed
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run --include='*_kernels.py' -m pytest -q \
		-W "ignore:overflow encountered" -m "not soak and not lbs and not browser" \
		-k "($(TWINS)) and not frequencies and not first_try" $(ARGS)
	$(BIN)/python -m coverage report

# decoys at a real geocoder, about 2 minutes; where it cannot be installed the tests say that they were skipped
test-lbs: $(VENV)/installed
	PYTHON=$(PYTHON) .ci/nominatim $(VENV)-nominatim || echo "Nominatim cannot be installed here"
	$(BIN)/python -m pytest -q -m lbs tests/test_nominatim.py $(ARGS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed
	$(BIN)/python bench/paper_speed.py
	$(BIN)/python bench/scale.py $(or $(ARGS),--judge)

soak: $(VENV)/installed
	$(BIN)/python -m pytest -q -s -m soak $(ARGS)

results: $(VENV)/installed
	$(BIN)/python bench/results.py $(ARGS)
	$(BIN)/python bench/certificate.py

docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open build/site/index.html, or with the search: $(PYTHON) -m http.server -d build/site"

# with the caches of compiled kernels, which numba keeps in __pycache__
clean:
	rm -rf $(VENV) $(VENV)-nominatim out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .coverage
	find src tests bench -name __pycache__ -prune -exec rm -rf {} +
