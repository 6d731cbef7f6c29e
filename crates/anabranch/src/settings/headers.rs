//! Which host is told which header.

use anabranch_http::{ExtraHeaders, Origin, Target};
use url::Url;

use crate::arguments::{Header, Untold};
use crate::failure::Failure;

const HEADER_FOR: &str = "--header-for takes an origin and a header, such as: \
     --header-for https://a.example 'NAME: VALUE'";

/// The headers of `--header` for the origins of these URLs, those of `--header-for` for theirs, and a
/// `User-Agent` for everybody.
///
/// # Errors
/// What is typed is no origin or no header, or there is no URL that a header could be for.
pub(super) fn resolve(
    urls: &[Url],
    bound_to_urls: &[Header],
    bound: &[Untold],
    user_agent: Option<&str>,
) -> Result<ExtraHeaders, Failure> {
    let mut headers = ExtraHeaders::default();
    if urls.is_empty() && !bound_to_urls.is_empty() {
        return Err(Failure::usage(
            "--header has no URL here whose host it could be for, and it is not told to every host that \
             players ask for: \
             write --header-for https://HOST 'NAME: VALUE'",
        ));
    }
    let mut origins = Vec::new();
    for url in urls {
        let target = Target::new(url).map_err(Failure::usage)?;
        if !origins.contains(target.origin()) {
            origins.push(target.origin().clone());
        }
    }
    for line in bound_to_urls {
        headers.add_for(&origins, &line.0).map_err(Failure::usage)?;
    }
    for pair in bound.chunks(2) {
        let [origin, line] = pair else { return Err(Failure::usage(HEADER_FOR)) };
        let origin = origin_of(&origin.0).ok_or_else(|| Failure::usage(HEADER_FOR))?;
        headers
            .add_for(&[origin], &line.0)
            .map_err(|error| Failure::usage(format_args!("--header-for: {error}")))?;
    }
    if let Some(agent) = user_agent {
        let wrong = |_| Failure::usage("--user-agent: a line of plain text is needed");
        headers.add(&format!("User-Agent: {agent}")).map_err(wrong)?;
    }
    Ok(headers)
}

/// An origin as it is typed: a URL without anything behind its host and port.
fn origin_of(typed: &str) -> Option<Origin> {
    let url = Url::parse(typed).ok()?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_plain = url.username().is_empty() && url.password().is_none();
    Target::new(&url).ok().filter(|_| is_bare && is_plain).map(|target| target.origin().clone())
}
