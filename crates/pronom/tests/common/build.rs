//! Writes small zips and compound files, for tests to look into and to damage.

#![allow(dead_code)] // Each test uses its own part of this.

use flate2::{Compression, write::DeflateEncoder};
use std::io::Write;

/// A zip with these members, stored or deflated.
pub fn zip(members: &[(&str, Vec<u8>)], deflate: bool) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let data = if deflate {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).expect("memory");
            encoder.finish().expect("memory")
        } else {
            content.clone()
        };
        let offset = file.len() as u32;
        let method = if deflate { 8u16 } else { 0 };
        let mut common = Vec::new();
        common.extend([20, 0, 0, 0]);
        common.extend(method.to_le_bytes());
        common.extend([0; 8]);
        common.extend((data.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.bytes());
        file.extend(data);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.bytes());
    }
    let (at, count) = (file.len() as u32, members.len() as u16);
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    file
}

const SECTOR: usize = 512;
const NONE: u32 = u32::MAX;
const END: u32 = 0xffff_fffe;

struct Node {
    name: String,
    kind: u8,
    right: u32,
    child: u32,
    content: Vec<u8>,
}

/// A compound file with these streams; slashes in their paths make storages.
pub fn ole2(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let nodes = nodes(members);
    let (mut mini, mut mini_table) = (Vec::new(), Vec::new());
    // The directory comes first, so that its length fixes where all else is.
    let directory_sectors = (nodes.len() * 128).div_ceil(SECTOR);
    let mut places = Vec::new();
    for node in &nodes {
        let small = node.kind == 2 && node.content.len() < 4096;
        places.push(if small { (mini.len() / 64) as u32 } else { END });
        if small && !node.content.is_empty() {
            let first = mini_table.len() as u32;
            let count = node.content.len().div_ceil(64) as u32;
            mini_table.extend((1..=count).map(|i| if i == count { END } else { first + i }));
            mini.extend(&node.content);
            mini.resize(mini.len().next_multiple_of(64), 0);
        }
    }
    let mini_bytes = mini.len();
    let mini_table: Vec<u8> = mini_table.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    let (mut body, mut table) = (vec![0; directory_sectors * SECTOR], Vec::new());
    chain(&mut table, directory_sectors);
    let mut put = |bytes: &[u8], fill: u8| {
        let first = if bytes.is_empty() { END } else { (body.len() / SECTOR) as u32 };
        body.extend(bytes);
        body.resize(body.len().next_multiple_of(SECTOR), fill);
        chain(&mut table, bytes.len().div_ceil(SECTOR));
        first
    };
    let mini_table_at = put(&mini_table, 0xff);
    let mini_at = put(&mini, 0);
    for (node, place) in nodes.iter().zip(&mut places) {
        if node.kind == 2 && node.content.len() >= 4096 {
            *place = put(&node.content, 0);
        }
    }
    places[0] = mini_at;
    write_directory(&mut body, &nodes, &places, mini_bytes);
    let table_at = (body.len() / SECTOR) as u32;
    let mut table_sectors = 1;
    while (table.len() + table_sectors).div_ceil(SECTOR / 4) > table_sectors {
        table_sectors += 1;
    }
    table.resize(table.len() + table_sectors, 0xffff_fffd);
    table.resize(table_sectors * SECTOR / 4, NONE);
    body.extend(table.iter().flat_map(|word| word.to_le_bytes()));
    let mut file = header(table_at, table_sectors as u32, mini_table_at, &mini_table);
    file.extend(body);
    file
}

fn chain(table: &mut Vec<u32>, sectors: usize) {
    let first = table.len() as u32;
    let count = sectors as u32;
    table.extend((1..=count).map(|i| if i == count { END } else { first + i }));
}

fn header(table_at: u32, table_sectors: u32, mini_table_at: u32, mini_table: &[u8]) -> Vec<u8> {
    let mut header = vec![0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];
    header.extend([0; 16]);
    header.extend([0x3e, 0, 3, 0, 0xfe, 0xff, 9, 0, 6, 0]);
    header.extend([0; 10]);
    let mini_sectors = mini_table.len().div_ceil(SECTOR) as u32;
    for word in [table_sectors, 0, 0, 4096, mini_table_at, mini_sectors, END, 0] {
        header.extend(word.to_le_bytes());
    }
    header.extend((0..109).flat_map(|i| {
        let word = if i < table_sectors { table_at + i } else { NONE };
        word.to_le_bytes()
    }));
    header
}

/// All streams and storages; siblings hang on each other's right.
fn nodes(members: &[(&str, Vec<u8>)]) -> Vec<Node> {
    let node = |name: &str, kind| Node {
        name: name.to_owned(),
        kind,
        right: NONE,
        child: NONE,
        content: Vec::new(),
    };
    let mut nodes = vec![node("Root Entry", 5)];
    for (path, content) in members {
        let mut parent = 0;
        let parts: Vec<&str> = path.split('/').collect();
        for (depth, part) in parts.iter().enumerate() {
            let last = depth + 1 == parts.len();
            let mut at = nodes[parent].child;
            while at != NONE && nodes[at as usize].name != *part {
                at = nodes[at as usize].right;
            }
            if at == NONE {
                at = nodes.len() as u32;
                nodes.push(node(part, if last { 2 } else { 1 }));
                nodes[at as usize].right = nodes[parent].child;
                nodes[parent].child = at;
            }
            parent = at as usize;
        }
        nodes[parent].content.clone_from(content);
    }
    nodes
}

fn write_directory(body: &mut [u8], nodes: &[Node], places: &[u32], mini_bytes: usize) {
    for (number, node) in nodes.iter().enumerate() {
        let entry = &mut body[number * 128..(number + 1) * 128];
        let units: Vec<u16> = node.name.encode_utf16().take(31).collect();
        for (i, unit) in units.iter().enumerate() {
            entry[2 * i..2 * i + 2].copy_from_slice(&unit.to_le_bytes());
        }
        entry[64] = (2 * units.len() + 2) as u8;
        entry[66] = node.kind;
        entry[67] = 1;
        let bytes = if number == 0 { mini_bytes } else { node.content.len() } as u32;
        for (at, word) in
            [(68, NONE), (72, node.right), (76, node.child), (116, places[number]), (120, bytes)]
        {
            entry[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
}
