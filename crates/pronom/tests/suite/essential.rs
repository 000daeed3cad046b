//! The essential set against the official one.

use crate::common;
use pronom::{Identifier, Scope, SignatureSet};

#[test]
fn it_agrees_with_the_official_set_on_every_skeleton_of_a_format_it_knows() {
    let (Some(official), Some(skeletons)) = (common::official(), common::skeletons()) else {
        return;
    };
    for scope in [Scope::Whole, Scope::default()] {
        let official = Identifier::new(official.clone()).with_scope(scope);
        let essential = Identifier::new(SignatureSet::essential().clone()).with_scope(scope);
        let (mut compared, mut wrong) = (0, Vec::new());
        for skeleton in &skeletons {
            if essential.set().format(&skeleton.puid).is_none() {
                continue;
            }
            compared += 1;
            let answer = |identifier: &Identifier| {
                let name = Some(skeleton.name.as_str());
                let found =
                    identifier.identify(&mut skeleton.bytes.as_slice(), name).expect("readable");
                let content = found.by_content();
                (
                    content,
                    if content { found.puids().map(str::to_owned).collect() } else { Vec::new() },
                )
            };
            let (expected, found) = (answer(&official), answer(&essential));
            if expected != found {
                wrong.push(format!("{}: {:?}, not {:?}", skeleton.name, found.1, expected.1));
            }
        }
        println!("{compared} skeletons of formats the essential set knows, {scope:?}");
        assert!(compared > 300, "{compared}");
        assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    }
}

#[test]
fn names_versions_and_extensions_are_those_of_the_registry() {
    let Some(official) = common::official() else { return };
    for format in SignatureSet::essential().formats() {
        let known = official.format(&format.puid).unwrap_or_else(|| panic!("{}", format.puid));
        assert_eq!(format.name, known.name, "{}", format.puid);
        assert_eq!(format.version.to_lowercase(), known.version.to_lowercase(), "{}", format.puid);
        for extension in &format.extensions {
            assert!(known.extensions.contains(extension), "{} .{extension}", format.puid);
        }
    }
}
