//! Figure 10: MULTFRC, AIO-TFRC and ours at steady loss rates.

use anabranch_congestion::multfrc::Parameters as Control;
use anabranch_congestion::tfrc::Parameters;

use super::describe::{Figure, explained, extreme, plot_figures, table};
use super::sending::{ASSUMED, Sending};
use super::wireless::{CONNECTIONS, LOSS, PREDICTED, RTT, RTT_RATIO, THROUGHPUT, UTILIZATION, Wireless};
use crate::case::Case;
use crate::experiment::{Axis, Curve, Expected, Experiment, Jobs, Plot, Points, Relation, Table};
use crate::papers;
use crate::results::OneSeed;
use crate::scheme::{AIO_TFRC, AIO_TFRC_FIRST, AUTO, MULTFRC, Scheme};

pub(super) const LOSSES: [f64; 5] = [0.0, 0.02, 0.04, 0.06, 0.08];
/// Ours has to hold from no losses to 10 %.
const OURS: [f64; 9] = [0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1];
const OURS_ALL: &[f64] = &OURS;
const OURS_LOSSY: &[f64] = &[0.01, 0.02, 0.04, 0.06, 0.08, 0.1];
const ONE_FILTER: &str = "one filter's losses vary as those of one connection, and the rate n times as much: with all virtual connections it is within the bound";
const UNDAMPED_CAUSE: &str = "in part TFRC's damping by the square root of the round trip: with ns-2's rules it is 0.89, and without the damping (ca_ = 0, which is not ns-2's default) 0.84, \
    but then the losses are 1.14 times p_w and AIO-TFRC has 0.88 in place of the paper's 95 % (table; seeds 1 to 5). An average of 50 reports of whichever connection gives 0.82, but \
    then the rise in figure 9 takes 41 s in place of 214 s. With ns-2's rules it is 0.99, 0.94 and 0.91 behind 5, 10 and 20 packets; 0.86 with gamma = 0.1; 0.88 to 0.91 with losses in \
    bursts of 1.3 to 2 packets, with n rounded down, the oldest connection closed first, smoothed round trips averaged, slow start from one packet, or settings that ns-2's own tests have (df_ = 0.25, ca_ = 0, no \
    discounting). What of these the paper's was is not found";
const ONE_FILLS: &str = "below a loss of about 0.0085 one TFRC connection fills this link by itself, equation (5), and n does not go below one: the \
    queue is that of one connection, which without losses is full";

/// Further runs of figure 10: TFRC as ns-2 has it, and the same without the damping by the square root of the
/// round trip (ns-2's `ca_`).
const FURTHER: [(&str, Parameters); 2] =
    [(NS2, Parameters::NS2), (UNDAMPED, Parameters { sqrt_rtt_weight: None, ..Parameters::NS2 })];
const NS2: &str = "ns-2";
const UNDAMPED: &str = "ns-2 without damping";
const FURTHER_LOSSES: &[f64] = &[0.02, 0.08];

fn jobs(path: Wireless, sendings: Vec<(Sending, &'static str, &'static [f64])>) -> Jobs {
    Jobs::new(move |seed| {
        let all = sendings.iter().flat_map(|(sending, setting, losses)| {
            losses.iter().map(move |loss| {
                let case = Case { setting: (*setting).into(), ..Case::new(sending.look, *loss) };
                path.job(case, *sending, 1, *loss, seed)
            })
        });
        all.collect()
    })
}

fn plots(path: Wireless, looks: &[Scheme]) -> Vec<Plot> {
    let axis = || Axis::new("wireless channel error rate p_w", "");
    let capacity = |label: &str, value: &dyn Fn(f64) -> f64| Curve {
        label: label.into(),
        look: MULTFRC,
        points: Points::Formula(LOSSES.map(|loss| (loss, value(loss))).into()),
    };
    let optimal = vec![capacity("B_w (1 - p_w)", &|loss| path.kbps * (1.0 - loss))];
    vec![
        plot_figures(
            ("throughput", "Throughput", THROUGHPUT),
            axis(),
            Axis::new("throughput", "kbps"),
            looks,
            optimal,
        ),
        plot_figures(
            ("loss", "Losses from end to end", LOSS),
            axis(),
            Axis::new("loss", ""),
            looks,
            vec![capacity("p_w", &|loss| loss)],
        ),
        plot_figures(("rtt", "Round trip", RTT), axis(), Axis::new("round trip", "ms"), looks, Vec::new()),
        plot_figures(
            ("connections", "Number of connections", CONNECTIONS),
            axis(),
            Axis::new("connections", ""),
            looks,
            Vec::new(),
        ),
    ]
}

fn figures(rows: Vec<(Scheme, &'static str, &'static [f64])>) -> Table {
    let columns = [
        ("throughput (kbps)", THROUGHPUT),
        ("utilization", UTILIZATION),
        ("loss", LOSS),
        ("round trip (ms)", RTT),
        ("round trip / least", RTT_RATIO),
        ("connections", CONNECTIONS),
        ("equation (10)", PREDICTED),
    ];
    let rows = rows.into_iter().flat_map(|(scheme, setting, losses)| {
        losses.iter().map(move |loss| {
            (format!("{} at p_w = {loss} {setting}", scheme.name), scheme, setting.to_owned(), *loss)
        })
    });
    table("figures", "Means", &columns, rows)
}

pub(super) fn figure_10() -> Experiment {
    let against = |loss: f64, scheme: Scheme| {
        move |seed: OneSeed<'_>| {
            Some(seed.figure(scheme, loss, UTILIZATION)? / seed.figure(MULTFRC, loss, UTILIZATION)?)
        }
    };
    let relations = vec![
        Relation::new(
            ("multfrc", "utilization of MULTFRC at p_w = 0.02 (within 10 %)", "77 %", ""),
            Figure::new(MULTFRC, 0.02, UTILIZATION).value(),
            Expected::about(0.77, 0.1),
        ),
        Relation::new(
            ("aio", "utilization of AIO-TFRC at p_w = 0.02 (within 5 %)", "95 %", ""),
            Figure::new(AIO_TFRC, 0.02, UTILIZATION).value(),
            Expected::about(0.95, 0.05),
        ),
        Relation::new(
            (
                "better",
                "utilization of AIO-TFRC as a multiple of that of MULTFRC at p_w = 0.02",
                "better",
                "",
            ),
            against(0.02, AIO_TFRC),
            Expected::Above(1.0),
        ),
        Relation::new(
            (
                "equal",
                "utilization of AIO-TFRC as a multiple of that of MULTFRC at p_w = 0.08",
                "similar (within 5 %)",
                "",
            ),
            against(0.08, AIO_TFRC),
            Expected::about(1.0, 0.05),
        ),
        Relation::new(
            (
                "first",
                "the same with the losses of the first virtual connection alone",
                "similar (within 5 %)",
                "",
            ),
            against(0.08, AIO_TFRC_FIRST),
            Expected::about(1.0, 0.05),
        ),
        Relation::new(
            ("auto", "least utilization of auto over p_w from 0 to 0.1", "ours: at least 95 %", ""),
            extreme(AUTO, OURS_ALL, UTILIZATION, f64::min),
            Expected::AtLeast(0.95),
        ),
        Relation::new(
            (
                "auto-rtt",
                "longest mean round trip of auto over p_w from 0.01 to 0.1, as a multiple of the least",
                "ours: at most 120 %",
                "",
            ),
            extreme(AUTO, OURS_LOSSY, RTT_RATIO, f64::max),
            Expected::AtMost(1.2),
        ),
        Relation::new(
            ("auto-rtt-all", "the same over p_w from 0 to 0.1", "ours: at most 120 %", ""),
            extreme(AUTO, OURS_ALL, RTT_RATIO, f64::max),
            Expected::AtMost(1.2),
        ),
    ];
    let path = Wireless::FAST;
    let looks = [MULTFRC, AIO_TFRC, AIO_TFRC_FIRST, AUTO];
    let mut sendings = vec![
        (Sending::multfrc(Control::PAPER), "", &LOSSES as &[f64]),
        (Sending::aio_tfrc(Control::PAPER), "", &LOSSES),
        (Sending::aio_tfrc_first(Control::PAPER), "", &LOSSES),
        (Sending::auto(), "", OURS_ALL),
    ];
    for (setting, tfrc) in FURTHER {
        for sending in [Sending::multfrc(Control::PAPER), Sending::aio_tfrc(Control::PAPER)] {
            sendings.push((Sending { tfrc, ..sending }, setting, FURTHER_LOSSES));
        }
    }
    let rows = sendings.iter().map(|(sending, setting, losses)| (sending.look, *setting, *losses)).collect();
    Experiment {
        id: "multfrc-fig10".into(),
        title: "One connection that stands for several".into(),
        paper: papers::of("multfrc"),
        place: "section IV.C, figure 10".into(),
        claim: "At p_w = 0.02 AIO-TFRC uses 95 % of the link where MULTFRC uses 77 %; at high losses both are alike.".into(),
        assumed: ASSUMED
            .into_iter()
            .chain([
                "a queue of 50 packets, ns-2's default",
                "the paper leaves AIO-TFRC's details to another one: its packets belong to n virtual connections in turn, and the loss event rate \
                 is that of the mean of their loss intervals, or of the first one's (one filter)",
            ])
            .map(Into::into)
            .collect(),
        random: true,
        jobs: jobs(path, sendings),
        relations: explained(relations, &[("multfrc", UNDAMPED_CAUSE), ("first", ONE_FILTER), ("auto-rtt-all", ONE_FILLS)]),
        plots: plots(path, &looks),
        tables: vec![figures(rows)],
    }
}
