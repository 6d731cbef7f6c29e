//! What the timetable acts upon: the programs of a run, and its paths.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anabranch_scenario::model::{self, Above};
use anabranch_units::{Bytes, Duration};

use super::kept::Kept;
use super::order::{Order, SCRATCH};
use crate::Error;
use crate::emulator::Emulator;
use crate::meter::Count;
use crate::programs::{self, Program, Stdout};
use crate::relay::{self, Caps};
use crate::scenario::{Client, Cross, Deed, Host, Scenario, Transport};
use crate::timetable::Action;
use crate::topology;

/// Everything that the timetable can act upon.
pub(super) struct Stage<'a> {
    pub(super) order: &'a Order,
    pub(super) scenario: &'a Scenario,
    pub(super) emulator: &'a Emulator,
    servers: Vec<Program>,
    cross_servers: Vec<Program>,
    cross: BTreeMap<usize, Program>,
    /// A live client's sender and its receiver.
    pub(super) live: BTreeMap<Host, Kept>,
    /// How often each server got new addresses.
    renumbered: Vec<u8>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        order: &'a Order,
        scenario: &'a Scenario,
        emulator: &'a Emulator,
    ) -> Result<Self, Error> {
        fs::create_dir_all(&order.out).map_err(Error::io(order.out.display().to_string()))?;
        Ok(Self {
            order,
            scenario,
            emulator,
            servers: Vec::new(),
            cross_servers: Vec::new(),
            cross: BTreeMap::new(),
            live: BTreeMap::new(),
            renumbered: vec![0; scenario.servers.len()],
        })
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.order.out.join(format!("{name}.log"))
    }

    pub(super) fn start_servers(&mut self) -> Result<(), Error> {
        // With live media the server's end is where the client's sender runs.
        let live = self.scenario.client(Some(&self.order.client))?.sender.is_some();
        for index in (0..self.scenario.servers.len()).filter(|_| !live) {
            let server = self.start_server(index)?;
            self.servers.push(server);
        }
        for (group, cross) in self.scenario.cross.iter().enumerate() {
            let server = self.scenario.paths[cross.path].server;
            let port = topology::cross_port(group);
            let arguments = ["iperf3", "-s", "-p", &port.to_string()].map(String::from);
            let log = self.log(&format!("cross-{}-server", cross.name));
            let mut program =
                Program::start(&topology::server_namespace(server), &arguments, Stdout::Log, &log)?;
            program.wait_listening(Some(port))?;
            self.cross_servers.push(program);
        }
        Ok(())
    }

    fn start_server(&self, index: usize) -> Result<Program, Error> {
        let server = &self.scenario.servers[index];
        let scratch = Path::new(SCRATCH).join(topology::server_namespace(index));
        let directory = self.order.film.as_deref().and_then(Path::parent).unwrap_or(Path::new(SCRATCH));
        let arguments = match &server.command {
            Some(command) => {
                let dir = directory.display().to_string();
                command.iter().map(|argument| argument.replace("{dir}", &dir)).collect()
            }
            None => nginx(&server.allows, &scratch, directory)?,
        };
        let log = self.log(&format!("server-{}", server.name));
        let mut program = Program::start(&topology::server_namespace(index), &arguments, Stdout::Log, &log)?;
        program.wait_listening(server.command.is_none().then_some(80))?;
        Ok(program)
    }

    pub(super) fn act(&mut self, action: Action) -> Result<(), Error> {
        match action {
            Action::StartCross(group) => {
                let program = self.start_cross(group, &self.scenario.cross[group])?;
                self.cross.insert(group, program);
            }
            Action::StopCross(group) => {
                if let Some(mut program) = self.cross.remove(&group) {
                    program.kill();
                }
            }
            Action::Do(deed) => self.do_deed(deed)?,
            Action::Change(path, way, number) => {
                let change = &self.scenario.paths[path].direction(way).changes[number];
                self.emulator.change(path, way, change)?;
            }
        }
        Ok(())
    }

    fn do_deed(&mut self, deed: Deed) -> Result<(), Error> {
        match deed {
            Deed::Kill(host) => match (self.live.get_mut(&host), host) {
                (Some(program), _) => program.kill(),
                (None, Host::Server(server)) if !self.servers.is_empty() => self.servers[server].kill(),
                (None, _) => {}
            },
            Deed::Start(host) => match (self.live.get_mut(&host), host) {
                (Some(program), _) => program.start_again()?,
                (None, Host::Server(server)) if !self.servers.is_empty() => {
                    self.servers[server].kill();
                    self.servers[server] = self.start_server(server)?;
                }
                (None, _) => {}
            },
            Deed::Mtu(path, most) => topology::set_mtu(path, most)?,
            Deed::Renumber(server) => {
                self.renumbered[server] += 1;
                topology::renumber(self.scenario, server, self.renumbered[server])?;
            }
        }
        Ok(())
    }

    fn start_cross(&self, group: usize, cross: &Cross) -> Result<Program, Error> {
        let end = cross.stop.unwrap_or(self.scenario.duration).max(cross.start + Duration::from_secs(1));
        let seconds = (end - cross.start).as_secs_f64().ceil().to_string();
        let server = topology::server_address(cross.path).to_string();
        let client = topology::cross_address(cross.path, group).to_string();
        let port = topology::cross_port(group).to_string();
        let flows = cross.flows.to_string();
        let mut arguments =
            vec!["iperf3", "-c", &server, "-p", &port, "-B", &client, "-R", "-P", &flows, "-t", &seconds];
        let datagrams = match &cross.transport {
            Transport::Udp { rate, payload } => Some((payload.get().to_string(), rate.as_bps().to_string())),
            Transport::Tcp(_) => None,
        };
        if let Some((payload, rate)) = &datagrams {
            arguments.extend(["-u", "-l", payload, "-b", rate]);
        }
        let arguments: Vec<_> = arguments.into_iter().map(String::from).collect();
        Program::start(topology::CLIENT, &arguments, Stdout::Log, &self.log(&format!("cross-{}", cross.name)))
    }

    /// The command line of a client.
    pub(super) fn command(&self, client: &Client) -> Vec<String> {
        self.fill(&client.command, topology::server_address)
    }

    /// The command line of a live client's sender, `None` where it has none.
    pub(super) fn sender_command(&self, client: &Client) -> Option<Vec<String>> {
        client.sender.as_ref().map(|command| self.fill(command, topology::client_address))
    }

    fn fill(&self, command: &[String], far: impl Fn(usize) -> Ipv4Addr) -> Vec<String> {
        let film = self.order.film.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let rate = self.scenario.film.as_ref().map_or(0, |film| film.rate.as_bps());
        let mut known = vec![
            ("{rate}".to_owned(), rate.to_string()),
            ("{out}".to_owned(), format!("{SCRATCH}/out")),
            ("{dir}".to_owned(), self.order.out.display().to_string()),
            ("{anabranch}".to_owned(), self.order.anabranch.display().to_string()),
        ];
        if let Some(live) = &self.scenario.live {
            known.push(("{latency}".to_owned(), live.latency.as_millis().to_string()));
        }
        for path in 0..self.scenario.paths.len() {
            let number = path + 1;
            let address = far(path);
            known.push((format!("{{url{number}}}"), format!("http://{address}/{film}")));
            known.push((format!("{{address{number}}}"), address.to_string()));
            known.push((format!("{{interface{number}}}"), topology::interface(path)));
        }
        let fill =
            |text: &String| known.iter().fold(text.clone(), |text, (key, value)| text.replace(key, value));
        command.iter().map(fill).collect()
    }

    /// Ends all cross traffic.
    pub(super) fn stop_cross(&mut self) {
        std::mem::take(&mut self.cross).into_values().for_each(|mut program| program.kill());
    }

    /// What entered and left the paths of all flows until now, in the order of [`flows`].
    pub(super) fn counts(&self) -> Vec<(Count, Count)> {
        flows(self.scenario).iter().map(|(path, _, host)| self.emulator.counts(*path, *host)).collect()
    }

    /// The size of the film on disk, nothing without one.
    pub(super) fn film_size(&self) -> Result<Bytes, Error> {
        let size = self.order.film.as_ref().map_or(Ok(0), |film| fs::metadata(film).map(|meta| meta.len()));
        size.map(Bytes::new).map_err(Error::io("the film"))
    }
}

/// The command of a server that allows so much; with caps it stands behind a relay.
fn nginx(allows: &model::Server, scratch: &Path, directory: &Path) -> Result<Vec<String>, Error> {
    let busy = allows.connections.filter(|bound| bound.above == Above::Busy).map(|bound| bound.most);
    let caps = Caps { connection_cap: allows.connection_cap, client_cap: allows.client_cap };
    let is_capped = caps.connection_cap.or(caps.client_cap).is_some();
    let listen = if is_capped { relay::BEHIND.to_string() } else { "80".into() };
    let command = programs::nginx(scratch, directory, &listen, busy).map_err(Error::io("nginx.conf"))?;
    if !is_capped {
        return Ok(command);
    }
    let program = env::current_exe().map_err(Error::io("the program's own path"))?;
    Ok(caps.command(&program.display().to_string(), command))
}

/// The path, the name and the client's host byte of each flow.
pub(super) fn flows(scenario: &Scenario) -> Vec<(usize, String, u8)> {
    let films = (0..scenario.paths.len()).map(|path| (path, "film".to_owned(), topology::CLIENT_HOST));
    let groups = scenario
        .cross
        .iter()
        .enumerate()
        .map(|(group, cross)| (cross.path, cross.name.clone(), topology::cross_host(group)));
    films.chain(groups).collect()
}
