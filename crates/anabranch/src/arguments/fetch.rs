//! `anabranch fetch`.

use clap::Args;

use super::{Digest, FilmUrl, Place, ReportArguments, SourceArguments};

/// Options of `anabranch fetch`.
#[derive(Args, Debug)]
pub struct FetchArguments {
    /// URLs of the same file on one or more servers
    #[arg(required = true, value_name = "URL")]
    pub urls: Vec<FilmUrl>,
    /// Write to this file, or to standard output, which must be no terminal, with '-' [default: the last part
    /// of the first URL's path]
    #[arg(long, short, value_name = "FILE|-")]
    pub output: Option<Place>,
    /// Overwrite FILE when it is there already
    #[arg(long)]
    pub force: bool,
    /// Forget what an earlier run has got of the file, and start over
    #[arg(long)]
    pub restart: bool,
    /// Check the whole against this digest: sha-256=HEX, sha-256=BASE64 or sha-256=:BASE64:; a file with
    /// another one is renamed to FILE.mismatch. Where a server has no ranges, and tells neither a date nor a
    /// tag nor another size, nothing else shows that the film was overwritten while it was sent
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<Digest>,
    /// Where the file comes from.
    #[command(flatten)]
    pub source: SourceArguments,
    /// What is told about it.
    #[command(flatten)]
    pub report: ReportArguments,
}
