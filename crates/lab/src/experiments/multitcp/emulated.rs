//! The Internet experiments of the thesis, whose paths are emulated: figures 8.4 to 8.6.

use anabranch_film::multitcp::Parameters;
use anabranch_units::{Bytes, Duration, Rate};

use super::algorithms::{advanced, basic};
use super::family::{Setup, because, one, ratio};
use super::measure::{CONNECTIONS, MOST_CONNECTIONS, Phase, THROUGHPUT, during};
use super::network::{Cross, Path, Stream};

use crate::experiment::{Expected, Experiment, Relation};
use crate::scheme::{ADVANCED, N1, N4, N8, Scheme};

const DURATION: Duration = Duration::from_secs(1000);
const QUIET: &str = "alone";
const FIRST: &str = "some FTPs";
const SECOND: &str = "more FTPs";
const CROSSED: &[&str] = &[FIRST, SECOND];
const FROM_401: &[Phase] = &[Phase(QUIET, 20, 400), Phase(FIRST, 410, 600), Phase(SECOND, 610, 1000)];
const FROM_301: &[Phase] = &[Phase(QUIET, 20, 300), Phase(FIRST, 310, 600), Phase(SECOND, 610, 1000)];

const WHOLE_PACKETS: &str = "a window is a packet at the least, and eight packets a round trip are 650 kbps at 80 ms. With a round trip of \
    140 ms N = 8 gets 492 kbps alone and 486 beside the FTPs";
const NO_MARGIN: &str = "steps 1 and 2 compare the congestion ratio with the last one without a margin: every interval below T_d, by chance as well, \
    opens a connection until there are five. With alpha 0.5 there is one while the stream is alone and 4 to 5 beside the FTPs, with 0.9 \
    1.4 and 2 to 4; a ratio stored in every interval, or intervals of 20 RTT, do not end it";
const NOISE: &str = "both hold the same rate, so that both leave the same to the others: the difference is smaller than its interval";
const KEEPS_FIVE: &str = "beside eight FTPs a connection whose socket holds 5 packets gets 400 kbps, so that four just miss the rate: auto keeps five \
    and has 1602 kbps, the advanced algorithm swings between three and five and has 1581";

fn rate(scheme: Scheme, phase: &str) -> (Scheme, String) {
    (scheme, during(THROUGHPUT, phase))
}

fn about(id: &str, kbps: f64, figure: (Scheme, String)) -> Relation {
    let claim = format!("throughput of {} (within 10 %): {}", figure.0.name, figure.1);
    one(id, &claim, &format!("about {kbps} kbps"), "kbps", figure, Expected::about(kbps, 0.1))
}

pub(super) fn figure_8_4() -> Experiment {
    let relations = vec![
        about("alone-1", 480.0, rate(N1, QUIET)),
        about("alone-4", 480.0, rate(N4, QUIET)),
        because(WHOLE_PACKETS, about("alone-8", 480.0, rate(N8, QUIET))),
        about("some-1", 280.0, rate(N1, FIRST)),
        about("some-4", 480.0, rate(N4, FIRST)),
        about("some-8", 480.0, rate(N8, FIRST)),
        about("more-4", 400.0, rate(N4, SECOND)),
        about("more-8", 480.0, rate(N8, SECOND)),
    ];
    Setup {
        id: "multitcp-fig8.4",
        title: "480 kbps over 1, 4 and 8 connections beside FTP",
        place: "section 8.1.2, figure 8.4, table 8.2",
        claim: "N = 1 falls from 480 to 280 kbps; N = 4 holds 480 until 600 s, then about 400; N = 8 holds 480 throughout.",
        assumed: &[
            "the path between two PlanetLab hosts is emulated: 920 kbps, so that one connection beside two FTPs gets about 280, and a \
             round trip of 80 ms",
            "N = 1 is the basic algorithm with one connection: section 8.2.1 tells how its window grows",
        ],
        path: Path::with_bottleneck(BOTTLENECK_8_4),
        stream: Stream { rate: Rate::from_kbps(480), largest_window: None },
        cross: &[Cross::Tcps(2, 401), Cross::Tcps(2, 601)],
        duration: DURATION,
        phases: FROM_401,
        crossed: CROSSED,
        worse: &[("auto-cross", NOISE)],
        schemes: vec![
            (N1, basic(Parameters::TABLE_8_2, 1)),
            (N4, basic(Parameters::TABLE_8_2, 4)),
            (N8, basic(Parameters::TABLE_8_2, 8)),
        ],
    }
    .experiment(relations)
}

const BOTTLENECK_8_4: u64 = 920;

pub(super) fn figure_8_5() -> Experiment {
    let relations = vec![
        about("alone-1", 800.0, rate(N1, QUIET)),
        about("more-1", 720.0, rate(N1, SECOND)),
        about("alone-advanced", 800.0, rate(ADVANCED, QUIET)),
        about("some-advanced", 800.0, rate(ADVANCED, FIRST)),
        about("more-advanced", 800.0, rate(ADVANCED, SECOND)),
        because(
            NO_MARGIN,
            one(
                "connections",
                "most connections of the advanced algorithm",
                "2",
                "",
                (ADVANCED, MOST_CONNECTIONS.into()),
                Expected::Between(1.5, 2.5),
            ),
        ),
        because(
            NO_MARGIN,
            ratio(
                "rise",
                "connections of the advanced algorithm beside the FTPs against those alone",
                "more",
                (ADVANCED, during(CONNECTIONS, SECOND)),
                (ADVANCED, during(CONNECTIONS, QUIET)),
                Expected::Above(1.0),
            ),
        ),
    ];
    Setup {
        id: "multitcp-fig8.5",
        title: "800 kbps with a number of connections that follows congestion",
        place: "section 8.2.1, figure 8.5, table 8.3",
        claim: "N = 1 falls from 800 to 720 kbps; the advanced algorithm holds 800 with only two of the five connections that it may \
                have; connections rise with congestion and fall after it.",
        assumed: &[
            "the path to a PlanetLab host is emulated: 14.5 Mbps, so that one connection beside 15 FTPs gets about 720, and a round \
             trip of 80 ms",
            "N = 1 is the basic algorithm with one connection; alpha of table 8.3 is 0, the lower end of what it gives",
        ],
        path: Path::with_bottleneck(BOTTLENECK_8_5),
        stream: Stream { rate: Rate::from_kbps(800), largest_window: None },
        cross: &[Cross::Tcps(6, 401), Cross::Tcps(9, 601)],
        duration: DURATION,
        phases: FROM_401,
        crossed: CROSSED,
        worse: &[("auto-cross", NOISE)],
        schemes: vec![(N1, basic(Parameters::TABLE_8_3, 1)), (ADVANCED, advanced())],
    }
    .experiment(relations)
}

const BOTTLENECK_8_5: u64 = 14_500;

pub(super) fn figure_8_6() -> Experiment {
    let relations = vec![
        about("alone-1", 480.0, rate(N1, QUIET)),
        about("more-1", 400.0, rate(N1, SECOND)),
        about("alone-advanced", 1600.0, rate(ADVANCED, QUIET)),
        about("some-advanced", 1600.0, rate(ADVANCED, FIRST)),
        about("more-advanced", 1600.0, rate(ADVANCED, SECOND)),
        because(
            NO_MARGIN,
            one(
                "connections",
                "most connections of the advanced algorithm, which may have five",
                "never all five",
                "",
                (ADVANCED, MOST_CONNECTIONS.into()),
                Expected::Below(4.5),
            ),
        ),
    ];
    Setup {
        id: "multitcp-fig8.6",
        title: "1.6 Mbps where a socket's buffer holds one connection at 480 kbps",
        place: "section 8.2.1, figure 8.6",
        claim: "N = 1 gets 480, then 400 kbps; the advanced algorithm reaches and holds 1.6 Mbps and never uses all five connections.",
        assumed: &[
            "the path to a PlanetLab host is emulated: 14 Mbps, where N = 1 falls to about 400 kbps, and a round trip of 80 ms; the socket's \
             buffer holds 5 packets, about 480 kbps there",
            "N = 1 is the basic algorithm with one connection; alpha of table 8.3 is 0, the lower end of what it gives",
        ],
        path: Path::with_bottleneck(BOTTLENECK_8_6),
        stream: Stream { rate: Rate::from_kbps(1600), largest_window: Some(Bytes::new(5000)) },
        cross: &[Cross::Tcps(4, 301), Cross::Tcps(4, 601)],
        duration: DURATION,
        phases: FROM_301,
        crossed: CROSSED,
        worse: &[("auto-connections", KEEPS_FIVE), ("auto-cross", NOISE)],
        schemes: vec![(N1, basic(Parameters::TABLE_8_3, 1)), (ADVANCED, advanced())],
    }
    .experiment(relations)
}

const BOTTLENECK_8_6: u64 = 14_000;
