//! A connection under a control.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

/// The congestion window of the connection from this address, as the kernel itself tells it.
pub fn cwnd(local: SocketAddr) -> u64 {
    let filter = format!("sport = :{}", local.port());
    let output = Command::new("ss").args(["--no-header", "--tcp", "--info", &filter]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = text.split_whitespace().find_map(|word| word.strip_prefix("cwnd:"));
    told.unwrap_or_else(|| panic!("no cwnd in {text:?}")).parse().unwrap()
}

/// Carries `bytes` over loopback, from a sender that has this control, and shows its connection: sender,
/// receiver.
pub fn carry(control: &str, bytes: usize, seen: impl FnOnce(SocketAddr, SocketAddr)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let control = control.to_owned();
    let sender = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        socket2::SockRef::from(&stream).set_tcp_congestion(control.as_bytes()).unwrap();
        stream.write_all(&vec![7; bytes]).unwrap();
        // Open until the other end has seen enough.
        let _ = stream.read(&mut [0]);
    });
    let mut stream = TcpStream::connect(address).unwrap();
    let mut got = vec![0; bytes];
    stream.read_exact(&mut got).unwrap();
    assert!(got.iter().all(|byte| *byte == 7));
    seen(address, stream.local_addr().unwrap());
    drop(stream);
    sender.join().unwrap();
}
