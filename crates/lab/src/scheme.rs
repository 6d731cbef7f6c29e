//! What can be compared, and how it looks: the same scheme has the same colour, line and marker in every
//! plot.

/// A scheme that an experiment runs: a protocol, an algorithm, a number of connections.
///
/// Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; line and marker tell
/// them apart in print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its name, in plots and files.
    pub name: &'static str,
    /// Its colour, as CSS has it.
    pub colour: &'static str,
    /// Its line, as SVG's `stroke-dasharray` has it; empty: solid.
    pub dashes: &'static str,
    /// Its marker.
    pub marker: Marker,
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// A square on its side.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle on its side.
    Triangle,
    /// A triangle on its corner.
    Wedge,
    /// Two crossed lines.
    Cross,
}

const BLACK: &str = "#000000";
const GREY: &str = "#7f7f7f";
const ORANGE: &str = "#e69f00";
const SKY: &str = "#56b4e9";
const GREEN: &str = "#009e73";
const YELLOW: &str = "#c8b900";
const BLUE: &str = "#0072b2";
const VERMILION: &str = "#d55e00";
const PURPLE: &str = "#cc79a7";

const SOLID: &str = "";
const DASHED: &str = "8 4";
const DASH_DOTTED: &str = "9 3 2 3";
const LONG: &str = "14 4";

/// Defines schemes as constants, and the list of all.
macro_rules! schemes {
    ($($(#[$doc:meta])* $id:ident: $name:literal, $colour:ident, $dashes:ident, $marker:ident;)*) => {
        $(
            $(#[$doc])*
            pub const $id: Scheme =
                Scheme { name: $name, colour: $colour, dashes: $dashes, marker: Marker::$marker };
        )*
        /// Every scheme there is.
        pub const ALL: &[Scheme] = &[$($id),*];
    };
}

schemes! {
    /// One connection: of plain TCP with a fixed window (MultiTCP), or of TFRC (MULTFRC).
    N1: "N = 1", VERMILION, SOLID, Circle;
    /// 2 connections: MultiTCP, basic, or TFRC.
    N2: "N = 2", BLUE, DASHED, Square;
    /// 3 connections: MultiTCP, basic, or TFRC.
    N3: "N = 3", ORANGE, DASH_DOTTED, Diamond;
    /// 4 connections: MultiTCP, basic, or TFRC.
    N4: "N = 4", PURPLE, LONG, Triangle;
    /// 5 connections: MultiTCP, basic, or TFRC.
    N5: "N = 5", GREEN, DASH_DOTTED, Wedge;
    /// 8 connections: MultiTCP, basic, or TFRC.
    N8: "N = 8", SKY, DASHED, Diamond;
    /// 16 connections of TFRC.
    N16: "N = 16", YELLOW, LONG, Circle;
    /// 32 connections of TFRC.
    N32: "N = 32", GREY, DASH_DOTTED, Square;
    /// MultiTCP, basic, beside fixed numbers.
    BASIC: "basic", PURPLE, SOLID, Diamond;
    /// MultiTCP, advanced.
    ADVANCED: "advanced", SKY, LONG, Triangle;
    /// Ours.
    AUTO: "auto", BLACK, SOLID, Cross;
    /// Ours of live media, where ours of films is beside it.
    AUTO_LIVE: "auto live", BLACK, LONG, Diamond;
    /// Ours of live media, with as much parity as the losses ask for.
    AUTO_PARITY: "auto with parity", BLACK, DASH_DOTTED, Circle;
    /// TCP connections as many as MULTFRC's control says.
    MUL_TCP: "MUL-TCP", YELLOW, SOLID, Triangle;
    /// TCP-ROME.
    ROME: "TCP-ROME", BLUE, SOLID, Square;
    /// TCP-ROME without its content coordinator.
    ROME_WITHOUT_CONTENT: "without content coordinator", ORANGE, DASHED, Diamond;
    /// TCP-ROME without its rate coordinator.
    ROME_WITHOUT_RATE: "without rate coordinator", VERMILION, DASH_DOTTED, Wedge;
    /// One TCP connection beside TCP-ROME.
    SINGLE: "single flow", GREY, DASHED, Triangle;
    /// A download that takes what it gets over one connection.
    DOWNLOAD: "download", GREY, DASHED, Circle;
    /// Nothing of ours.
    NOBODY: "nobody", GREY, DASH_DOTTED, Diamond;
    /// Virtual packet substitution.
    VPS: "VPS", BLUE, SOLID, Circle;
    /// Ours: its weights by what players need.
    NEED: "VPS by need", GREEN, SOLID, Square;
    /// Ours: a weighted group by windows, as in a kernel.
    WINDOWS: "group by windows", BLACK, DASHED, Wedge;
    /// MulTCP.
    MULTCP: "MulTCP", VERMILION, DASHED, Square;
    /// Reno.
    RENO: "Reno", GREY, LONG, Triangle;
    /// TCP with SACK, as ns-2 has it.
    SACK: "SACK TCP", GREY, SOLID, Circle;
    /// CUBIC.
    CUBIC: "CUBIC", PURPLE, DASH_DOTTED, Wedge;
    /// BBRv3.
    BBR: "BBRv3", SKY, DASH_DOTTED, Circle;
    /// TFRC.
    TFRC: "TFRC", ORANGE, DASHED, Circle;
    /// MULTFRC.
    MULTFRC: "MULTFRC", BLUE, DASH_DOTTED, Circle;
    /// AIO-TFRC.
    AIO_TFRC: "AIO-TFRC", GREEN, DASHED, Square;
    /// AIO-TFRC that looks at the losses of its first virtual connection only.
    AIO_TFRC_FIRST: "AIO-TFRC, one filter", ORANGE, LONG, Wedge;
    /// TTFWC at its tuning parameter 0.0.
    TTFWC_0_0: "TTFWC 0.0", BLUE, LONG, Diamond;
    /// TTFWC at 0.4.
    TTFWC_0_4: "TTFWC 0.4", GREEN, SOLID, Wedge;
    /// TTFWC at 0.9.
    TTFWC_0_9: "TTFWC 0.9", VERMILION, LONG, Diamond;
    /// The first of several flows, connections or paths.
    FIRST: "first", SKY, SOLID, Circle;
    /// The second of them.
    SECOND: "second", VERMILION, DASH_DOTTED, Square;
    /// The third.
    THIRD: "third", GREEN, LONG, Diamond;
    /// The fourth.
    FOURTH: "fourth", PURPLE, DASHED, Triangle;
    /// The fifth.
    FIFTH: "fifth", YELLOW, DASHED, Wedge;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_schemes_have_a_name_or_a_look_in_common() {
        for (index, one) in ALL.iter().enumerate() {
            for other in &ALL[index + 1..] {
                assert_ne!(one.name, other.name);
                let look = |scheme: &Scheme| (scheme.colour, scheme.dashes, scheme.marker);
                assert_ne!(look(one), look(other), "{} and {}", one.name, other.name);
            }
        }
    }
}
