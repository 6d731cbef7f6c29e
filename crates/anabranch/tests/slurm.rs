//! `contrib/cluster` on a real Slurm: one of a machine's own, in a network of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anabranch_testkit::{Network, skipped};
use common::{anabranch, ends_with};

const SCENARIO: &str = r#"
[run]
duration = "1s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "2Mbps", delay = "10ms", queue = "20 packets" }
[[flow]]
name = "download"
kind = "tcp"
from = "sender1"
to = "receiver1"
"#;

/// Longer than Slurm's daemons need on a busy machine.
const STARTED: Duration = Duration::from_secs(60);

/// What munge accepts as a key: nobody else may read it.
const KEY: &str = "set -e; umask 077; head -c 1024 /dev/urandom >munge.key; mkdir state spool";

/// Slurm's daemons on one node; killed in the end.
struct Cluster {
    network: Network,
    directory: tempfile::TempDir,
    daemons: Vec<Child>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // One that has ended needs no more.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Cluster {
    /// A cluster that takes jobs; `None`, and why is told, where there can be none.
    fn start() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped("Slurm's daemons need root");
            return None;
        }
        for program in ["munged", "slurmctld", "slurmd", "sbatch"] {
            if Command::new(program).arg("--version").output().is_err() {
                skipped(format_args!("no {program} here: apt-get install slurm-wlm munge"));
                return None;
            }
        }
        if !fs::read_dir("/sys/fs/cgroup").is_ok_and(|mut groups| groups.next().is_some()) {
            skipped("no control groups at /sys/fs/cgroup, without which slurmd does not begin");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        assert!(Command::new("bash").args(["-c", KEY]).current_dir(at).status().unwrap().success());
        let uname = rustix::system::uname();
        let name = uname.nodename().to_str().unwrap().split('.').next().unwrap();
        fs::write(at.join("slurm.conf"), configuration(at, name)).unwrap();
        let network = Network::new("slurm");
        // Where there is none but loopback's, slurmctld finds no address to listen at.
        let address = network.command("ip").args(["address", "add", "192.0.2.1/32", "dev", "lo"]).status();
        assert!(address.is_ok_and(|status| status.success()), "the network gets no address");
        let mut cluster = Self { network, directory, daemons: Vec::new() };
        cluster.daemon(
            "munged",
            &[
                "--force",
                "--foreground",
                "--socket=munge.sock",
                "--key-file=munge.key",
                "--pid-file=munge.pid",
            ],
        );
        cluster.daemon("slurmctld", &["-D"]);
        cluster.daemon("slurmd", &["-D"]);
        let began = Instant::now();
        while !cluster.has_idle_node() {
            assert!(began.elapsed() < STARTED, "no idle node: {}", cluster.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
        Some(cluster)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// One of Slurm's programs, for this cluster.
    fn slurm(&self, program: &str) -> Command {
        // `ip netns exec` would hide the control groups, without which slurmd does not begin.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.network.name())).arg(program);
        command.current_dir(self.path()).env("SLURM_CONF", self.path().join("slurm.conf"));
        command
    }

    fn daemon(&mut self, program: &str, arguments: &[&str]) {
        let at = self.path();
        // munge takes paths from the root only.
        let whole = |argument: &&str| match argument.split_once('=') {
            Some((option, file)) => format!("{option}={}", at.join(file).display()),
            None => (*argument).to_owned(),
        };
        let arguments: Vec<String> = arguments.iter().map(whole).collect();
        let log = fs::File::create(at.join(program).with_extension("log")).unwrap();
        let mut command = self.slurm(program);
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }

    fn has_idle_node(&self) -> bool {
        let said = self.slurm("sinfo").args(["--noheader", "--format=%t"]).output().unwrap();
        said.stdout.starts_with(b"idle")
    }

    /// What daemons and tasks have told.
    fn logs(&self) -> String {
        let files = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    /// Gives a script of `contrib/cluster` to Slurm, and waits for all of its tasks.
    fn runs(&self, script: &str, arguments: &[&str]) {
        let mut batch = self.slurm("sbatch");
        batch.args(["--wait", script]).args(arguments).env("ANABRANCH", env!("CARGO_BIN_EXE_anabranch"));
        let told = batch.output().unwrap();
        assert!(told.status.success(), "{told:?}\n{}", self.logs());
    }

    /// The lab of this program, beside what the tasks made.
    fn lab(&self, arguments: &[&str]) {
        let mut command = anabranch();
        ends_with(&command.current_dir(self.path()).arg("lab").args(arguments).output().unwrap(), 0);
    }
}

/// A cluster of one node with room for two tasks of two processors each, whatever the machine has.
fn configuration(at: &Path, name: &str) -> String {
    let at = at.display();
    format!(
        "ClusterName=anabranch\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={at}/munge.sock\n\
         StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\n\
         SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.pid\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\n\
         ReturnToService=2\nNodeName={name} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\n\
         PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    )
}

/// The files of finished runs.
fn kept(directory: &Path) -> BTreeSet<PathBuf> {
    let programs = fs::read_dir(directory.join("runs")).unwrap();
    programs
        .flat_map(|program| fs::read_dir(program.unwrap().path()).unwrap())
        .map(|run| run.unwrap().path())
        .collect()
}

#[test]
fn arrays_of_a_real_slurm_make_sweeps_and_experiments() {
    let Some(cluster) = Cluster::start() else { return };
    let at = cluster.path();
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/cluster");
    for name in ["run-shard", "sweep.slurm", "experiments.slurm"] {
        fs::copy(contrib.join(name), at.join(name)).unwrap();
    }

    fs::write(at.join("path.toml"), SCENARIO).unwrap();
    fs::write(
        at.join("sweep.toml"),
        "scenario = \"path.toml\"\nseeds = 2\n[[parameter]]\nkey = \"run.duration\"\nvalues = [\"1s\", \"2s\", \"3s\"]\n",
    )
    .unwrap();
    cluster.runs("sweep.slurm", &["sweep.toml", "shared"]);
    cluster.lab(&["merge", "shared"]);
    cluster.lab(&["sweep", "sweep.toml", "--out", "alone"]);
    let table = |name: &str| fs::read_to_string(at.join(name).join("table.csv")).unwrap();
    assert_eq!(table("shared"), table("alone"));

    let experiments = ["multfrc-example", "multitcp-eq6.4", "--quick", "--out"];
    cluster.runs("experiments.slurm", &[&experiments[..], &["apart"]].concat());
    let made = kept(&at.join("apart"));
    assert!(!at.join("apart/verdicts.json").exists(), "a share makes a report");
    cluster.lab(&[&["run"], &experiments[..], &["apart"]].concat());
    assert_eq!(kept(&at.join("apart")), made, "the tasks have not made all runs");
    cluster.lab(&[&["run"], &experiments[..], &["together"]].concat());
    let verdicts = |name: &str| fs::read_to_string(at.join(name).join("verdicts.json")).unwrap();
    assert_eq!(verdicts("apart"), verdicts("together"));
}
