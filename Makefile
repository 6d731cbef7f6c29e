# make setup   what is needed from Debian        make demo    the main job on this machine
# make test    build, then every check and test  make bench   the benchmarks of docs/benchmarks.md
# make fuzz    every fuzz target, FUZZ_SECONDS=60 each

CARGO ?= cargo
# A C compiler for the crates that have C in them, libbpf's libraries, what the kernel's controls are compiled with, then the programs that tests, demo and benchmarks play against.
PACKAGES := build-essential pkg-config libelf-dev zlib1g-dev clang llvm libbpf-dev nginx-light ffmpeg mpv curl aria2 axel iperf3 iproute2 iputils-ping openssl srt-tools rist-tools
WASM := wasm32-unknown-unknown
# The crates without input and output, which must build where there is none.
CORE := anabranch-units anabranch-congestion anabranch-stream

.PHONY: help setup build demo test fmt clippy unit doc wasm bench fuzz bpf

help:
	@sed -n 's/^# //p' Makefile | head -3

# Installs what is missing where that is possible without a question, else says what to type.
setup:
	@missing=$$(for package in $(PACKAGES); do \
		dpkg-query -W -f '$${db:Status-Status}' $$package 2>/dev/null | grep -qx installed || echo $$package; \
	done); \
	[ -z "$$missing" ] && exit 0; \
	set -- apt-get install -y --no-install-recommends $$missing; \
	if ! command -v apt-get >/dev/null; then \
		echo "This is no Debian: install the counterparts of" $$missing; \
	elif [ "$$(id -u)" = 0 ]; then \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive "$$@" -q; \
	elif sudo -n true 2>/dev/null; then \
		sudo apt-get update -q && sudo DEBIAN_FRONTEND=noninteractive "$$@" -q; \
	else \
		echo "Some programs that are used here are not installed. Type this, then make again:"; \
		echo "    sudo apt-get update && sudo $$*"; exit 1; \
	fi
	@command -v $(CARGO) >/dev/null || { echo "No Rust toolchain: see https://rustup.rs (1.95 or later)"; exit 1; }

build: setup
	$(CARGO) build --locked --release -p anabranch

demo: build
	$(CARGO) run --locked --release -q -p anabranch -- demo

test: setup fmt clippy unit doc wasm

fmt:
	@if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt --all --check; \
	else echo "NOT CHECKED: the format, because rustfmt is missing (rustup component add rustfmt)"; fi

clippy:
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
		$(CARGO) clippy --locked --workspace --all-targets -- -D warnings; \
	else echo "NOT CHECKED: lints, because clippy is missing (rustup component add clippy)"; fi

unit:
	$(CARGO) test --locked --workspace

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

wasm:
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM)" ]; then \
		$(CARGO) check --locked --target $(WASM) $(CORE:%=-p %); \
	else echo "NOT CHECKED: that the core builds without a system, because its target is missing (rustup target add $(WASM))"; fi

# BENCH="--only a,serve" for a part; BENCH=--write for the tables of docs/benchmarks.md.
bench: PACKAGES += ns2
bench: setup
	$(CARGO) build --locked --release -p anabranch -p anabranch-testbed
	bench/run $(BENCH)

# The kernel's congestion controls, which are kept compiled.
bpf:
	crates/kernel/build-object

fuzz: setup
	fuzz/run
