# Each target sets up what it needs: .venv is made by python -m venv and filled by pip, again only when
# pyproject.toml, constraints.txt or the native core changed.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

NATIVE := setup.py $(wildcard src/prpn/kernels/native/*)
CPP := $(wildcard src/prpn/kernels/native/*.cpp src/prpn/kernels/native/*.h tests/kernels/*.cpp)
PACKAGE := setup.py $(shell find src/prpn -type f ! -name '*.so' ! -path '*/__pycache__/*')
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: install demo test test-tiles test-without-compiler sanitize sanitize-threads attacks check format bench tables clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -c 'import sys; sys.exit("prpn needs Python 3.11 or newer; say make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -c constraints.txt -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/python -m prpn.demo

test: $(STAMP)
	$(BIN)/python -m pytest

# The native core for AMX, its tile instructions emulated one by one where the processor has none.
test-tiles: $(STAMP)
	$(BIN)/python -m pytest -p no:faulthandler -p tests.kernels.emulated_tiles \
	$(addprefix tests/kernels/test_,product.py reading.py decoding.py whole_model.py)

# The package as a machine without a compiler would build it, and what must work there all the same.
build/bare: $(STAMP) $(PACKAGE)
	rm -rf $@ build/lib* build/temp* build/bdist*
	CC=no-compiler CXX=no-compiler $(INSTALL) --no-deps --target $@ .
	test -z "$$(find $@ -name '_native_*')"

test-without-compiler: build/bare
	PYTHONPATH=build/bare $(BIN)/python -m pytest tests/kernels tests/cli tests/model tests/parsing

# The native core with every memory access and every undefined operation checked, its tests with threads included.
SANITIZERS := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
build/sanitized: $(STAMP) $(PACKAGE)
	rm -rf $@ build/lib* build/temp* build/bdist*
	CFLAGS='$(SANITIZERS)' CXXFLAGS='$(SANITIZERS)' LDFLAGS='$(SANITIZERS)' $(INSTALL) --no-deps --target $@ .
	nm -D $@/prpn/kernels/_native_avx2*.so | grep -q __asan
	nm -D $@/prpn/kernels/_native_avx2*.so | grep -q __ubsan

SANITIZED := PYTHONPATH=build/sanitized ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" $(BIN)/python
sanitize: build/sanitized
	$(SANITIZED) -m pytest -p no:cacheprovider tests/kernels
	$(SANITIZED) -m tests.attacks --parsing --cases 60

# Model folders of strangers, far more of them than in the tests.
attacks: $(STAMP)
	$(BIN)/python -m tests.attacks --cases 2000 --jobs 2

# Parsing in several Python threads at once, every access to memory watched. It needs addresses as they are without
# randomising, where there are more random bits than the sanitizer of an older compiler expects.
WATCHED := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
build/watched: $(STAMP) $(PACKAGE)
	rm -rf $@ build/lib* build/temp* build/bdist*
	CFLAGS='$(WATCHED)' CXXFLAGS='$(WATCHED)' LDFLAGS='$(WATCHED)' $(INSTALL) --no-deps --target $@ .
	nm -D $@/prpn/kernels/_native_avx2*.so | grep -q __tsan

sanitize-threads: build/watched
	PYTHONPATH=build/watched OMP_NUM_THREADS=3 OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS='halt_on_error=1 exitcode=66' \
	LD_PRELOAD="$$(gcc -print-file-name=libtsan.so)" setarch "$$(uname -m)" -R $(BIN)/python -m tests.attacks.threads --sentences 4000 --threads 8

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

bench: $(STAMP)
	$(BIN)/python -m benchmarks --json results/benchmarks/benchmark.json --plot docs/growth.svg

tables: $(STAMP)
	$(BIN)/python -m prpn.report.tables README.md docs/evaluation.md docs/speed.md docs/reproduction.md docs/log.md docs/recipes.md src/prpn/embedded/english/README.md results

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
