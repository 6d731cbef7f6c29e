//! A real film from two stock nginx servers, one of which is killed on the way.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use play_support::{LIMIT, Program, SeekingPlayer, nginx_configuration, real_film, tool};

/// A stock nginx on loopback; killed when dropped.
struct Nginx {
    child: Child,
    url: String,
}

impl Nginx {
    /// Serves `directory/film.mp4` at most this fast on each connection.
    fn start(directory: &Path, name: &str, bytes_per_second: u32) -> Self {
        let own = directory.join(name);
        std::fs::create_dir_all(&own).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (root, own) = (directory.display(), own.display().to_string());
        let server = format!("listen 127.0.0.1:{port}; root {root}; limit_rate {bytes_per_second};");
        let config = nginx_configuration(&own, &server);
        let path = PathBuf::from(&own).join("nginx.conf");
        std::fs::write(&path, config).unwrap();
        let child =
            Command::new("nginx").arg("-c").arg(&path).args(["-p", &own]).stderr(Stdio::null()).spawn();
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < LIMIT, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child: child.unwrap(), url: format!("http://127.0.0.1:{port}/film.mp4") }
    }

    fn kill_after(mut self, time: Duration) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            std::thread::sleep(time);
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn film() -> Option<(tempfile::TempDir, PathBuf)> {
    tool("nginx", &["-v"])?;
    let directory = tempfile::tempdir().unwrap();
    // nginx gives up root for its worker's user, if it is root.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let film = directory.path().join("film.mp4");
    real_film(&film)?;
    Some((directory, film))
}

#[test]
fn mpv_plays_to_the_end_with_three_seeks_while_a_replica_is_killed() {
    let Some((directory, _)) = film() else { return };
    if tool("mpv", &["--version"]).is_none() {
        return;
    }
    let (one, two) =
        (Nginx::start(directory.path(), "one", 150_000), Nginx::start(directory.path(), "two", 150_000));
    let mpv = SeekingPlayer::new(directory.path());
    let mut program = Program::start(["play", &one.url, &two.url, "--player", &mpv.command]);
    let killed = one.kill_after(Duration::from_secs(2));
    let (code, said) = program.ended();
    killed.join().unwrap();
    assert_eq!(code, Some(0), "{said}");
    mpv.assert_played_to_the_end();
}

#[test]
fn fetch_gives_the_same_bytes_while_a_replica_is_killed() {
    let Some((directory, film)) = film() else { return };
    let (one, two) =
        (Nginx::start(directory.path(), "one", 150_000), Nginx::start(directory.path(), "two", 150_000));
    let out = directory.path().join("out.mp4");
    let mut program =
        Program::start(["fetch", &one.url, &two.url, "--connections", "2", "-o", out.to_str().unwrap()]);
    let killed = one.kill_after(Duration::from_secs(2));
    let (code, said) = program.ended();
    killed.join().unwrap();
    assert_eq!(code, Some(0), "{said}");
    assert!(std::fs::read(out).unwrap() == std::fs::read(film).unwrap(), "other bytes");
}
