//! Addresses of mail.

use crate::ErrorCode;
use crate::{Error, Result};
use lettre::message::Mailbox;

/// An address that mail could go to, or what is wrong with it.
pub fn check_address(address: &str) -> Result<()> {
    mailbox(address, "recipient").map(|_| ())
}

/// Reads an address; `whose` it is shows in the error.
pub fn mailbox(address: &str, whose: &str) -> Result<Mailbox> {
    let shown: String = address.chars().filter(|c| !c.is_control()).take(200).collect();
    let wrong = |why: String| {
        let message =
            format!("the {whose}'s address {shown:?} is no mail address: {why}; correct it");
        Error::permanent(ErrorCode::MailAddress, message)
    };
    if address.len() > 500 || address.chars().any(char::is_control) {
        return Err(wrong("it is too long or has control characters".to_owned()));
    }
    address.trim().parse().map_err(|error: lettre::address::AddressError| wrong(error.to_string()))
}
