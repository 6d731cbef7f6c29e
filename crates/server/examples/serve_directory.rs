//! Serves a directory on loopback: `serve_directory DIR PORT`. To measure the server without the command
//! line.

use std::error::Error;

use anabranch_server::{Config, Server};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(directory), Some(port)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve_directory DIR PORT".into());
    };
    let mut config = Config::new(directory, ([127, 0, 0, 1], port.parse()?).into());
    config.max_connections_per_client = config.max_connections;
    let server = Server::bind(config)?;
    println!("http://{}/", server.local_addr()?);
    server.run(async { drop(tokio::signal::ctrl_c().await) }).await;
    Ok(())
}
