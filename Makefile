# make setup   what is needed from Debian        make demo    the main job on this machine
# make test    build, then every check and test  make bench   the benchmarks of docs/benchmarks.md
# make fuzz    every fuzz target, FUZZ_SECONDS=60 each
# make soak    every long-running command side by side for HOURS=2: memory, descriptors and connections must stay flat
# make dist   the program as it is released, whole and lean, and whether it has become too large
# make install after make build: program, manual, completions, unit below PREFIX=/usr/local; make uninstall

CARGO ?= cargo
# A C compiler for the crates that have C in them, libbpf's libraries, what the kernel's controls are compiled with, then the programs that tests, demo and benchmarks play against.
PACKAGES := build-essential pkg-config libelf-dev zlib1g-dev clang llvm libbpf-dev nginx-light ffmpeg mpv curl aria2 axel iperf3 iproute2 iputils-ping openssl srt-tools rist-tools
WASM := wasm32-unknown-unknown
# The crates without input and output, which must build where there is none.
CORE := anabranch-units anabranch-congestion anabranch-protocol anabranch-film anabranch-live

.PHONY: help setup build dist demo test fmt clippy unit doc wasm bench fuzz soak bpf install uninstall

help:
	@sed -n 's/^# //p' Makefile | head -6

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

# Bytes that the stripped programs may have: the whole one and the lean one, which has no laboratory.
MOST_WHOLE := 35000000
MOST_LEAN := 12000000

dist: setup
	$(CARGO) build --locked --profile dist -p anabranch --no-default-features
	mv target/dist/anabranch target/dist/anabranch-lean
	$(CARGO) build --locked --profile dist -p anabranch
	@ls -l target/dist/anabranch target/dist/anabranch-lean
	@[ "$$(stat -c %s target/dist/anabranch)" -le $(MOST_WHOLE) ] && [ "$$(stat -c %s target/dist/anabranch-lean)" -le $(MOST_LEAN) ]

demo: build
	$(CARGO) run --locked --release -q -p anabranch -- demo

test: setup fmt clippy unit doc wasm

fmt:
	@if $(CARGO) fmt --version >/dev/null 2>&1; then \
		$(CARGO) fmt --all --check && $(CARGO) fmt --manifest-path fuzz/Cargo.toml --check; \
	else echo "NOT CHECKED: the format, because rustfmt is missing (rustup component add rustfmt)"; fi

clippy:
	@if $(CARGO) clippy --version >/dev/null 2>&1; then \
		$(CARGO) clippy --locked --workspace --all-targets -- -D warnings && \
		$(CARGO) clippy --locked -p anabranch --no-default-features --all-targets -- -D warnings && \
		$(CARGO) clippy --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings; \
	else echo "NOT CHECKED: lints, because clippy is missing (rustup component add clippy)"; fi

unit:
	$(CARGO) test --locked --workspace

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

wasm:
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM)" ]; then \
		$(CARGO) check --locked --target $(WASM) $(CORE:%=-p %); \
	else echo "NOT CHECKED: that the core builds without a system, because its target is missing (rustup target add $(WASM))"; fi

# BENCH="loopback serve" for some of them.
bench: PACKAGES += ns2 valgrind bpftool chromium npm caddy
bench: BENCH ?= all
bench: setup
	$(CARGO) build --locked --release -p anabranch -p anabranch-testbed
	$(PROGRAM) lab bench run $(BENCH)

# The kernel's congestion controls, which are kept compiled.
bpf:
	crates/kernel/build-object

fuzz: setup
	fuzz/run

HOURS ?= 2
soak: build
	bench/soak.py --hours $(HOURS)

# The program, its manual pages, the completions of shells and units of systemd, below $(DESTDIR)$(PREFIX). "make build" comes first: this needs no compiler.
PREFIX ?= /usr/local
PROGRAM ?= target/release/anabranch
INSTALL ?= install
SHARE = $(DESTDIR)$(PREFIX)/share
BASH_COMPLETION = $(SHARE)/bash-completion/completions/anabranch
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_anabranch
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/anabranch.fish
UNITS = $(DESTDIR)$(PREFIX)/lib/systemd/system

install:
	@[ -x $(PROGRAM) ] || { echo "There is no $(PROGRAM) yet: make build"; exit 1; }
	$(INSTALL) -D -s -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/anabranch
	$(INSTALL) -d $(SHARE)/man/man1 $(dir $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)) $(UNITS)
	$(INSTALL) -m 644 docs/man/*.1 $(SHARE)/man/man1
	$(PROGRAM) completions bash >$(BASH_COMPLETION)
	$(PROGRAM) completions zsh >$(ZSH_COMPLETION)
	$(PROGRAM) completions fish >$(FISH_COMPLETION)
	for unit in contrib/systemd/*; do sed 's|@BIN@|$(PREFIX)/bin|' $$unit >$(UNITS)/$${unit##*/} || exit 1; done

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/anabranch $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)
	rm -f $(addprefix $(UNITS)/,$(notdir $(wildcard contrib/systemd/*)))
	rm -f $(addprefix $(SHARE)/man/man1/,$(notdir $(wildcard docs/man/*.1)))
