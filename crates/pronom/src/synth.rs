//! Every container signature of the official file, tried on a container made to fit it.

use crate::model::{Anchor, ContainerKind, Member, Sequence};
use crate::result::Scope;
use crate::{Basis, Identifier, build, common};

/// Bytes that fit the sequences, as far as they do not get into each other's way.
fn content(sequences: &[Sequence]) -> Vec<u8> {
    let mut text: Vec<Option<u8>> = Vec::new();
    let mut end = Vec::new();
    for sequence in sequences {
        let mut bytes: Vec<Option<u8>> = Vec::new();
        for (place, slot) in sequence.slots.iter().enumerate() {
            let gap = if place == 0 { 0 } else { slot.gap_min as usize };
            bytes.resize(bytes.len() + gap, None);
            bytes.extend(slot.choices[0].example().into_iter().map(Some));
        }
        let first = &sequence.slots[0];
        match sequence.anchor {
            Anchor::End => {
                bytes.reverse();
                bytes.resize(bytes.len() + first.gap_min as usize, None);
                end = bytes;
            }
            Anchor::Anywhere => text.extend(bytes),
            Anchor::Beginning => {
                let most = first.gap_max.unwrap_or(u32::MAX) as usize;
                let free = |at: &usize| {
                    let there = text.get(*at..).unwrap_or(&[]);
                    there.iter().zip(&bytes).all(|(a, b)| a.is_none() || b.is_none() || a == b)
                };
                let at = (first.gap_min as usize..=most).find(free).expect("room");
                text.resize(text.len().max(at + bytes.len()), None);
                let there = text[at..].iter_mut().zip(bytes);
                there.for_each(|(a, b)| *a = b.or(*a));
            }
        }
    }
    text.extend(end);
    text.into_iter().map(|byte| byte.unwrap_or(0)).collect()
}

fn members(members: &[Member]) -> Vec<(&str, Vec<u8>)> {
    let content =
        |member: &Member| member.signatures.first().map(|s| content(s)).unwrap_or_default();
    members.iter().map(|member| (member.path.as_str(), content(member))).collect()
}

#[test]
fn every_container_signature_finds_the_container_made_for_it() {
    let Some(set) = common::official() else { return };
    let identifier = Identifier::new(set);
    let set = identifier.set();
    let mut wrong = Vec::new();
    for signature in &set.containers {
        let members = members(&signature.members);
        let files = match signature.kind {
            ContainerKind::Zip => vec![build::zip(&members, true), build::zip(&members, false)],
            ContainerKind::Ole2 => vec![build::ole2(&members)],
        };
        for file in files {
            let found = identifier.identify(&mut file.as_slice(), None).expect("readable");
            let expected = &set.formats[signature.format as usize].puid;
            let right = |m: &crate::Match| {
                matches!(&m.basis, Basis::Container { .. }) && m.puid == *expected
            };
            if !found.matches.iter().any(right) {
                let puids: Vec<_> = found.puids().collect();
                wrong.push(format!("{} {expected}: {puids:?} {:?}", signature.id, found.warnings));
            }
        }
    }
    println!("{} container signatures", set.containers.len());
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_essential_set_agrees_on_containers_of_formats_it_looks_into() {
    let Some(official) = common::official().map(Identifier::new) else { return };
    let essential = Identifier::new(crate::SignatureSet::essential().clone());
    let known = |puid: &str| {
        let place = essential.set().position(puid);
        essential.set().containers.iter().any(|c| Some(c.format) == place)
    };
    let (mut compared, mut different) = (0, Vec::new());
    for signature in &official.set().containers {
        let puid = &official.set().formats[signature.format as usize].puid;
        if !known(puid) {
            continue;
        }
        let members = members(&signature.members);
        let file = match signature.kind {
            ContainerKind::Zip => build::zip(&members, true),
            ContainerKind::Ole2 => build::ole2(&members),
        };
        let puids = |identifier: &Identifier| {
            let found = identifier.identify(&mut file.as_slice(), None).expect("readable");
            found.puids().map(str::to_owned).collect::<Vec<_>>()
        };
        compared += 1;
        if puids(&official) != puids(&essential) {
            different.push(format!("{} {puid}: {:?}", signature.id, puids(&essential)));
        }
    }
    println!("{compared} containers, {} different: {different:#?}", different.len());
    assert_eq!(different.len(), 0);
}

#[test]
fn a_member_far_into_a_large_container_is_read_by_ranges() {
    let identifier = Identifier::new(crate::SignatureSet::essential().clone());
    let noise: Vec<u8> =
        (0..300_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let types = b"<Types ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/>";
    let zip = build::zip(
        &[("a", noise.clone()), ("[Content_Types].xml", types.to_vec()), ("b", noise.clone())],
        true,
    );
    let word =
        b"................................................\x10\0\0\0Word.Document.8\0".to_vec();
    let ole2 =
        build::ole2(&[("Data", noise), ("WordDocument", vec![1; 9000]), ("\u{1}CompObj", word)]);
    for (file, puid) in [(&zip, "fmt/412"), (&ole2, "fmt/40")] {
        let mut object = Counting { bytes: file, read: 0 };
        let found = identifier.identify(&mut object, None).expect("readable");
        assert_eq!(found.puids().collect::<Vec<_>>(), [puid]);
        assert!(
            object.read < 600_000 && object.read < file.len() / 2,
            "{} bytes read",
            object.read
        );
        // As a stream, the same with the object at hand; without it, a warning.
        let mut stream = identifier.stream();
        file.chunks(10_000).for_each(|piece| stream.feed(piece));
        assert_eq!(stream.finish(None, Some(&mut file.as_slice())).expect("readable"), found);
        let mut stream = identifier.stream();
        stream.feed(file);
        let blind = stream.finish(None, None).expect("readable");
        let told = |w: &crate::Warning| matches!(w, crate::Warning::ContainerUnreadable { .. });
        let small_enough = blind.matches == found.matches;
        assert!(blind.warnings.iter().any(told) != small_enough, "{:?}", blind.warnings);
        assert_eq!(
            small_enough,
            puid == "fmt/40",
            "the compound file keeps what matters at its ends"
        );
    }
}

struct Counting<'b> {
    bytes: &'b [u8],
    read: usize,
}

impl crate::Source for Counting<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.read += buffer.len();
        (&mut { self.bytes }).read_at(offset, buffer)
    }
}

#[test]
fn scopes_reach_into_members() {
    let identifier = Identifier::new(crate::SignatureSet::essential().clone());
    let mut types = vec![b' '; 30_000];
    types.extend(b"ContentType=\"application/vnd.ms-visio.drawing.main+xml\"");
    let file = build::zip(&[("[Content_Types].xml", types)], true);
    let puids = |identifier: &Identifier| {
        let found = identifier.identify(&mut file.as_slice(), None).expect("readable");
        found.puids().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(puids(&identifier), ["fmt/924"]);
    assert_eq!(puids(&identifier.with_scope(Scope::Ends(10_000))), ["fmt/189"]);
}
