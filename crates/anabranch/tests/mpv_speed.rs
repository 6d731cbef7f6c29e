//! mpv at double speed: it takes all that comes, and tells nobody how fast it plays.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod play_support;

use std::fs;

use play_support::{Origin, Program, tool};

#[test]
fn mpv_at_double_speed_never_waits() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    if tool("mpv", &["--version"]).is_none() {
        return;
    }
    let source = ["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-t", "50"];
    let constant =
        ["-c:v", "libx264", "-preset", "ultrafast", "-b:v", "1M", "-maxrate", "1M", "-bufsize", "1M"];
    let format = ["-x264-params", "nal-hrd=cbr", "-f", "mpegts", &at("film.ts")];
    let Some(made) = tool("ffmpeg", &[&source[..], &constant, &format].concat()) else { return };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (script, log) = (at("waits.lua"), at("mpv.log"));
    fs::write(
        &script,
        "local waits = 0\n\
         mp.observe_property('paused-for-cache', 'bool', function(_, is) if is then waits = waits + 1 end \
         end)\n\
         mp.register_event('end-file', function(event) print('ENDED ' .. event.reason .. ' after ' .. waits \
         .. ' waits') end)\n",
    )
    .unwrap();
    let origin = Origin::start(directory.path(), None);
    let player = format!(
        "mpv --no-config --no-terminal --vo=null --ao=null --speed=2 --log-file='{log}' \
         --script='{script}' {{}}"
    );
    let mut program = Program::start(["play", "--player", &player, &origin.url("film.ts")]);
    let (code, said) = program.ended();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("over 1 connection at most"), "{said}");
    let log = fs::read_to_string(&log).unwrap();
    let ended = log.lines().find(|line| line.contains("ENDED ")).unwrap();
    assert!(ended.contains("ENDED eof after 0 waits"), "{ended}; {said}");
}
