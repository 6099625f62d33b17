# Every target sets up what it needs by itself. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The newest Python of this machine that we support.
PYTHON ?= $(shell for v in 3.14 3.13 3.12 3.11 3; do p=$$(command -v python$$v) && \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROTO_OUT := src/hami_mock/kubelet/_proto

.PHONY: help setup demo test test-all native judges browser e2e e2e-ci e2e-all e2e-prepare fleet fleet-demo fleet-bench lint format fuzz soak load bench picture pictures binary proto references lock sbom clean

help: ## show this list
	@grep -hE '^[a-z][a-z0-9-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
		awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with hami-mock and all tools in it

$(READY): requirements/dev.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (set PYTHON=/path/to/python3)"; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { echo "the venv module of Python is needed (Debian: apt-get install python3-venv)"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## see it work here, without a cluster
	@$(BIN)/hami-mock demo

test: $(READY) ## run all tests that need no cluster, and print their coverage
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/driver.txt
	@$(BIN)/coverage erase
	@# Side by side: one computes while the other waits for sockets.
	@mkdir -p build; $(BIN)/coverage run -m pytest tests/unit >build/unit-tests.log 2>&1 & unit=$$!; \
		trap 'kill $$unit 2>/dev/null || true' EXIT; \
		failed=0; $(BIN)/coverage run -m pytest tests/integration tests/prometheus tests/driver || failed=$$?; \
		wait $$unit || failed=$$?; cat build/unit-tests.log; exit $$failed
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

test-all: ## run the tests on every Python from 3.11 to 3.14 that this machine has
	@for v in 3.11 3.12 3.13 3.14; do p=$$(command -v python$$v) && $$p --version >/dev/null 2>&1 \
		|| { echo "== Python $$v: not on this machine"; continue; }; \
		echo "== Python $$v"; $(MAKE) VENV=.venv-$$v PYTHON=$$p .venv-$$v/.ready; .venv-$$v/bin/python -m pytest; done

native: $(READY) ## compile the driver's library and nvidia-smi, for this machine and for arm64
	@command -v aarch64-linux-gnu-gcc >/dev/null || $(BIN)/python -m pip install --quiet \
		--disable-pip-version-check --require-hashes -r requirements/native.txt
	@$(BIN)/python hatch_build.py

e2e: $(READY) ## prove it on a real Kubernetes 1.35, made and removed here (needs root)
	@$(MAKE) e2e-on-oldest

E2E_TESTS := tests/e2e
# Once is enough for what doesn't depend on the release.
ONCE := chart driver hami labels observed preparing releases requirements teardown under_pressure
NOT_AGAIN := $(ONCE:%=--ignore=tests/e2e/test_%.py)

e2e-ci: $(READY) ## the same on Kubernetes 1.35 and 1.37, side by side
	@mkdir -p build; $(MAKE) e2e-on-newest E2E_FLAGS="$(NOT_AGAIN)" >build/e2e-newest.log 2>&1 & newest=$$!; \
		trap 'kill $$newest 2>/dev/null || true' EXIT; \
		failed=0; $(MAKE) e2e-on-oldest E2E_FLAGS=--ignore=tests/e2e/test_teardown.py || failed=$$?; \
		wait $$newest || failed=$$?; cat build/e2e-newest.log; exit $$failed
	@# Alone: it looks for what a cluster leaves on the machine, and a second one would be found.
	@$(MAKE) e2e-on-oldest E2E_TESTS=tests/e2e/test_teardown.py

e2e-all: e2e-ci ## the same on Kubernetes 1.36 too, CDI on containerd 2, and what takes minutes to wait for
	@$(MAKE) e2e-on-between E2E_FLAGS="$(NOT_AGAIN)"
	@for release in oldest newest; do $(MAKE) e2e-on-$$release E2E_FLAGS="--slow -m slow"; done

e2e-on-%: $(READY)
	@$(BIN)/python -m pytest $(E2E_TESTS) -v --durations=10 -o faulthandler_timeout=400 --kubernetes $* $(E2E_FLAGS)

RELEASES := oldest newest
e2e-prepare: $(READY) ## compile now what e2e-ci and judges need, once; takes minutes (RELEASES=all: e2e-all)
	@$(BIN)/python -m tests.e2e.harness prepare $(RELEASES:%=--kubernetes=%) $(if $(filter all,$(RELEASES)),--cdi)
	@$(BIN)/python -m tests.judges

fleet-demo: $(READY) ## see 1,000 nodes on a control plane of their own, pods, and a rack that fails
	@$(BIN)/python -m tests.e2e.harness prepare --fleet
	@$(BIN)/hami-mock fleet demo

fleet: $(READY) ## prove a fleet on a real control plane with KWOK: 1,000 nodes (needs no root)
	@$(BIN)/python -m pytest tests/fleet -v --durations=10 -o faulthandler_timeout=400

fleet-bench: $(READY) ## measure 5,000 nodes, their pods, Kueue's quota and what-if, beside targets and peers
	@$(BIN)/python -m tests.e2e.harness prepare --fleet --kueue
	@$(BIN)/python -m bench.fleet

# What native/ is now, where a client finds it.
.PHONY: compiled
compiled: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .

judges: compiled native ## let NVIDIA's own programs and other clients of NVML look at the driver
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/driver.txt
	@# Where `make test` runs first, NVIDIA's nvidia-smi isn't there yet to be compared with ours.
	@$(BIN)/python -m pytest tests/judges tests/driver/test_smi_real.py --durations=5

browser: $(READY) ## see the page in Chromium (PICTURES=DIR keeps its pictures)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt
	@$(BIN)/python -m tests.browser.program
	@HAMI_MOCK_PICTURES=$(PICTURES) $(BIN)/python -m pytest tests/browser

lint: $(READY) ## check style, types, who imports whom, and generated code
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/python tools/generate.py --check
	@$(BIN)/python tools/native_header.py --check
	@$(BIN)/python tools/references.py --check

format: $(READY) ## put the code into its usual form
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

fuzz: $(READY) ## give every parser and socket a million bad inputs (FUZZ_SECONDS=60: for a minute)
	@$(BIN)/python -m tests.fuzz $(if $(FUZZ_SECONDS),--seconds $(FUZZ_SECONDS)) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

soak: $(READY) ## see that nothing grows in 30 minutes of trouble (SOAK_MINUTES=2: in two)
	@$(BIN)/python -m bench.soak $(if $(SOAK_MINUTES),--minutes $(SOAK_MINUTES)) $(if $(SOAK_SEED),--seed $(SOAK_SEED))

load: $(READY) ## allocate as fast as can be, on one agent and on 16, beside the last figures
	@$(BIN)/python -m bench.load

bench: compiled ## measure start, lists, memory and CPU against grpc.aio + protobuf
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/driver.txt
	@$(BIN)/python -m bench

picture: $(READY) ## record the demo and draw docs/picture.svg
	@$(BIN)/python tools/picture.py

pictures: $(READY) ## draw docs/pictures/ from two simulated hours and a real Prometheus
	@$(BIN)/python -m tools.pictures

.PHONY: fleet-picture
fleet-picture: $(READY) ## draw docs/pictures/fleet-page.png: the page of 5,000 nodes, in Chromium
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt
	@$(BIN)/python -m tools.pictures.fleet_page

binary: $(READY) ## make dist/hami-mock, a single file that needs no Python
	@$(BIN)/python tools/make_binary.py

proto: $(READY) ## generate the gRPC code and native/layout.h again
	@$(BIN)/python tools/generate.py
	@$(BIN)/python tools/native_header.py

references: $(READY) ## write docs/flags.md, schemas/ and docs/observability.md's tables again
	@$(BIN)/python tools/references.py

lock: ## choose the newest allowed versions anew and write requirements/*.txt
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv; }
	@build/lock/bin/python tools/lock.py

sbom: $(READY) ## write dist/*.cdx.json, what the image installs, and check the licences
	@$(BIN)/python tools/sbom.py

clean: ## remove all that the other targets made
	@rm -rf .venv .venv-* build dist src/hami_mock/_native .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
