//! `--help` with examples, and the manual pages, from the same definitions.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Cli;

/// A command line and what it does.
type Example = (&'static str, &'static str);

const ALL: &[Example] = &[
    (
        "anabranch play --player mpv https://a.example/film.mp4 https://b.example/film.mp4",
        "Play a film from two servers",
    ),
    ("anabranch fetch https://a.example/film.mp4", "Get it into a file"),
    ("anabranch demo", "See what it does, with nothing to prepare"),
];
const PLAY: &[Example] = &[
    (
        "anabranch play --player mpv https://a.example/film.mp4 https://b.example/film.mp4",
        "Play a film from two servers in mpv",
    ),
    (
        "anabranch play --listen 127.0.0.1:9000 https://a.example/film.mp4",
        "Offer it at http://127.0.0.1:9000/film.mp4, for a player started by hand",
    ),
    (
        "anabranch play --http3-only --player mpv https://a.example/film.mp4",
        "Over QUIC, as from anabranch serve --h3",
    ),
    (
        "anabranch play --rate 3M --interface eth0 --interface wwan0 --player 'mpv {}' \
         https://a.example/film.ts",
        "Hold 3 Mbit/s over two interfaces",
    ),
    (
        "anabranch play --algorithm basic --preset table8.1 --connections 5 --stats run.jsonl \
         https://a.example/film.mp4",
        "The thesis's basic algorithm, with a record of every decision",
    ),
];
const FETCH: &[Example] = &[
    (
        "anabranch fetch https://a.example/film.mp4 https://b.example/film.mp4",
        "Get film.mp4 from two servers; the same command goes on where it was stopped",
    ),
    (
        "anabranch fetch --rate 8M -o - https://a.example/film.ts | ffplay -",
        "Hand it on, in order, at 8 Mbit/s",
    ),
    (
        "anabranch fetch --digest sha-256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 \
         https://a.example/film.mp4",
        "Check the whole at the end",
    ),
];
const PROXY: &[Example] = &[
    ("anabranch proxy", "Start it, and then"),
    ("mpv http://127.0.0.1:8090/https://a.example/live/index.m3u8", "play any URL through it"),
];
const SERVE: &[Example] = &[
    (
        "anabranch serve /srv/films --http 0.0.0.0:80 --https 0.0.0.0:443 --cert chain.pem --key key.pem",
        "Serve films to everyone",
    ),
    (
        "anabranch serve /srv/films --https 0.0.0.0:443 --h3 0.0.0.0:443 --cert chain.pem --key key.pem \
         --congestion ttfwc:0.9",
        "Over HTTP/3 as well, sent smoothly, and HTTPS tells clients of it",
    ),
    (
        "anabranch serve /srv/films --h3 0.0.0.0:443 --cert chain.pem --key key.pem --congestion reno \
         --weights weights.toml",
        "Give some clients more than others of what all together get",
    ),
    (
        "anabranch serve /srv/films --http 0.0.0.0:80 --weights weights.toml",
        "The same over TCP, as root and after 'anabranch cc load group'",
    ),
    ("anabranch serve . --access-log -", "Serve this directory to this machine, and see who asks"),
];
const SEND: &[Example] = &[
    (
        "anabranch send --to studio.example:9000 --fingerprint \
         9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --input udp://127.0.0.1:5000",
        "Send what an encoder sends to port 5000",
    ),
    (
        "anabranch send --to studio.example:9000 --token-file secret --input film.ts --fec 61,50 \
         --latency 1s",
        "Send a file at the rate of its clock, with parity, and be let in by a secret",
    ),
    (
        "anabranch send --to studio.example:9000 --token-file secret --input udp://127.0.0.1:5000 \
         --group cameras --weight 4",
        "Share this machine's uplink with the other senders of the group, four times as much as one of weight 1",
    ),
];
const RECEIVE: &[Example] = &[
    ("anabranch receive --listen 0.0.0.0:9000 --player 'ffplay {}'", "See what comes"),
    (
        "anabranch receive --listen 0.0.0.0:9000 --keep --hls live",
        "HLS for many viewers, which 'anabranch serve live' or any web server gives them",
    ),
    (
        "anabranch receive --listen 0.0.0.0:9000 --keep --senders 3 --output camera-{}.ts",
        "Three senders at a time, each into a file of its own",
    ),
    (
        "anabranch receive --listen 0.0.0.0:9000 --keep --token-file secret --output udp://127.0.0.1:6000",
        "Hand it on to a program that takes UDP, one sender after the other",
    ),
];
const SIM: &[Example] = &[
    ("anabranch sim crates/sim/scenarios/dumbbell.toml", "Simulate a scenario, and see what it came to"),
    (
        "anabranch sim --seed 7 --out results --trace packets.pcapng crates/sim/scenarios/stream.toml",
        "With another seed, everything as files, and the packets for Wireshark",
    ),
];
const CC: &[Example] = &[
    ("anabranch cc load ttfwc --tuning 0.9", "Have the kernel know ttfwc, as root; and then"),
    ("iperf3 -C ttfwc -c server.example", "use it for one program, or"),
    ("sysctl net.ipv4.tcp_congestion_control=ttfwc", "for all new connections"),
    ("anabranch cc status", "See the connections that have it"),
];
const CC_LOAD: &[Example] = &[
    ("anabranch cc load ttfwc --tuning 0.9", "TTFWC, nearly as fast as the equation allows"),
    ("anabranch cc load multcp --flows 4", "Connections that count for four each"),
    (
        "anabranch cc load group --weights weights.toml",
        "Connections that share by weights what as many plain ones would get",
    ),
];
const CC_SET: &[Example] = &[("anabranch cc set ttfwc --tuning 0.2", "Make all of its connections smoother")];
const CC_UNLOAD: &[Example] = &[("anabranch cc unload ttfwc", "Take it away")];
const CC_LIST: &[Example] = &[("anabranch cc list", "See what is loaded")];
const CC_STATUS: &[Example] =
    &[("anabranch cc status ttfwc --json", "The connections of ttfwc, for another program")];
const DEMO: &[Example] =
    &[("anabranch demo", "Play a film over one connection, and then over as many as it needs")];
const LAB: &[Example] = &[
    ("anabranch lab list", "See what there is"),
    ("anabranch lab run multitcp rome", "Make the results of two papers again, into lab-results/report.html"),
];
const LAB_RUN: &[Example] = &[
    ("anabranch lab run multitcp-eq6.4", "One experiment"),
    ("anabranch lab run all --seeds 10 --out results", "All of them, with narrower confidence intervals"),
    ("anabranch lab run all --quick", "All of them with one seed, for a look"),
    ("anabranch lab run vps-fig3 --seeds 3 --real", "A figure, and what real programs make of it"),
];
const LAB_READINGS: &[Example] = &[
    ("anabranch lab readings rome", "Every set of what the paper leaves open, the best ones told"),
    (
        "anabranch lab readings multitcp --seeds 2 --out readings",
        "A quicker look, with tables of every set and relation in readings",
    ),
    (
        "anabranch lab readings vps --only 'weights of figure 9'",
        "Other weights there, everything else as in the plans",
    ),
];
const LAB_SWEEP: &[Example] = &[
    ("anabranch lab sweep sweep.toml", "All of it on this machine, into sweep-results/table.csv"),
    (
        "anabranch lab sweep sweep.toml --shard 2/4 --out shared",
        "The second of four shares, into a shared directory",
    ),
];
const LAB_MERGE: &[Example] = &[("anabranch lab merge shared", "The table, when every share is there")];
const LAB_REPORT: &[Example] = &[
    ("anabranch lab report lab-results", "Bind what several runs have left there"),
    (
        "anabranch lab report lab-results --markdown docs/reproduction.md",
        "What reproduces, and why the rest does not, as a page of documentation",
    ),
];
const LAB_COPY: &[Example] =
    &[("anabranch lab copy vps-dilution mine", "Begin an experiment with a copy of a small one")];
const LAB_LIST: &[Example] = &[("anabranch lab list", "Show what can be run")];
const LAB_VALIDATE: &[Example] = &[
    ("anabranch lab validate R2 R6", "Two groups of scenarios, in seconds"),
    ("anabranch lab validate --out docs/validation.md", "All of them, in some minutes, as a page"),
];
const LAB_BENCH: &[Example] = &[
    ("anabranch lab bench list", "See what is measured, and what is to come out"),
    ("anabranch lab bench run loopback serve", "Measure two of them, and make their tables"),
];
const LAB_BENCH_LIST: &[Example] = &[("anabranch lab bench list", "Show the campaigns")];
const LAB_BENCH_RUN: &[Example] = &[
    ("anabranch lab bench run loopback --rounds 5", "Medians of five rounds"),
    ("anabranch lab bench run c-lossy-link --clients auto,curl", "Some clients of a scenario"),
];
const LAB_BENCH_TABLES: &[Example] = &[(
    "anabranch lab bench tables --page docs/benchmarks.md",
    "The tables of a page, from the newest results",
)];
const COMPLETIONS: &[Example] = &[(
    "anabranch completions bash > ~/.local/share/bash-completion/completions/anabranch",
    "Install them for bash",
)];

/// What a page has beside its options.
struct Extra {
    /// The command and its own command, as they are typed.
    command: &'static str,
    examples: &'static [Example],
    files: &'static [(&'static str, &'static str)],
}

const STATE: (&str, &str) = (
    "FILE.anabranch",
    "What an unfinished run of fetch has got of FILE, as JSON: size, validators, ranges, URLs. It is there \
     as long as FILE is not complete.",
);
const ROOTS: (&str, &str) =
    ("/etc/ssl/certs", "The system's trusted certificates; SSL_CERT_FILE and SSL_CERT_DIR name others.");

const GROUPS: (&str, &str) = (
    "$XDG_RUNTIME_DIR/anabranch/groups/NAME/, anabranch-UID/groups/NAME/ in $TMPDIR or /tmp",
    "The sockets by which senders of a group hear each other; they belong to the user alone.",
);

const IDENTITY: (&str, &str) = (
    "$XDG_STATE_HOME/anabranch/receiver.pem, ~/.local/state/anabranch/receiver.pem",
    "The certificate that receive has made, and its private key. Senders know the receiver by it; whoever \
     has it can pretend to be the receiver.",
);

const PINNED: (&str, &str) = (
    "/sys/fs/bpf/anabranch/CONTROL/",
    "What keeps a loaded control there: its registration, its parameters, and 'flows', a text file with a \
     line for each connection.",
);

const SIM_FILES: [(&str, &str); 4] = [
    ("DIR/flows.csv", "A row for every flow and sampling interval."),
    ("DIR/links.csv", "A row for every link, in each direction, and sampling interval."),
    ("DIR/events.jsonl", "What controllers decided and why, a line of JSON each."),
    ("DIR/summary.json", "Totals of the run. The same scenario and seed give the same bytes in all files."),
];

const RESULTS: (&str, &str) = (
    "DIR/verdicts.json, DIR/report.html, DIR/report.pdf, DIR/ID/, DIR/runs/",
    "The verdicts; the report; tables (CSV) and plots (SVG, PNG) of every experiment; the finished runs, \
     which another run does not repeat.",
);

const BENCH_RESULTS: (&str, &str) = (
    "DIR/DATE-COMMIT/NAME/raw.jsonl, machine.json, table.md, table.csv, plot.svg",
    "What a campaign measured and where; its tables and its plot, which are made from these.",
);

const EXTRAS: [Extra; 29] = [
    Extra { command: "", examples: ALL, files: &[STATE, ROOTS] },
    Extra { command: "play", examples: PLAY, files: &[ROOTS] },
    Extra { command: "fetch", examples: FETCH, files: &[STATE, ROOTS] },
    Extra { command: "proxy", examples: PROXY, files: &[ROOTS] },
    Extra { command: "serve", examples: SERVE, files: &[] },
    Extra { command: "send", examples: SEND, files: &[ROOTS, GROUPS] },
    Extra { command: "receive", examples: RECEIVE, files: &[IDENTITY] },
    Extra { command: "cc", examples: CC, files: &[PINNED] },
    Extra { command: "cc load", examples: CC_LOAD, files: &[PINNED] },
    Extra { command: "cc set", examples: CC_SET, files: &[PINNED] },
    Extra { command: "cc unload", examples: CC_UNLOAD, files: &[PINNED] },
    Extra { command: "cc list", examples: CC_LIST, files: &[PINNED] },
    Extra { command: "cc status", examples: CC_STATUS, files: &[PINNED] },
    Extra { command: "sim", examples: SIM, files: &SIM_FILES },
    Extra { command: "demo", examples: DEMO, files: &[] },
    Extra { command: "lab", examples: LAB, files: &[RESULTS] },
    Extra { command: "lab list", examples: LAB_LIST, files: &[] },
    Extra { command: "lab copy", examples: LAB_COPY, files: &[] },
    Extra { command: "lab run", examples: LAB_RUN, files: &[RESULTS] },
    Extra { command: "lab report", examples: LAB_REPORT, files: &[RESULTS] },
    Extra { command: "lab readings", examples: LAB_READINGS, files: &[] },
    Extra { command: "lab sweep", examples: LAB_SWEEP, files: &[] },
    Extra { command: "lab merge", examples: LAB_MERGE, files: &[] },
    Extra { command: "lab validate", examples: LAB_VALIDATE, files: &[] },
    Extra { command: "lab bench", examples: LAB_BENCH, files: &[BENCH_RESULTS] },
    Extra { command: "lab bench list", examples: LAB_BENCH_LIST, files: &[] },
    Extra { command: "lab bench run", examples: LAB_BENCH_RUN, files: &[BENCH_RESULTS] },
    Extra { command: "lab bench tables", examples: LAB_BENCH_TABLES, files: &[BENCH_RESULTS] },
    Extra { command: "completions", examples: COMPLETIONS, files: &[] },
];

const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "Done; also when the reader of standard output had seen enough."),
    ("1", "Failed. What is said on standard error tells why."),
    ("2", "Wrong usage: nothing was done."),
    (
        "130",
        "Ended by SIGINT (Ctrl-C), in order: what was got is kept. A second one ends the program at once.",
    ),
    ("143", "Ended by SIGTERM, in the same way."),
];

/// The command line's definition, with examples in the help.
pub fn command() -> Command {
    let mut cli = Cli::command();
    cli.build();
    let known = EXTRAS.iter().filter(|extra| find(&cli, extra.command).is_some());
    known.fold(Cli::command(), |cli, extra| {
        let mut text = String::from("Examples:");
        for (line, what) in extra.examples {
            text.push_str(&format!("\n  {what}:\n    {line}"));
        }
        if find(&cli, extra.command).is_some_and(has_quantities) {
            text.push_str(&format!("\n\n{QUANTITIES}"));
        }
        text.push_str("\n\nExit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.");
        add_to_help(cli, extra.command, text)
    })
}

/// The command at a path such as `cc load`, if this build has it.
fn find<'a>(cli: &'a Command, path: &str) -> Option<&'a Command> {
    path.split_whitespace().try_fold(cli, |command, name| command.find_subcommand(name))
}

/// How the values of options are written.
const QUANTITIES: &str = "A RATE is written 800k, 3M or 1.5Mbps (bits per second), a SIZE 64KiB or 2MB, a \
                          TIME 200ms, 10s, 5m or 2h.";

/// Whether one of its options takes a quantity.
fn has_quantities(command: &Command) -> bool {
    let mut values = command.get_arguments().filter_map(|option| option.get_value_names());
    values
        .any(|names| names.iter().any(|name| ["RATE", "SIZE", "TIME"].iter().any(|kind| name.contains(kind))))
}

fn add_to_help(command: Command, path: &'static str, text: String) -> Command {
    match path.split_once(' ').unwrap_or((path, "")) {
        ("", _) => command.after_help(text),
        (name, rest) => command.mut_subcommand(name, |own| add_to_help(own, rest, text)),
    }
}

/// Writes a manual page for the program and for each of its commands.
///
/// # Errors
/// The directory cannot be made or written to.
pub fn write_manual(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut cli = Cli::command();
    cli.build();
    for extra in &EXTRAS {
        let Some(command) = find(&cli, extra.command) else { continue };
        let command = command.clone().disable_help_subcommand(extra.command.is_empty());
        let name = if extra.command.is_empty() {
            "anabranch".into()
        } else {
            format!("anabranch-{}", extra.command.replace(' ', "-"))
        };
        fs::write(directory.join(format!("{name}.1")), page(command, &name, extra)?)?;
    }
    Ok(())
}

fn page(command: Command, name: &str, extra: &Extra) -> io::Result<Vec<u8>> {
    let has_commands = command.has_subcommands();
    let takes_quantities = has_quantities(&command);
    let man = Man::new(command)
        .title(name.to_uppercase())
        .source(concat!("anabranch ", env!("CARGO_PKG_VERSION")))
        .date("")
        .manual("Anabranch");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    if takes_quantities {
        roff.control("SH", ["QUANTITIES"]).text([roman(QUANTITIES)]);
    }
    list(&mut roff, "EXIT STATUS", &EXIT_STATUS);
    if !extra.files.is_empty() {
        list(&mut roff, "FILES", extra.files);
    }
    list(&mut roff, "ENVIRONMENT", environment(extra.command));
    roff.control("SH", ["EXAMPLES"]);
    for (line, what) in extra.examples {
        roff.control("TP", []).text([roman(format!("{what}:"))]).text([bold(*line)]);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

/// The variables that a command looks at.
fn environment(command: &str) -> &'static [(&'static str, &'static str)] {
    match command {
        "send" | "receive" => &[TOKEN, SRT_PASSPHRASE, SRT_LIBRARY, NO_COLOR],
        "play" | "fetch" | "proxy" => &[PROXIES, NO_COLOR],
        _ => &[NO_COLOR],
    }
}

const NO_COLOR: (&str, &str) = ("NO_COLOR", "When it is set and not empty, nothing is coloured.");

const TOKEN: (&str, &str) = (
    "ANABRANCH_TOKEN",
    "The secret of sender and receiver, where neither --token nor --token-file gives it.",
);

const SRT_PASSPHRASE: (&str, &str) = (
    "ANABRANCH_SRT_PASSPHRASE",
    "The passphrase of srt:// where the URL has none: others on the machine can see a URL.",
);

const SRT_LIBRARY: (&str, &str) =
    ("ANABRANCH_SRT_LIBRARY", "The file of libsrt 1.5, where it is none that the system finds by itself.");

const PROXIES: (&str, &str) = (
    "http_proxy, https_proxy, all_proxy, no_proxy",
    "HTTP proxies on the way to http: and https: servers, to all of them, and hosts to which none is used, \
     as curl has them. None is \
     used to this machine itself. Proxies of other kinds (SOCKS) are refused, and HTTP/3 does not go \
     through any.",
);

fn list(roff: &mut Roff, heading: &str, entries: &[(&str, &str)]) {
    roff.control("SH", [heading]);
    for (name, text) in entries {
        roff.control("TP", []).text([bold(*name)]).text([roman(*text)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        command().debug_assert();
    }

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        for shown in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let has_page = |name: &str| EXTRAS.iter().any(|extra| extra.command == name);
            assert!(has_page(shown.get_name()), "{}", shown.get_name());
            for own in shown.get_subcommands().filter(|own| own.get_name() != "help") {
                let name = format!("{} {}", shown.get_name(), own.get_name());
                assert!(has_page(&name), "{name}");
            }
        }
    }

    #[test]
    fn every_example_is_a_command_line_that_is_understood() {
        for (line, _) in EXTRAS.iter().flat_map(|extra| extra.examples) {
            let Some(rest) = line.strip_prefix("anabranch ") else { continue };
            if rest.split(' ').next().is_some_and(|name| find(&Cli::command(), name).is_none()) {
                // A build without that command.
                continue;
            }
            // Enough of a shell for the examples: one pair of quotes, a pipe or a redirection at the end.
            let mut words = vec!["anabranch".to_owned()];
            for (index, part) in rest.split('\'').enumerate() {
                if index % 2 == 1 {
                    words.push(part.into());
                } else {
                    words.extend(
                        part.split_whitespace().take_while(|word| !["|", ">"].contains(word)).map(Into::into),
                    );
                }
            }
            if let Err(error) = command().try_get_matches_from(words) {
                panic!("{line}: {error}");
            }
        }
    }

    /// The pages in the repository are those of a whole program; `anabranch man docs/man` writes them.
    #[cfg(all(feature = "kernel", feature = "lab", target_os = "linux"))]
    #[test]
    fn the_manual_is_up_to_date() {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
        let fresh = tempfile::tempdir().unwrap();
        write_manual(fresh.path()).unwrap();
        let names = |directory: &Path| {
            let mut names: Vec<_> =
                fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&committed), names(fresh.path()));
        for name in names(fresh.path()) {
            let read = |directory: &Path| fs::read_to_string(directory.join(&name)).unwrap();
            assert_eq!(
                read(&committed),
                read(fresh.path()),
                "{}: run 'anabranch man docs/man'",
                name.display()
            );
        }
    }
    #[test]
    fn the_manual_tells_of_the_secrets_in_the_environment() {
        for name in ["send", "receive"] {
            let page =
                Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/man/anabranch-{name}.1"));
            let page = fs::read_to_string(page).unwrap();
            assert!(page.contains("ANABRANCH_TOKEN") && page.contains("ANABRANCH_SRT_PASSPHRASE"), "{name}");
        }
    }
}
