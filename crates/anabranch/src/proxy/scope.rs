//! What may be asked for, and how the references of playlists are written so that they can be.

use std::hash::{BuildHasher, RandomState};

use anabranch_media::playlist;
use url::Url;

use super::address;

/// What begins the path of something that another host's playlist or redirect named: a player's secrets are
/// not for it.
const ANONYMOUS: &str = "anonymous/";

/// What may be asked for.
#[derive(Debug)]
pub(crate) enum Scope {
    /// Everything: `/URL`, and `/anonymous/URL` without the player's own secrets.
    Everything,
    /// Directories that were named here, and what is below: `/TAG/URL`, with a tag that only this key makes.
    Named(Key),
}

/// Makes tags that nobody can guess.
#[derive(Debug, Default)]
pub(crate) struct Key(RandomState);

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requested {
    pub(super) url: Url,
    /// Whether the player's own secrets are for it: it was named by whoever started the player, and by nobody
    /// else.
    pub(super) with_secrets: bool,
}

/// Why a request asks for nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// It is no URL that can be asked for; the text says why.
    Unreadable(String),
    /// It does not belong to what may be asked for.
    NotNamed,
}

impl Key {
    /// What `url` begins with when it is named.
    fn tag(&self, directory: &str) -> String {
        format!("{:016x}/", self.0.hash_one(directory))
    }

    /// Whether `url` is in a directory that this tag names, or below.
    fn names(&self, tag: &str, url: &Url) -> bool {
        let text = address_of(url);
        let begin = url[..url::Position::BeforePath].len();
        let slashes = text.match_indices('/').map(|(index, _)| index).filter(|index| *index >= begin);
        slashes.take(MOST_DIRECTORIES).any(|index| self.tag(&text[..=index]).trim_end_matches('/') == tag)
    }
}

/// A path that is nested deeper is not looked at any further.
const MOST_DIRECTORIES: usize = 64;

/// A URL without its query and its fragment.
fn address_of(url: &Url) -> &str {
    &url[..url::Position::AfterPath]
}

/// The directory of a URL; that of the part before the first variable (`$Number$`, `{$name}`), where it has
/// one.
fn directory(url: &Url) -> &str {
    let text = address_of(url);
    let begin = url[..url::Position::BeforePath].len();
    let known = text[begin..].find('$').map_or(text, |index| &text[..begin + index]);
    known.rfind('/').filter(|index| *index >= begin).map_or(text, |index| &known[..=index])
}

impl Scope {
    /// What is behind the slash of a request's target.
    pub(super) fn requested(&self, path_and_query: &str) -> Result<Requested, Miss> {
        let path = path_and_query.strip_prefix('/').unwrap_or(path_and_query);
        match self {
            Self::Everything => {
                let (path, with_secrets) = match path.strip_prefix(ANONYMOUS) {
                    Some(path) => (path, false),
                    None => (path, true),
                };
                let url = address::requested(path).map_err(Miss::Unreadable)?;
                Ok(Requested { url, with_secrets })
            }
            Self::Named(key) => {
                let (tag, path) = path.split_once('/').ok_or(Miss::NotNamed)?;
                let url = address::requested(path).map_err(|_| Miss::NotNamed)?;
                let is_named = key.names(tag, &url);
                is_named.then_some(Requested { url, with_secrets: false }).ok_or(Miss::NotNamed)
            }
        }
    }

    /// The path of `url`, as it is named by what was `requested`.
    pub(super) fn path(&self, requested: &Requested, url: &Url) -> String {
        let prefix = self.prefix(Some(requested), Some(url)).unwrap_or_default();
        format!("/{prefix}{url}")
    }

    /// The path of `url`, as it is named by the user.
    pub(crate) fn entrance(&self, url: &Url) -> String {
        let prefix = self.prefix(None, Some(url)).unwrap_or_default();
        format!("/{prefix}{url}")
    }

    fn prefix(&self, requested: Option<&Requested>, url: Option<&Url>) -> Option<String> {
        match self {
            Self::Everything => {
                let is_same = |requested: &Requested| {
                    requested.with_secrets && url.is_some_and(|url| url.origin() == requested.url.origin())
                };
                Some(if requested.is_none_or(is_same) { String::new() } else { ANONYMOUS.to_owned() })
            }
            Self::Named(key) => url.map(|url| key.tag(directory(url))),
        }
    }

    /// How the references of the playlist that was `requested` lead through the endpoint at `own`, which ends
    /// in a slash.
    pub(super) fn route<'a>(&'a self, requested: &'a Requested, own: String) -> Route<'a> {
        Route { scope: self, requested, own }
    }
}

/// The way of the references of one playlist.
pub(super) struct Route<'a> {
    scope: &'a Scope,
    requested: &'a Requested,
    own: String,
}

impl playlist::Route for Route<'_> {
    fn endpoint(&self) -> &str {
        &self.own
    }

    fn prefix(&self, url: Option<&Url>) -> Option<String> {
        let prefix = self.scope.prefix(Some(self.requested), url)?;
        Some(format!("{}{prefix}", self.own))
    }

    /// The player was sent on from the name that it was told, and some (ffmpeg with DASH) count from there
    /// all the same.
    fn keeps_relative(&self) -> bool {
        matches!(self.scope, Scope::Everything)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_media::playlist::Route as _;

    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn secrets_are_for_what_the_user_named() {
        let scope = Scope::Everything;
        let asked = |path: &str| {
            scope.requested(path).map(|requested| (requested.url.to_string(), requested.with_secrets))
        };
        assert_eq!(asked("/https://a.example/b?c"), Ok(("https://a.example/b?c".into(), true)));
        assert_eq!(asked("/anonymous/https://a.example/b"), Ok(("https://a.example/b".into(), false)));
        assert!(matches!(asked("/anonymous/b"), Err(Miss::Unreadable(_))));
        let own = "http://127.0.0.1:8090/";
        for (with_secrets, reference, prefix) in [
            (true, Some("https://a.example/x"), ""),
            (true, Some("https://a.example:444/x"), "anonymous/"),
            (true, Some("http://a.example/x"), "anonymous/"),
            (true, Some("https://b.example/x"), "anonymous/"),
            (true, None, "anonymous/"),
            // What another host names is not what the user named, even where it leads back.
            (false, Some("https://a.example/x"), "anonymous/"),
        ] {
            let requested = Requested { url: url("https://a.example/list.m3u8"), with_secrets };
            let route = scope.route(&requested, own.into());
            let told = route.prefix(reference.map(url).as_ref());
            assert_eq!(told, Some(format!("{own}{prefix}")), "{reference:?}");
        }
    }

    #[test]
    fn only_what_was_named_can_be_asked_for() {
        let scope = Scope::Named(Key::default());
        let path = scope.entrance(&url("https://a.example/films/list.m3u8?token=1"));
        let tag = path.split('/').nth(1).unwrap();
        for (wanted, is_named) in [
            ("https://a.example/films/list.m3u8?token=1", true),
            ("https://a.example/films/1.ts", true),
            ("https:/a.example/films/1.ts", true),
            ("https://a.example/films/sub/1.ts?/x", true),
            ("https://a.example/other/1.ts", false),
            ("https://a.example/films/../other/1.ts", false),
            ("https://a.example/films/%2e%2e/other/1.ts", false),
            ("https://a.example/?/films/1.ts", false),
            ("https://a.example/films", false),
            ("http://a.example/films/1.ts", false),
            ("https://a.example:444/films/1.ts", false),
            ("https://b.example/https://a.example/films/1.ts", false),
        ] {
            let asked = scope.requested(&format!("/{tag}/{wanted}"));
            assert_eq!(asked.is_ok(), is_named, "{wanted}: {asked:?}");
            assert!(!asked.is_ok_and(|requested| requested.with_secrets));
            assert_eq!(scope.requested(&format!("/{wanted}")), Err(Miss::NotNamed));
            assert_eq!(scope.requested(&format!("/0123456789abcdef/{wanted}")), Err(Miss::NotNamed));
        }
        assert_eq!(scope.requested("/"), Err(Miss::NotNamed));
        // Another program has another key.
        assert_ne!(
            path,
            Scope::Named(Key::default()).entrance(&url("https://a.example/films/list.m3u8?token=1"))
        );
    }

    #[test]
    fn a_template_names_the_directory_before_its_variable() {
        for (reference, expected) in [
            ("https://a.example/films/$RepresentationID$/1.m4s", "https://a.example/films/"),
            ("https://a.example/films/{$name}.ts", "https://a.example/films/"),
            ("https://a.example/films/1.ts?$x", "https://a.example/films/"),
            ("https://a.example/$Number$.m4s", "https://a.example/"),
            ("https://a.example", "https://a.example/"),
        ] {
            assert_eq!(directory(&url(reference)), expected, "{reference}");
        }
    }
}
