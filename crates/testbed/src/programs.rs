//! Programs in namespaces: started in a process group each, and ended by it.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::Error;

/// How long a server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a program may take to end when it was asked to.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A running program.
#[derive(Debug)]
pub struct Program {
    line: String,
    log: PathBuf,
    child: Child,
}

/// Where a program's standard output goes.
#[derive(Clone, Copy, Debug)]
pub enum Stdout {
    /// Into its log, with its standard error.
    Log,
    /// To us.
    Pipe,
}

impl Program {
    /// Starts `arguments` in a namespace; what it says goes to the file `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(namespace: &str, arguments: &[String], stdout: Stdout, log: &Path) -> Result<Self, Error> {
        let line = arguments.join(" ");
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .map_err(Error::io(log.display().to_string()))?;
        let copy = file.try_clone().map_err(Error::io(log.display().to_string()))?;
        let child = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{namespace}"))
            .arg("--")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(match stdout {
                Stdout::Log => Stdio::from(copy),
                Stdout::Pipe => Stdio::piped(),
            })
            .stderr(file)
            .process_group(0)
            .spawn()
            .map_err(|error| Error::Program { program: line.clone(), cause: error.to_string() })?;
        Ok(Self { line, log: log.into(), child })
    }

    /// Takes the pipe of its standard output.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// How it ended, `None` while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        // A child that cannot be waited for is gone.
        self.child.try_wait().unwrap_or_else(|_| Some(ExitStatus::from_raw(0)))
    }

    /// Waits until it listens on this TCP port of its namespace, any port without one.
    ///
    /// # Errors
    /// When it ends before, or takes too long; with the end of its log.
    pub fn wait_listening(&mut self, port: Option<u16>) -> Result<(), Error> {
        let listening = |socket: &Socket| socket.listening && port.is_none_or(|port| port == socket.port);
        self.wait_socket(&["tcp", "tcp6"], listening, "it does not listen")
    }

    fn wait_socket(
        &mut self,
        tables: &[&str],
        wanted: impl Fn(&Socket) -> bool,
        missing: &str,
    ) -> Result<(), Error> {
        let start = Instant::now();
        while start.elapsed() < LISTEN_TIMEOUT {
            if self.ended().is_some() {
                return Err(self.failure("it ended"));
            }
            let files = tables.iter().map(|name| format!("/proc/{}/net/{name}", self.child.id()));
            let table: String = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
            if table.lines().filter_map(Socket::parse).any(|socket| wanted(&socket)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(self.failure(missing))
    }

    /// Waits until this UDP port of its namespace is taken.
    ///
    /// # Errors
    /// As [`Program::wait_listening`].
    pub fn wait_bound(&mut self, port: u16) -> Result<(), Error> {
        self.wait_socket(&["udp", "udp6"], |socket| socket.port == port, "it does not open its port")
    }

    /// CPU time that it has used, zero when that is not known any more.
    pub fn cpu_seconds(&self) -> f64 {
        let line = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second();
        cpu_ticks(&line).map_or(0.0, |used| used as f64 / ticks as f64)
    }

    /// A failure of this program, with the end of what it said.
    pub fn failure(&self, what: &str) -> Error {
        let log = fs::read(&self.log).unwrap_or_default();
        let end = String::from_utf8_lossy(&log[log.len().saturating_sub(1000)..]).trim().to_owned();
        Error::Program { program: self.line.clone(), cause: format!("{what}: {end}") }
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Asks it to end, and insists after two seconds.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.signal(Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < END_TIMEOUT {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        self.ended()
    }

    fn signal(&self, signal: Signal) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // The group may be gone already; the namespace's end takes whatever is left.
        let _ = group.map_or(Ok(()), |group| kill_process_group(group, signal));
    }
}

/// User and system time in a `/proc/PID/stat`, in ticks.
fn cpu_ticks(stat: &str) -> Option<u64> {
    // The name in brackets may hold anything, brackets too; after it come the third field and the others.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    Some(times.next()?? + times.next()??)
}

/// A line of `/proc/net/tcp` or `tcp6`, `udp` or `udp6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// The local address, `None` for IPv6.
    pub address: Option<Ipv4Addr>,
    /// The local port.
    pub port: u16,
    /// Whether it is an established connection.
    pub established: bool,
    /// Whether it waits for connections.
    pub listening: bool,
}

impl Socket {
    /// Reads a line; `None` for the heading.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (address, port) = fields.next()?.split_once(':')?;
        let state = fields.nth(1)?;
        let word = (address.len() == 8).then(|| u32::from_str_radix(address, 16).ok()).flatten();
        Some(Self {
            // The kernel prints the word in memory order.
            address: word.map(|word| Ipv4Addr::from(word.to_ne_bytes())),
            port: u16::from_str_radix(port, 16).ok()?,
            established: state == "01",
            listening: state == "0A",
        })
    }
}

/// Writes a configuration for nginx that serves `root` at this address out of `scratch`, and gives its
/// command line. While `busy` requests are under way, it answers others with 503.
///
/// One process and no other user: it also runs where there is none, in an ordinary user's namespaces.
///
/// # Errors
/// When the files cannot be written.
pub fn nginx(scratch: &Path, root: &Path, listen: &str, busy: Option<u32>) -> io::Result<Vec<String>> {
    fs::create_dir_all(scratch)?;
    let file = scratch.join("nginx.conf");
    let here = scratch.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|name| format!("{name}_temp_path {here}/{name};\n"))
        .collect();
    let busy = busy.map_or_else(String::new, |most| {
        format!("limit_conn_zone $server_port zone=all:1m;\nlimit_conn all {most};\n")
    });
    let text = format!(
        "daemon off;\nmaster_process off;\nuser root;\npid {here}/nginx.pid;\nerror_log {here}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n{temporary}{busy}access_log {here}/access.log;\nsendfile on;\n\
         types {{ video/mp2t ts; }}\ndefault_type application/octet-stream;\n\
         server {{ listen {listen}; root {}; }}\n}}\n",
        root.display()
    );
    fs::write(&file, text)?;
    let arguments = ["nginx", "-e", &format!("{here}/error.log"), "-p", &format!("{here}"), "-c"];
    Ok(arguments.iter().map(|text| (*text).to_owned()).chain([file.display().to_string()]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_as_the_kernel_prints_it() {
        let line = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 7 5 0 0 20 0 1 0 100";
        assert_eq!(cpu_ticks(line), Some(12));
        assert_eq!(cpu_ticks("42 (cat) S 1"), None);
        assert_eq!(cpu_ticks(""), None);
    }

    #[test]
    fn sockets_as_the_kernel_lists_them() {
        let line = "   0: 0A00007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0";
        let socket = Socket::parse(line).unwrap();
        assert!(socket.listening && !socket.established && socket.port == 80);
        if cfg!(target_endian = "little") {
            assert_eq!(socket.address, Some(Ipv4Addr::new(127, 0, 0, 10)));
        }
        assert_eq!(Socket::parse("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(Socket::parse(""), None);
    }
}
