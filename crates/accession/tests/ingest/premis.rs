//! What `export premis` says of people, of the program, of where files are and of what they may be.

use crate::support::packages::{bag, directory};
use crate::support::world::World;
use serde_json::Value;
use std::path::Path;

fn graph(world: &World) -> Vec<Value> {
    let exported = world.done(&["export", "premis", "box", "--format", "json-ld"]);
    let document: Value = serde_json::from_str(&exported).unwrap();
    document["@graph"].as_array().unwrap().clone()
}

/// The nodes of a kind.
fn of<'g>(graph: &'g [Value], kind: &str) -> Vec<&'g Value> {
    graph.iter().filter(|n| n["@type"] == kind || n["@type"][0] == kind).collect()
}

#[test]
fn people_programs_and_places_are_named_and_survive_a_rebuild() {
    let world = World::local(2);
    // Two files share their content.
    let package = directory(
        &world.path("box"),
        &[("a.txt", "text\n"), ("again.txt", "text\n"), ("x.dat", "\u{1}\u{2}no format")],
    );
    world.ingest(&package, &["--submitter", "Ada <ada@example.org>"]);
    directory(&package, &[("b.txt", "more")]);
    world.ingest(&package, &["--submitter", "accession 0.1.0"]);
    let before = graph(&world);
    let people: Vec<&str> =
        of(&before, "premis:Person").iter().map(|a| a["rdfs:label"].as_str().unwrap()).collect();
    assert_eq!(people, ["Ada <ada@example.org>", "accession 0.1.0"]);
    let programs = of(&before, "premis:SoftwareAgent");
    assert_eq!(programs.len(), 1, "{programs:#?}");
    assert_eq!(programs[0]["premis:version"], env!("CARGO_PKG_VERSION"));
    let mut ingestions = of(&before, "premis:Event");
    ingestions.retain(|event| event["rdfs:label"] == "ingestion");
    assert_eq!(ingestions.len(), 2);
    let roles = ingestions[0]["prov:qualifiedAssociation"].to_string();
    assert!(roles.contains("executing program") && roles.contains("submitter"), "{roles}");
    // Each file is where it is said to be, in each store.
    let files = of(&before, "premis:File");
    assert_eq!(files.len(), 4);
    for file in files {
        let places = file["premis:storedAt"].as_array().unwrap();
        assert_eq!(places.len(), 2, "{file:#}");
        for (place, (name, url)) in places.iter().zip(&world.stores) {
            assert_eq!(place["premis:medium"]["rdfs:label"], name.as_str());
            let content = std::fs::read(Path::new(url).join(place["rdf:value"].as_str().unwrap()));
            assert_eq!(content.unwrap().len().to_string(), file["premis:size"], "{file:#}");
        }
    }
    world.check();

    for name in std::fs::read_dir(world.path("data")).unwrap().flatten() {
        if name.file_name().to_string_lossy().starts_with("accession.db") {
            std::fs::remove_file(name.path()).unwrap();
        }
    }
    for store in ["s1", "s2"] {
        world.done(&["registry", "rebuild", "--from", store]);
    }
    assert_eq!(graph(&world), before);
    // Who had it checked is named too.
    world.done(&["check", "--content"]);
    let checked = graph(&world);
    let implementers = checked.iter().filter(|n| n.to_string().contains("implementer")).count();
    assert_eq!(implementers, 2, "one for each copy");
}

/// A store that does not answer does not keep the record from being written.
#[test]
fn a_record_is_written_without_a_store() {
    let world = World::local(2);
    world.ingest(&directory(&world.path("box"), &[("a.txt", "a")]), &[]);
    let store = Path::new(&world.stores[1].1);
    std::fs::rename(store, world.path("aside")).unwrap();
    std::fs::write(store, "in the way").unwrap();
    let graph = graph(&world);
    let places = of(&graph, "premis:File")[0]["premis:storedAt"].clone();
    assert!(places[0]["rdf:value"].as_str().unwrap().ends_with("/v1/content/data/a.txt"));
    assert_eq!(places[0]["premis:note"], Value::Null);
    assert!(places[1]["premis:note"].as_str().unwrap().contains("object"), "{places:#}");
}

/// A person who sends a failed job again has a part in its ingestion.
#[test]
fn the_person_who_sent_a_job_again_is_an_agent_of_the_ingestion() {
    let world = World::local(1);
    bag(&world.path("torn"), &[("page.txt", "whole")]);
    std::fs::write(world.path("torn/data/page.txt"), "whxle").unwrap();
    let report = world.ingest(&world.path("torn"), &["--submitter", "Ada", "--local-id", "box"]);
    let job = report["failures"][0]["job"].to_string();
    std::fs::write(world.path("torn/data/page.txt"), "whole").unwrap();
    world.done(&["jobs", "requeue", &job, "--reason", "corrected", "--as", "Grace"]);
    world.work();
    let graph = graph(&world);
    let mut ingestions = of(&graph, "premis:Event");
    ingestions.retain(|event| event["rdfs:label"] == "ingestion");
    let roles = ingestions[0]["prov:qualifiedAssociation"].to_string();
    for part in ["person:Ada", "submitter", "person:Grace", "implementer", "executing program"] {
        assert!(roles.contains(part), "{part}: {roles}");
    }
}
