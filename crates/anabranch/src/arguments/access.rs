//! Who may ask the local endpoint of `play` and `proxy`, besides programs.

use std::str::FromStr;

use clap::Args;
use url::Url;

/// Who may ask the local endpoint.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Access")]
pub struct AccessArguments {
    /// Answer web pages of this origin, such as https://player.example; may be given several times
    ///
    /// Programs are always answered, pages in a browser only when they come from this machine
    /// (http://localhost:3000) or are allowed here. 'null' allows pages that are opened as files, and with
    /// them every page that hides in a sandboxed frame or does not say where it is from, which any page in
    /// the browser can do: better serve the page on this machine, as by 'anabranch serve DIR'.
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<PageOrigin>,
    /// Answer requests that call this machine by this name; may be given several times
    ///
    /// Its addresses, localhost, and where it listens for other machines the name of the system are always
    /// right. Any other name could be that of a page which was made to lead here (DNS rebinding).
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
}

/// The origin of pages, as browsers say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOrigin(pub String);

impl FromStr for PageOrigin {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        const FORMS: &str =
            "an origin is written https://player.example, with a port where it is not the usual one, or null";
        if typed == "null" {
            return Ok(Self(typed.into()));
        }
        let url = Url::parse(typed).map_err(|_| FORMS)?;
        let is_bare = ["", "/"].contains(&url.path()) && url.query().is_none() && url.fragment().is_none();
        if !url.has_host() || !is_bare || !url.username().is_empty() || url.password().is_some() {
            return Err(FORMS.into());
        }
        let origin = url.origin();
        // Of a scheme that is not one of the web's (an extension, an app) the browser says what stands in the
        // address.
        Ok(Self(if origin.is_tuple() {
            origin.ascii_serialization()
        } else {
            typed.trim_end_matches('/').to_owned()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_as_they_are_typed() {
        for (typed, origin) in [
            ("https://Player.example", "https://player.example"),
            ("https://player.example:443/", "https://player.example"),
            ("http://192.168.1.2:3000", "http://192.168.1.2:3000"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
            ("null", "null"),
        ] {
            assert_eq!(typed.parse(), Ok(PageOrigin(origin.into())), "{typed}");
        }
        for wrong in ["*", "", "player.example", "https://player.example/page", "https://u:p@player.example"]
        {
            assert!(wrong.parse::<PageOrigin>().is_err(), "{wrong}");
        }
    }
}
