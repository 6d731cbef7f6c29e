//! What a scenario must hold to beyond its grammar.

use std::collections::BTreeSet;

use anabranch_units::Duration;

use super::{CrossKind, Path, Scenario};

/// How many paths, servers, clients, groups or events a file may have; addresses are numbered in one byte.
const MOST: usize = 64;

impl Scenario {
    /// Says what is wrong with a file whose grammar is right.
    pub(super) fn check(&self) -> Result<(), String> {
        for (what, names) in [
            ("path", names(&self.paths, |path| &path.name)),
            ("server", names(&self.servers, |server| &server.name)),
            ("client", names(&self.clients, |client| &client.name)),
            ("cross", names(&self.cross, |cross| &cross.name)),
        ] {
            check_names(what, &names)?;
        }
        if self.paths.is_empty() || self.servers.is_empty() || self.clients.is_empty() {
            return Err("a scenario needs at least one [[path]], [[server]] and [[client]]".into());
        }
        if self.events.len() > MOST {
            return Err(format!("more than {MOST} events"));
        }
        let has_path = |name: &Option<String>| match name {
            Some(name) if self.paths.iter().any(|path| path.name == *name) => Ok(()),
            Some(name) => Err(format!("there is no path '{name}'")),
            None if self.paths.len() == 1 => Ok(()),
            None => Err("there are several paths: say which, with path = \"...\"".into()),
        };
        let has_server = |name: &str| match self.servers.iter().any(|server| server.name == name) {
            true => Ok(()),
            false => Err(format!("there is no server '{name}'")),
        };
        for path in &self.paths {
            match &path.server {
                Some(name) => has_server(name)?,
                None if self.servers.len() == 1 => {}
                None => return Err(format!("path '{}': say which server it leads to", path.name)),
            }
            check_loss(path.loss)?;
            check_burst(path)?;
            check_queue(path.queue)?;
        }
        if let Some(client) = self.clients.iter().find(|client| client.sender.is_some())
            && (self.live.is_none() || self.film.is_none())
        {
            return Err(format!("client '{}' has a sender: it needs [live] and [film]", client.name));
        }
        if let Some(share) = self.live.and_then(|live| live.give_up) {
            (0.0..=1.0).contains(&share).then_some(()).ok_or("live: give_up is a share, 0 to 1")?;
        }
        for cross in &self.cross {
            has_path(&cross.path)?;
            if (cross.kind == CrossKind::Udp) != cross.rate.is_some() {
                return Err(format!("cross '{}': UDP needs a rate, TCP has none", cross.name));
            }
            if cross.flows == 0 || cross.flows > 128 {
                return Err(format!("cross '{}': 1 to 128 flows", cross.name));
            }
            if cross.stop.is_some_and(|stop| stop <= cross.start) {
                return Err(format!("cross '{}' stops before it starts", cross.name));
            }
        }
        for event in &self.events {
            let change = event.up.is_some()
                || event.rate.is_some()
                || event.rtt.is_some()
                || event.loss.is_some()
                || event.path.is_some();
            if change {
                has_path(&event.path)?;
            }
            if usize::from(event.kill.is_some()) + usize::from(event.start.is_some()) + usize::from(change)
                != 1
            {
                return Err(format!("event at {}: one of kill, start or a change of a path", event.at));
            }
            event.kill.iter().chain(&event.start).try_for_each(|name| has_server(name))?;
            event.loss.map_or(Ok(()), check_loss)?;
        }
        if let Some(ping) = &self.ping {
            ping.path.as_ref().map_or(Ok(()), |_| has_path(&ping.path))?;
            if ping.interval < Duration::from_millis(5) {
                return Err("ping: the interval is at least 5ms".into());
            }
        }
        if let Some(film) = &self.film
            && film.buffer.is_some_and(|buffer| buffer < film.prebuffer.max(film.rebuffer))
        {
            return Err("film: the buffer must hold the prebuffer and the rebuffer".into());
        }
        if self.run.duration > Duration::from_secs(24 * 3600) {
            return Err("run: the duration is at most 24h".into());
        }
        Ok(())
    }
}

fn names<T>(items: &[T], name: impl Fn(&T) -> &String) -> Vec<&str> {
    items.iter().map(|item| name(item).as_str()).collect()
}

/// Names become parts of file names and of CSV lines.
fn check_names(what: &str, names: &[&str]) -> Result<(), String> {
    if names.len() > MOST {
        return Err(format!("more than {MOST} of [[{what}]]"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match names.iter().find(|name| name.is_empty() || name.starts_with('.') || !name.chars().all(plain)) {
        Some(name) => return Err(format!("{what} '{name}': names are letters, digits, '-', '_' and '.'")),
        None if names.iter().collect::<BTreeSet<_>>().len() != names.len() => {
            return Err(format!("two of [[{what}]] have one name"));
        }
        None => {}
    }
    match names.contains(&"film") && what == "cross" {
        true => Err("cross 'film': that name is taken by the client's own traffic".into()),
        false => Ok(()),
    }
}

fn check_loss(loss: f64) -> Result<(), String> {
    (0.0..=1.0).contains(&loss).then_some(()).ok_or_else(|| format!("loss {loss}: a probability, 0 to 1"))
}

fn check_burst(path: &Path) -> Result<(), String> {
    let Some(burst) = path.burst else { return Ok(()) };
    if !(1.0..=1000.0).contains(&burst) {
        return Err(format!("path '{}': burst is at least 1 packet, at most 1000", path.name));
    }
    // Between two bursts at least one packet arrives.
    match path.loss <= burst / (burst + 1.0) {
        true => Ok(()),
        false => Err(format!("path '{}': a loss of {} cannot be in bursts of {burst}", path.name, path.loss)),
    }
}

fn check_queue(queue: usize) -> Result<(), String> {
    (1..=1_000_000).contains(&queue).then_some(()).ok_or_else(|| "queue: 1 to 1000000 packets".into())
}
