//! The secret that lets a sender in.

use std::fs;

use crate::arguments::TokenArguments;
use crate::failure::Failure;

/// Where the secret is when no option says so.
const TOKEN_VARIABLE: &str = "ANABRANCH_TOKEN";

/// The secret, empty when there is none.
pub(super) fn token(arguments: &TokenArguments) -> Result<Vec<u8>, Failure> {
    let token = match (&arguments.token, &arguments.token_file) {
        (Some(token), _) => token.clone(),
        (None, Some(path)) => {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::failed(format_args!("cannot read {}: {error}", path.display())))?;
            text.lines().next().unwrap_or_default().to_owned()
        }
        (None, None) => std::env::var(TOKEN_VARIABLE).unwrap_or_default(),
    };
    if token.len() > anabranch_protocol::live::hello::MAX_TOKEN {
        let most = anabranch_protocol::live::hello::MAX_TOKEN;
        return Err(Failure::usage(format_args!("a token has {most} bytes at the most")));
    }
    Ok(token.into_bytes())
}
