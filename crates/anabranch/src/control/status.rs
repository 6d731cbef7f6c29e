//! `anabranch cc status`: the kernel's connections and groups, as a table, as JSON or for Prometheus.

use std::fmt;

use anabranch_kernel::{FlowStatus, GroupName, GroupStatus, NAMES, Setting};
use anabranch_units::Packets;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use crate::arguments::{ControlName, StatusArguments};
use crate::failure::Failure;
use crate::metrics::{self, Families, Labels};

/// What was asked for, as text.
pub fn tell(arguments: &StatusArguments) -> Result<String, Failure> {
    let is_of_group = arguments.control.is_none_or(|control| control == ControlName::Group);
    if arguments.groups {
        if !is_of_group {
            return Err(Failure::usage("--groups is for group"));
        }
        let groups = anabranch_kernel::groups().map_err(Failure::failed)?;
        return Ok(table_of_groups(&groups, arguments.json));
    }
    let names = match arguments.control {
        Some(control) => vec![control.name()],
        None => {
            let loaded = anabranch_kernel::list().map_err(Failure::failed)?;
            NAMES.into_iter().filter(|name| loaded.iter().any(|one| one.setting.name() == *name)).collect()
        }
    };
    let mut flows = Vec::new();
    for name in &names {
        flows.push((*name, anabranch_kernel::flows(name).map_err(Failure::failed)?));
    }
    if arguments.prometheus {
        let has_groups = names.contains(&Setting::Group.name());
        let groups =
            if has_groups { anabranch_kernel::groups().map_err(Failure::failed)? } else { Vec::new() };
        return Ok(exposition(KernelCollector { flows, groups }));
    }
    Ok(table(&flows, arguments.json))
}

fn table(flows: &[(&str, Vec<FlowStatus>)], json: bool) -> String {
    let mut text = String::new();
    if !json {
        text += &format!(
            "{:<8}{:<24}{:<24}{:>8}{:>10}{:>13}{:>10}{:>17}{:>9}  {}\n",
            "control",
            "local",
            "remote",
            "cwnd",
            "ssthresh",
            "loss events",
            "timeouts",
            "loss event rate",
            "weight",
            "group"
        );
    }
    for (name, flows) in flows {
        for flow in flows {
            text += &if json { json_line(name, flow) } else { line(name, flow) };
        }
    }
    text
}

fn line(name: &str, flow: &FlowStatus) -> String {
    let ssthresh = flow.ssthresh.map_or("-".to_owned(), |packets| packets.get().to_string());
    let rate = flow.loss_event_rate.map_or("-".to_owned(), |rate| format!("{:.4} %", 100.0 * rate));
    let weight = flow.weight.map_or("-".to_owned(), |weight| weight.to_string());
    format!(
        "{name:<8}{:<24}{:<24}{:>8}{ssthresh:>10}{:>13}{:>10}{rate:>17}{weight:>9}  {}\n",
        flow.local.to_string(),
        flow.remote.to_string(),
        flow.cwnd.get(),
        flow.loss_events,
        flow.timeouts,
        flow.group.as_ref().map_or("-", GroupName::as_str),
    )
}

fn json_line(name: &str, flow: &FlowStatus) -> String {
    let line = serde_json::json!({
        "control": name,
        "local": flow.local.to_string(),
        "remote": flow.remote.to_string(),
        "cwnd_packets": flow.cwnd.get(),
        "ssthresh_packets": flow.ssthresh.map(Packets::get),
        "loss_events": flow.loss_events,
        "timeouts": flow.timeouts,
        "loss_event_rate": flow.loss_event_rate,
        "weight": flow.weight.map(anabranch_kernel::Weight::get),
        "group": flow.group.as_ref().map(GroupName::as_str),
    });
    format!("{line}\n")
}

fn table_of_groups(groups: &[GroupStatus], json: bool) -> String {
    let mut text = String::new();
    if !json {
        text +=
            &format!("{:<32}{:>8}{:>10}{:>15}{:>12}\n", "group", "members", "window", "delivered", "lost");
    }
    for GroupStatus { name, members, window, delivered, lost } in groups {
        text += &if json {
            let line = serde_json::json!({
                "group": name.as_str(),
                "members": members,
                "window_packets": window,
                "delivered_packets": delivered,
                "lost_packets": lost,
            });
            format!("{line}\n")
        } else {
            format!("{name:<32}{members:>8}{window:>10.1}{delivered:>15}{lost:>12}\n")
        };
    }
    text
}

/// The metrics of `cc status --prometheus`.
#[derive(Debug)]
struct KernelCollector {
    flows: Vec<(&'static str, Vec<FlowStatus>)>,
    groups: Vec<GroupStatus>,
}

impl KernelCollector {
    /// A value of each connection.
    fn of_flows<T: 'static>(&self, value: fn(&FlowStatus) -> Option<T>) -> impl Iterator<Item = (Labels, T)> {
        self.flows.iter().flat_map(|(name, flows)| flows.iter().map(move |flow| (name, flow))).filter_map(
            move |(name, flow)| {
                let mut labels = vec![
                    ("control", (*name).to_owned()),
                    ("local", flow.local.to_string()),
                    ("remote", flow.remote.to_string()),
                ];
                labels.extend(flow.group.map(|group| ("group", group.to_string())));
                Some((labels, value(flow)?))
            },
        )
    }

    /// A value of each group.
    fn of_groups<T: 'static>(&self, value: impl Fn(&GroupStatus) -> T) -> impl Iterator<Item = (Labels, T)> {
        self.groups.iter().map(move |group| (vec![("group", group.name.to_string())], value(group)))
    }
}

impl Collector for KernelCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut families = Families(encoder);
        let count = |count: usize| count as f64;
        let connections = self.flows.iter();
        families.gauge(
            "kernel_connections",
            "Connections under a control of the kernel",
            connections.map(|(name, flows)| (vec![("control", (*name).to_owned())], count(flows.len()))),
        )?;
        let window = |flow: &FlowStatus| Some(flow.cwnd.get() as f64);
        families.gauge("kernel_connection_window_packets", "Congestion window", self.of_flows(window))?;
        let weight = |flow: &FlowStatus| flow.weight.map(anabranch_kernel::Weight::get);
        families.gauge("kernel_connection_weight", "Weight of a member", self.of_flows(weight))?;
        let events = |flow: &FlowStatus| Some(flow.loss_events.into());
        families.counter("kernel_connection_loss_events", "Loss events", self.of_flows(events))?;
        let timeouts = |flow: &FlowStatus| Some(flow.timeouts.into());
        families.counter("kernel_connection_timeouts", "Time-outs", self.of_flows(timeouts))?;
        let members = self.of_groups(|group| group.members as f64);
        families.gauge("kernel_group_members", "Members of a group", members)?;
        let alone = self.of_groups(|group| {
            let flows = self.flows.iter().flat_map(|(_, flows)| flows);
            count(flows.filter(|flow| flow.group == Some(group.name) && flow.weight.is_none()).count())
        });
        families.gauge("kernel_group_waiting_connections", "Connections that found it full", alone)?;
        let window = self.of_groups(|group| group.window);
        families.gauge("kernel_group_window_packets", "Joint window of a group", window)?;
        let delivered = self.of_groups(|group| group.delivered);
        families.counter("kernel_group_delivered_packets", "Packets that arrived", delivered)?;
        let lost = self.of_groups(|group| group.lost);
        families.counter("kernel_group_lost_packets", "Packets found lost", lost)
    }
}

/// The text format that node_exporter reads (0.0.4): unlike OpenMetrics it calls a counter's family by the
/// name of its values, and has no end.
fn exposition(collector: KernelCollector) -> String {
    let mut registry = Registry::with_prefix("anabranch");
    registry.register_collector(Box::new(collector));
    let text = metrics::encode(&registry);
    let is_counter = |name: &str| text.contains(&format!("# TYPE {name} counter\n"));
    let lines = text.lines().filter(|line| *line != "# EOF").map(|line| {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), Some(rest)) if is_counter(name) => {
                format!("# {what} {name}_total {rest}\n")
            }
            _ => format!("{line}\n"),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector() -> KernelCollector {
        let flow = FlowStatus {
            local: "[::1]:443".parse().unwrap(),
            remote: "[::1]:51000".parse().unwrap(),
            cwnd: Packets::new(32),
            ssthresh: None,
            loss_events: 3,
            timeouts: 1,
            loss_event_rate: None,
            weight: anabranch_kernel::Weight::new(4.0),
            group: Some(GroupName::DEFAULT),
        };
        let group =
            GroupStatus { name: GroupName::DEFAULT, members: 1, window: 40.5, delivered: 1000, lost: 3 };
        let waits = FlowStatus { weight: None, ..flow };
        KernelCollector { flows: vec![("ttfwc", vec![]), ("group", vec![flow, waits])], groups: vec![group] }
    }

    #[test]
    fn metrics_are_in_the_format_of_the_textfile_collector() {
        let text = exposition(collector());
        for line in [
            "# TYPE anabranch_kernel_connections gauge",
            "anabranch_kernel_connections{control=\"ttfwc\"} 0.0",
            "# TYPE anabranch_kernel_group_lost_packets_total counter",
            "anabranch_kernel_group_lost_packets_total{group=\"default\"} 3",
            "anabranch_kernel_group_window_packets{group=\"default\"} 40.5",
            "anabranch_kernel_group_waiting_connections{group=\"default\"} 1.0",
            "anabranch_kernel_connection_weight{control=\"group\",local=\"[::1]:443\",\
             remote=\"[::1]:51000\",group=\"default\"} 4.0",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}: {text}");
        }
        // The name of a value is that of its family.
        let families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        for value in text.lines().filter(|line| !line.starts_with('#')) {
            let name = value.split('{').next().unwrap();
            assert!(families.iter().any(|family| family.split(' ').next() == Some(name)), "{value}");
        }
        assert!(!text.contains("EOF"), "{text}");
    }

    #[test]
    fn every_metric_is_documented() {
        let documentation = include_str!("../../../../docs/kernel.md");
        for line in exposition(collector()).lines() {
            let Some(family) = line.strip_prefix("# TYPE ") else { continue };
            let name = family.split(' ').next().unwrap();
            assert!(documentation.contains(&format!("`{name}`")), "{name} is not in docs/kernel.md");
        }
    }

    #[test]
    fn groups_are_told_as_a_table_and_as_json() {
        let groups = collector().groups;
        let table = table_of_groups(&groups, false);
        assert!(table.lines().nth(1).unwrap().starts_with("default "), "{table}");
        let line: serde_json::Value = serde_json::from_str(&table_of_groups(&groups, true)).unwrap();
        assert_eq!((line["group"].as_str(), line["members"].as_u64()), (Some("default"), Some(1)));
    }
}
