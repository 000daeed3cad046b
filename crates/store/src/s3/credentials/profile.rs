//! The profiles of `~/.aws/config` and `~/.aws/credentials`.

use super::{Credentials, Environment, denied};
use crate::error::Result;
use std::collections::BTreeMap;

/// A profile that names another as its source may not do so forever.
const SOURCES_MAX: usize = 5;

type Section = BTreeMap<String, String>;

/// All profiles, by name; what `credentials` says goes before what `config` says.
#[derive(Debug, Default)]
pub(super) struct Profiles(BTreeMap<String, Section>);

/// A role to take on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub arn: String,
    pub session: Option<String>,
    pub external_id: Option<String>,
    /// Where the profile asks for it, if it says.
    pub region: Option<String>,
}

/// How to get the credentials of a profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    Keys(Credentials),
    Process(String),
    Environment,
    Container,
    Machine,
    WebIdentity {
        role: Role,
        token_file: String,
    },
    /// A role, and how to get the keys that may take it on; `source` names them in messages.
    Role {
        role: Role,
        with: Box<Plan>,
        source: String,
    },
}

impl Profiles {
    pub(super) fn read(environment: &Environment) -> Result<Profiles> {
        let mut profiles = Profiles::default();
        for (variable, default) in
            [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")]
        {
            let Some(path) = environment.file(variable, default) else { continue };
            match std::fs::read_to_string(&path) {
                Ok(text) => profiles.add(&text, default == "config"),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(denied(format!("{}: {error}", path.display()))),
            }
        }
        Ok(profiles)
    }

    fn add(&mut self, text: &str, is_config: bool) {
        let mut current: Option<String> = None;
        // Indented lines belong to the setting above, such as those of `s3 =`.
        let mut nested: Option<String> = None;
        for line in text.lines() {
            if line.trim().is_empty() || line.trim_start().starts_with(['#', ';']) {
                continue;
            }
            if line.starts_with([' ', '\t']) {
                if let (Some(section), Some(above)) = (&current, &nested)
                    && let Some((name, value)) = line.split_once('=')
                {
                    let name = format!("{above}.{}", name.trim().to_lowercase());
                    let section = self.0.entry(section.clone()).or_default();
                    section.insert(name, value.trim().to_owned());
                }
                continue;
            }
            nested = None;
            if let Some(name) = line.trim().strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                let name = name.trim();
                let name = match (is_config, name.strip_prefix("profile ")) {
                    (true, Some(name)) => Some(name.trim()),
                    // Beside profiles, there are sections of settings for services.
                    (true, None) => {
                        Some(name).filter(|n| *n == "default" || n.starts_with("services "))
                    }
                    (false, _) => Some(name),
                };
                current = name.map(str::to_owned);
                continue;
            }
            let (Some(section), Some((name, value))) = (&current, line.split_once('=')) else {
                continue;
            };
            let section = self.0.entry(section.clone()).or_default();
            let name = name.trim().to_lowercase();
            nested = value.trim().is_empty().then(|| name.clone());
            section.insert(name, value.trim().to_owned());
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Section> {
        self.0.get(name)
    }

    /// The address of S3 that a profile gives: by the services that it names, or for all.
    pub(super) fn endpoint(&self, name: &str) -> Option<String> {
        let profile = self.get(name)?;
        let services = profile.get("services").and_then(|s| self.get(&format!("services {s}")));
        let of_s3 = services.and_then(|services| services.get("s3.endpoint_url"));
        of_s3.or_else(|| profile.get("endpoint_url")).cloned()
    }

    /// What to do for the credentials of a profile; nothing if there is no such profile.
    pub(super) fn plan(&self, name: &str) -> Result<Plan> {
        self.plan_within(name, SOURCES_MAX)
    }

    fn plan_within(&self, name: &str, sources: usize) -> Result<Plan> {
        let Some(section) = self.0.get(name) else { return Ok(Plan::Nothing) };
        let get = |key: &str| section.get(key).filter(|value| !value.is_empty()).cloned();
        if let Some(arn) = get("role_arn") {
            let (session, external_id) = (get("role_session_name"), get("external_id"));
            let role = Role { arn, session, external_id, region: get("region") };
            if let Some(token_file) = get("web_identity_token_file") {
                return Ok(Plan::WebIdentity { role, token_file });
            }
            let (source, with) = match (get("source_profile"), get("credential_source")) {
                (Some(source), _) => {
                    // A role whose source is itself takes the keys beside it.
                    let with = match (source == name, sources) {
                        (true, _) => keys_of(section).map_or(Plan::Nothing, Plan::Keys),
                        (false, 0) => {
                            return Err(denied("the profiles name each other as sources"));
                        }
                        (false, _) => self.plan_within(&source, sources - 1)?,
                    };
                    (format!("the profile {source}"), with)
                }
                (None, Some(source)) => {
                    let with = match source.as_str() {
                        "Environment" => Plan::Environment,
                        "EcsContainer" => Plan::Container,
                        "Ec2InstanceMetadata" => Plan::Machine,
                        _ => {
                            return Err(denied(format!(
                                "the profile {name} has the credential_source {source}; there are \
                                 Environment, EcsContainer and Ec2InstanceMetadata"
                            )));
                        }
                    };
                    (source, with)
                }
                (None, None) => {
                    return Err(denied(format!(
                        "the profile {name} has a role_arn, but no source_profile, \
                         credential_source or web_identity_token_file"
                    )));
                }
            };
            return Ok(Plan::Role { role, with: Box::new(with), source });
        }
        if let Some(keys) = keys_of(section) {
            return Ok(Plan::Keys(keys));
        }
        if let Some(command) = get("credential_process") {
            return Ok(Plan::Process(command));
        }
        if section.keys().any(|key| key.starts_with("sso_")) {
            return Err(denied(format!(
                "the profile {name} uses single sign-on, which is not supported here; give it \
                 credential_process = aws configure export-credentials --profile {name}"
            )));
        }
        Ok(Plan::Nothing)
    }
}

fn keys_of(section: &Section) -> Option<Credentials> {
    let access_key = section.get("aws_access_key_id")?;
    let secret_key = section.get("aws_secret_access_key")?;
    Some(Credentials::new(access_key, secret_key, section.get("aws_session_token").cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_all_kinds() {
        let mut profiles = Profiles::default();
        profiles.add(
            "[default]\nregion = eu-1\n# comment\ns3 =\n  aws_access_key_id = NESTED\n\
             [profile base]\naws_access_key_id=CONFIG\naws_secret_access_key=s\n\
             [profile role]\nrole_arn = arn:x\nsource_profile = base\n\
             [profile proc]\ncredential_process = /bin/x --a=b\n\
             [profile loop]\nrole_arn = a\nsource_profile = pool\n\
             [profile pool]\nrole_arn = a\nsource_profile = loop\n\
             [profile sso]\nsso_start_url = https://x\n[services x]\na = b\n",
            true,
        );
        profiles.add("[base]\naws_access_key_id = SHARED\naws_secret_access_key = t=\n", false);
        let base = Credentials::new("SHARED", "t=", None);
        assert_eq!(profiles.plan("base").unwrap(), Plan::Keys(base.clone()));
        assert_eq!(profiles.plan("default").unwrap(), Plan::Nothing);
        assert_eq!(profiles.get("default").unwrap()["region"], "eu-1");
        assert_eq!(profiles.plan("none").unwrap(), Plan::Nothing);
        assert_eq!(profiles.plan("proc").unwrap(), Plan::Process("/bin/x --a=b".into()));
        let source = "the profile base".to_owned();
        let role = Role { arn: "arn:x".into(), session: None, external_id: None, region: None };
        let with = Box::new(Plan::Keys(base));
        assert_eq!(profiles.plan("role").unwrap(), Plan::Role { role, with, source });
        profiles.plan("loop").unwrap_err();
        let error = profiles.plan("sso").unwrap_err().to_string();
        assert!(error.contains("credential_process"), "{error}");
    }
}
