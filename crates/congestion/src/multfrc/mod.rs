//! MULTFRC's control of the number of connections, without a clock.
//!
//! M. Chen, A. Zakhor, "Multiple TFRC connections based rate control for wireless networks" (IEEE
//! Transactions on Multimedia 8(5), 2006). Over a link that loses packets by itself one connection under TFRC
//! or TCP leaves a part of the link unused ([`analysis`]). So one stream is given several connections, more
//! of them as long as the round-trip time does not tell of a queue, fewer when it does.
//!
//! The driver tells [`MulTfrc::rtt`] the round-trip times that the reports of all its connections bring, and
//! opens or closes connections as the [`Decision`]s say. It may do with one connection that sends at n times
//! the rate of one instead ([`crate::aggregate`]). Whether the connections are under TFRC or TCP makes no
//! difference here.

pub mod analysis;
mod ceiling;
mod decision;
mod law;
mod noise;
mod origin;
mod parameters;
mod path;
mod probe_rtt;
mod route;
mod startup;
mod usage;
mod window;

use anabranch_units::{Duration, Rate, Time};

use ceiling::Ceiling;
pub use decision::{Decision, Reason};
pub use law::Law;
use origin::Origin;
pub use parameters::Parameters;
pub use path::Least;
use path::LeastRtt;
use probe_rtt::{ProbeRtt, Seen};
use route::Route;
use startup::{Startup, Step};
pub use usage::Usage;
use window::{Average, Window};

/// A stream whose rate is known stands for so many connections at most while it needs them and a queue
/// stands.
const MOST_BESIDE_OTHERS: f64 = 3.0;
/// A stream saves what one connection would have sent beyond it, for so many seconds at the rate that it
/// wants.
const MOST_SAVED: f64 = 10.0;

/// So many times what is borne is far beyond it, if it came at once.
const FAR_AT_ONCE: f64 = 1.25;
/// How many connections a stream had before it gave way counts for so long.
const RECENTLY: Duration = Duration::from_secs(30);

/// Measures the round-trip time and chooses the number of connections.
#[derive(Clone, Debug)]
pub struct MulTfrc {
    parameters: Parameters,
    target: f64,
    /// For how many more averages a queue is drained, and with how many connections it goes on then.
    draining: Option<(u32, f64)>,
    /// Whether the last average ended a draining.
    was_drained: bool,
    window: Window,
    least: LeastRtt,
    startup: Option<Startup>,
    probe_rtt: ProbeRtt,
    origin: Origin,
    ceiling: Ceiling,
    /// Over the window: whether the rate held the sender back, reports, and what was delivered as a part of
    /// the equation's rate.
    need: Need,
    /// When the last report came, and what was saved since the beginning ([`Self::least_needed`]), in
    /// seconds.
    reported: Option<Time>,
    saved: f64,
}

impl MulTfrc {
    /// Begins with one connection.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            target: 1.0,
            draining: None,
            was_drained: false,
            window: Window::new(parameters.round_trips),
            least: LeastRtt::new(parameters.least, parameters.tolerance, parameters.tells_jitter),
            startup: parameters.startup.then(Startup::new),
            probe_rtt: ProbeRtt::new(),
            origin: Origin::new(),
            ceiling: Ceiling::new(),
            need: Need::default(),
            reported: None,
            saved: 0.0,
            parameters,
        }
    }

    /// A report brought the round-trip time `sample`. Answers with a decision when it completes an average.
    ///
    /// Without reports nothing is decided: how a silent path is left behind is TFRC's business.
    pub fn rtt(&mut self, now: Time, sample: Duration) -> Option<Decision> {
        self.sample(now, sample, None)
    }

    /// The same, and what the sender makes of its rate: its number of connections does not grow while it has
    /// no use for more, and falls when it has far too many.
    pub fn report(&mut self, now: Time, sample: Duration, usage: &Usage) -> Option<Decision> {
        if !self.parameters.startup {
            return self.rtt(now, sample);
        }
        self.save(now, usage);
        match self.look_at_losses(now, sample, usage) {
            Looks::Not => {}
            Looks::Waits => return None,
            Looks::Decides(decision) => return Some(decision),
        }
        self.need.report(usage);
        let goal = self.parameters.law.goal(self.target, self.parameters.tolerance);
        self.ceiling.report(now, sample, usage, |mean| self.least.queueing(mean) > goal);
        let least = self.least_needed(usage);
        let decision = self.sample(now, sample, Some(usage));
        let most_here = self.most_beside_links(usage);
        let most = self.origin.most().min(most_here).max(least);
        if (least..=most).contains(&self.target) {
            return decision;
        }
        let reason = if self.target < least {
            Reason::Needed
        } else if self.target > self.origin.most() {
            Reason::LossesOfQueue
        } else {
            Reason::NotNeeded
        };
        self.target = self.target.clamp(least, most);
        Some(self.decision(sample, reason))
    }

    /// It is known what became of a datagram that left at `sent`. They are told in about the order in which
    /// they left.
    pub fn datagram(&mut self, sent: Time, is_lost: bool) {
        self.origin.datagram(sent, is_lost);
    }

    /// What one connection would have sent beyond the stream, since the last report.
    fn save(&mut self, now: Time, usage: &Usage) {
        let passed = now.since(self.reported.replace(now).unwrap_or(now));
        let Some(wanted) = usage.wanted.filter(|wanted| !wanted.is_zero()) else { return };
        let one = usage.one.map_or(usage.equation.as_f64() / self.target, Rate::as_f64);
        let saved = (one - usage.delivered.as_f64()) / wanted.as_f64() * passed.as_secs_f64();
        self.saved = (self.saved + saved).clamp(0.0, MOST_SAVED);
    }

    /// What a stream whose rate is known gets though a queue stands: as many connections as it needs, as long
    /// as it does not send more than one would have sent, all in all.
    fn least_needed(&self, usage: &Usage) -> f64 {
        let Some(need) = usage.need().filter(|_| usage.wanted.is_some_and(|wanted| !wanted.is_zero())) else {
            return 1.0;
        };
        let most = if self.saved > 0.0 { MOST_BESIDE_OTHERS } else { 1.0 };
        self.bounded((self.target * need).min(most))
    }

    /// The most connections of one of several links. It is wanted for what the others do not bring, which varies by the
    /// round trip; and the equation gives more as soon as a queue has drained. So its rate would swing from half of the
    /// link to one and a half, and is bounded by what the link has shown.
    fn most_beside_links(&self, usage: &Usage) -> f64 {
        let is_known = usage.wanted.is_some() && usage.loss_event_rate > 0.0;
        if !usage.has_links_beside || !is_known {
            return f64::INFINITY;
        }
        self.bounded(self.target * self.ceiling.rate().as_f64() / usage.equation.as_f64().max(1.0))
    }

    /// The number of connections as it is now.
    fn decision(&self, average: Duration, reason: Reason) -> Decision {
        let (connections, least) = (self.connections(), self.least.rtt());
        Decision { connections, target: self.target, average, least, reason }
    }

    /// The connections that are of use to it, as a part of those there are.
    fn need(&self, usage: &Usage) -> Option<f64> {
        let most = self.ceiling.rate().as_f64() / usage.equation.as_f64().max(1.0);
        usage.need().map(|need| need.min(most))
    }

    fn sample(&mut self, now: Time, sample: Duration, usage: Option<&Usage>) -> Option<Decision> {
        if let Some(route) = self.least.sample(now, sample) {
            return Some(self.go_on(&route));
        }
        self.suspect(now);
        if let Some(usage) = usage {
            match self.look_at_route(now, sample, usage) {
                Looks::Not => {}
                Looks::Waits => return None,
                Looks::Decides(decision) => return Some(decision),
            }
            let decision = self.look(now, sample, usage);
            if decision.is_some() || self.startup.as_ref().is_some_and(Startup::is_on) {
                return decision;
            }
        }
        let average = self.window.sample(now, sample)?;
        self.least.update(average);
        let queueing = self.least.queueing(average.mean);
        let need = std::mem::take(&mut self.need);
        let was_draining = self.draining.is_some();
        let before = self.target;
        let next = self.next(queueing, usage.is_some_and(|usage| usage.wanted.is_some()));
        let is_needed = usage.is_none() || need.is_limited;
        let most = if is_needed {
            usage.and_then(|usage| self.need(usage)).map_or(f64::INFINITY, |need| need * before)
        } else {
            before
        };
        let next = next.min(most.max(before));
        let is_far_too_many = usage.is_some() && need.is_far_below_equation();
        self.target = self.bounded(if is_far_too_many { next.min(before * SPARE_DECREASE) } else { next });
        let reason = if is_far_too_many && before > 1.0 && self.draining.is_none() {
            Reason::NotNeeded
        } else if was_draining || self.draining.is_some() {
            Reason::Draining
        } else if queueing > self.parameters.tolerance.as_f64() {
            Reason::Queue
        } else {
            Reason::RoomLeft
        };
        Some(self.decision(average.mean, reason))
    }

    /// A report of a stream whose rate is known: whose losses they are is looked at now and then.
    fn look_at_losses(&mut self, now: Time, sample: Duration, usage: &Usage) -> Looks {
        if usage.wanted.is_none() {
            return Looks::Not;
        }
        let used = usage.delivered.as_f64() / usage.allowed.as_f64().max(1.0);
        let target = match self.origin.report(now, sample, self.target, used) {
            None => return Looks::Not,
            Some(origin::Step::Wait) => return Looks::Waits,
            Some(origin::Step::GiveWay(connections) | origin::Step::Over(connections)) => connections,
        };
        self.target = self.bounded(target);
        if let Some(startup) = &mut self.startup {
            startup.interrupt();
        }
        Looks::Decides(self.decision(sample, Reason::LossesLookedAt))
    }

    /// A report of a greedy stream: whether the shortest round trip is the route's is looked at now and then.
    fn look_at_route(&mut self, now: Time, sample: Duration, usage: &Usage) -> Looks {
        if usage.wanted.is_some() || self.draining.is_some() {
            return Looks::Not;
        }
        let step = self.probe_rtt.sample(now, sample, self.target, self.least.rtt());
        let (target, average) = match step {
            None => return Looks::Not,
            Some(probe_rtt::Step::Wait) => return Looks::Waits,
            Some(probe_rtt::Step::GiveWay(connections)) => (connections, sample),
            Some(probe_rtt::Step::Over(seen)) => (self.looked_at_route(&seen), seen.shortest),
        };
        self.target = self.bounded(target);
        Looks::Decides(self.decision(average, Reason::RouteLookedAt))
    }

    /// The number of connections after a look: what was taken for the route may have been a queue, and there was no
    /// reason for more than one.
    fn looked_at_route(&mut self, seen: &Seen) -> f64 {
        self.window = Window::new(self.parameters.round_trips);
        self.need = Need::default();
        if let Some(startup) = &mut self.startup {
            startup.interrupt();
        }
        self.least.update(Average { mean: seen.shortest, shortest: seen.shortest });
        let goal = self.parameters.law.goal(1.0, self.parameters.tolerance);
        if self.least.queueing(seen.before) <= goal {
            return seen.connections;
        }
        self.probe_rtt.forget();
        1.0
    }

    /// A report while the number is looked for.
    fn look(&mut self, now: Time, sample: Duration, usage: &Usage) -> Option<Decision> {
        let Parameters { law, tolerance, .. } = self.parameters;
        let goal = law.goal(self.target, tolerance);
        let need = self.need(usage);
        let (startup, path) = (self.startup.as_mut()?, &mut self.least);
        let (average, step) = startup.report(now, sample, usage, need, |mean, shortest| {
            path.update(Average { mean, shortest });
            (path.queueing(mean), goal)
        })?;
        let (factor, reason) = match step {
            Step::Grow(factor) => (factor, Reason::RoomLeft),
            Step::Spare(factor) => (factor, Reason::NotNeeded),
            Step::Full(factor) => (factor, Reason::Queue),
        };
        if reason == Reason::Queue {
            // The control begins with what it measures from now on.
            self.window = Window::new(self.parameters.round_trips);
            self.need = Need::default();
        }
        self.target = self.bounded(self.target * factor);
        Some(self.decision(average, reason))
    }

    /// What came at once, and is far beyond what is borne, is a new route or a burst of others'.
    fn suspect(&mut self, now: Time) {
        let Parameters { law, tolerance, .. } = self.parameters;
        if self.least.is_step(FAR_AT_ONCE * law.goal(self.target, tolerance)) {
            self.least.suspect(now, self.target);
        }
    }

    /// The route is another one: the stream goes on with what it had before it gave way, if that was of late.
    fn go_on(&mut self, route: &Route) -> Decision {
        if route.since <= RECENTLY {
            self.target = self.bounded(self.target.max(route.connections));
        }
        self.draining = None;
        // It may be a queue nevertheless.
        self.probe_rtt.forget();
        self.window = Window::new(self.parameters.round_trips);
        self.need = Need::default();
        self.decision(route.level, Reason::RouteChanged)
    }

    /// The next number of connections, not yet bounded.
    fn next(&mut self, queueing: f64, is_need_known: bool) -> f64 {
        let Parameters { law, tolerance, .. } = self.parameters;
        if let Some((averages, goes_on)) = self.draining {
            self.draining = (averages > 1).then_some((averages - 1, goes_on));
            self.was_drained = averages <= 1;
            return if averages > 1 { self.target } else { goes_on };
        }
        let was_drained = std::mem::take(&mut self.was_drained);
        let next = law.next(self.target, queueing, tolerance);
        match law.drain(self.target, queueing, tolerance) {
            // Media at its own rate cannot wait until a queue has drained: there are as many as keep the
            // queue at the goal.
            Some(_) if is_need_known => {
                next.min(self.target * (1.0 + law.goal(self.target, tolerance)) / (1.0 + queueing))
            }
            Some(fewer) => {
                // Who has to drain a queue again at once has too many connections.
                let goes_on = if was_drained { fewer } else { next };
                self.draining = Some((law::DRAIN_AVERAGES, goes_on));
                fewer
            }
            None => next,
        }
    }

    /// What a stream whose rate is known has saved of what one connection would have sent, as a part of the
    /// most.
    pub fn saved(&self) -> f64 {
        self.saved / MOST_SAVED
    }

    /// The number of connections before it is rounded (n).
    pub fn target(&self) -> f64 {
        self.target
    }

    /// How many connections are to be open: the whole number nearest to [`Self::target`].
    pub fn connections(&self) -> u32 {
        // Counting keeps it free of casts; there are not many connections.
        let most = self.parameters.most_connections.max(1);
        (1..most).find(|&count| self.target < f64::from(count) + 0.5).unwrap_or(most)
    }

    fn bounded(&self, target: f64) -> f64 {
        // `max` passes over what is no number.
        target.max(1.0).min(f64::from(self.parameters.most_connections.max(1)))
    }
}

/// What a look at the route makes of a report.
enum Looks {
    Not,
    Waits,
    Decides(Decision),
}

/// What far too many connections are multiplied with.
const SPARE_DECREASE: f64 = 0.9;
/// Far too many: when less than this part of what the equation gives them is delivered.
const LEAST_USE: f64 = 0.4;

/// Whether a sender needs what it has, over a window.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    is_limited: bool,
    reports: f64,
    /// The sum of what was delivered, as a part of what the equation gives.
    use_of_equation: f64,
}

impl Need {
    fn report(&mut self, usage: &Usage) {
        self.is_limited |= usage.is_limited;
        self.reports += 1.0;
        self.use_of_equation += usage.delivered.as_f64() / usage.equation.as_f64().max(1.0);
    }

    fn is_far_below_equation(&self) -> bool {
        !self.is_limited && self.use_of_equation < LEAST_USE * self.reports
    }
}
