# `make demo` shows the main job, `make test` proves it, `make cpus` tests numbers on imitated processors, `make slow` tests
# what takes longer: whole subprocesses and reports, killed workers, real servers, `make first` those that every change runs,
# `make exhaustive` every case of the tables of which the others run a part, and more examples of every fast law, `make docs`
# builds the documentation into site/. Each makes .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE = 1
export HF_EVALUATE_OFFLINE = 1
export TOKENIZERS_PARALLELISM = false
# The embedded model is too small for two threads, and tests run side by side.
export OMP_NUM_THREADS = 1
# Many tests start processes: compile the package and the tests once, whatever the shell says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo docs test lint types tests cpus first slow harness label-studio exhaustive oldest newest clean

demo: $(VENV)/core
	$(BIN)/seesaw-cf audit seesaw-tiny --editor memit --control random --control-seeds 1 --limit 80 --people-per-edit 100 \
		--config cross_subject --config cross_property --out runs/demo

test: lint types tests

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

types: $(VENV)/dev
	$(BIN)/mypy -n 2 -p seesaw_cf -p tests

tests: $(VENV)/dev
	$(BIN)/python -m pytest -m "not slow" -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# Tests whose numbers could depend on the processor, a minute of them, on imitated ones: without vector instructions; with
# another order of sums and two threads (which do not spin while they wait: there are more of them than cores).
CPU_TESTS := tests/golden/test_closed_forms.py tests/golden/test_golden.py::test_run_in_float32 \
	tests/editors/test_zero.py tests/editors/test_mend_golden.py \
	tests/core/test_scoring.py tests/scoring/test_trie_scorer.py tests/scoring/test_edited.py tests/scoring/test_noise.py \
	tests/stats/test_clustered.py tests/effects/test_groups.py \
	tests/runner/test_runner.py
CPU_PYTEST = $(BIN)/python -m pytest -m "not slow" -n auto --maxprocesses 8 --dist worksteal $(CPU_TESTS)

cpus: $(VENV)/dev
	ATEN_CPU_CAPABILITY=default $(CPU_PYTEST)
	ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=COMPATIBLE OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive $(CPU_PYTEST)

SLOW_PYTEST = $(BIN)/python -m pytest -m "slow and not exhaustive" -n auto --maxprocesses 8 --dist loadscope --no-loadscope-reorder
slow: $(VENV)/dev
	$(SLOW_PYTEST)

# What a stranger meets (the README's commands, the wheel, pages in a browser, the site), numbers of the papers, killed runs.
FIRST_TESTS := 'tests/docs/test_snippets.py::test_every_command_and_snippet_runs_in_order[README.md]' \
	tests/core/test_distribution.py tests/pages/test_in_browser.py tests/docs/test_site.py \
	tests/api tests/golden tests/report/test_goldens.py tests/report/test_several.py tests/report/test_sequence.py \
	tests/models/test_identity.py tests/runner/test_runner.py \
	tests/study/test_study.py::test_killed_and_extended_by_an_editor_it_is_reported_like_one_made_in_one_go
first: $(VENV)/dev
	$(SLOW_PYTEST) $(FIRST_TESTS)

# lm_eval wants other versions of some packages: it comes on top of .venv, in an environment of its own.
HARNESSES := $(shell grep -E '^lm_eval==' constraints.txt)
harness: $(VENV)/dev
	$(BIN)/python -m venv $(VENV)-harness
	cd $(VENV)-harness/lib/python3*/site-packages && ls -d $(CURDIR)/$(VENV)/lib/python3*/site-packages > tests.pth
	$(VENV)-harness/bin/pip install --quiet --no-compile $(HARNESSES)
	PYTHONPATH=$(CURDIR) $(VENV)-harness/bin/python -m pytest -n 0 tests/harnesses

# A real Label Studio on loopback, in an environment of its own (1 GB): it takes the tasks of all five kinds and gives them back.
label-studio: $(VENV)/dev
	$(BIN)/python -m venv $(VENV)-label-studio
	$(VENV)-label-studio/bin/pip install --quiet --no-compile label-studio==1.23.2
	LABEL_STUDIO=$(CURDIR)/$(VENV)-label-studio/bin/label-studio $(BIN)/python -m pytest -n 0 tests/label_studio

exhaustive: $(VENV)/dev
	$(BIN)/python -m pytest -m exhaustive -n auto --maxprocesses 8 --dist worksteal
	SEESAW_CF_EXAMPLES=300 $(BIN)/python -m pytest -m "not slow" -n auto --maxprocesses 8 --dist loadfile

# The fast tests, and the slow ones of tables and pages, with the oldest packages that setup.cfg allows, and with the newest
# there are; torch stays as it is pinned.
oldest newest: $(BIN)/python
	$(PYTHON) -m venv $(VENV)-$@
	$(VENV)-$@/bin/pip install --quiet --no-compile torch==2.13.0 uv
	$(VENV)-$@/bin/uv pip install --quiet --python $(VENV)-$@/bin/python \
		--resolution $(if $(filter oldest,$@),lowest-direct,highest) --editable '.[test]' torch==2.13.0
	$(VENV)-$@/bin/python -m pytest -m "not slow" -n auto --maxprocesses 8 --dist loadfile
	$(VENV)-$@/bin/python -m pytest -m "slow and not exhaustive" -n auto --maxprocesses 8 --dist loadscope \
		tests/api tests/effects tests/report tests/study

# Warnings are errors; the site asks nothing of the network. The theme's notice about the next mkdocs is left out.
docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch first: a looser request downloads gigabytes of GPU packages. Modules are compiled when they are first imported.
$(VENV)/torch: $(BIN)/python constraints.txt
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt torch==2.13.0
	touch $@

$(VENV)/core: $(VENV)/torch setup.cfg
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable .
	touch $@

$(VENV)/docs: $(VENV)/core
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[docs]'
	touch $@

# The tests' packages include those of `make demo`.
$(VENV)/dev: $(VENV)/torch setup.cfg
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[test]'
	touch $(VENV)/core $(VENV)/docs $@

clean:
	rm -rf $(VENV) $(VENV)-harness $(VENV)-label-studio $(VENV)-oldest $(VENV)-newest build dist *.egg-info runs report site
