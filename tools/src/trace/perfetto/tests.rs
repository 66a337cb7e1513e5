//! The file is decoded and its structure looked at as Perfetto's importer does.

use std::collections::{BTreeMap, BTreeSet};

use super::super::check::gates::Protocol;
use super::super::example;
use super::*;

/// What is wrong with a file in Perfetto's format: unknown tracks, slices that do not nest, flows
/// with one end, times that go back.
fn check(bytes: &[u8]) -> Result<(), String> {
    let trace = Trace::decode(bytes).map_err(|error| error.to_string())?;
    let mut tracks = BTreeMap::new();
    let mut open: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    let mut last = 0;
    let first = trace.packet.first().ok_or("no packets")?;
    if first.sequence_flags != Some(SEQUENCE_CLEARED) {
        return Err("the first packet does not begin the sequence".to_owned());
    }
    for packet in &trace.packet {
        if packet.trusted_packet_sequence_id != Some(SEQUENCE) {
            return Err("a packet of another writer".to_owned());
        }
        if let Some(track) = &packet.track_descriptor {
            let uuid = track.uuid.ok_or("a track without number")?;
            if let Some(parent) = track.parent_uuid {
                if !tracks.contains_key(&parent) {
                    return Err(format!("track {uuid} has the unknown parent {parent}"));
                }
            }
            if tracks.insert(uuid, track.clone()).is_some() {
                return Err(format!("track {uuid} is described twice"));
            }
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        let time = packet.timestamp.ok_or("an event without a time")?;
        if time < last {
            return Err(format!("{time} comes after {last}"));
        }
        last = time;
        let uuid = event.track_uuid.ok_or("an event without a track")?;
        let track = tracks.get(&uuid).ok_or(format!("unknown track {uuid}"))?;
        let depth = open.entry(uuid).or_default();
        match event.r#type() {
            Type::SliceBegin => *depth += 1,
            Type::SliceEnd => *depth = depth.checked_sub(1).ok_or("an end without begin")?,
            Type::Counter if track.counter.is_none() || event.double_counter_value.is_none() => {
                return Err("a counter without track or value".to_owned());
            }
            Type::Counter | Type::Instant => {}
            Type::Unspecified => return Err("an event of no type".to_owned()),
        }
        if *depth > 1 {
            return Err(format!("two executions at once on track {uuid}"));
        }
        begun.extend(&event.flow_ids);
        for flow in &event.terminating_flow_ids {
            if !begun.contains(flow) || !ended.insert(*flow) {
                return Err(format!("flow {flow} ends without a begin"));
            }
        }
    }
    if begun != ended {
        return Err("a flow has no end".to_owned());
    }
    match open.values().any(|&depth| depth > 0) {
        true => Err("a slice has no end".to_owned()),
        false => Ok(()),
    }
}

#[test]
fn the_file_is_as_the_importer_wants_it() {
    let history = example::history();
    let timeline = Timeline::of(&history);
    let bytes = encode(&history, &timeline);
    check(&bytes).unwrap();
    let trace = Trace::decode(bytes.as_slice()).unwrap();
    let names: BTreeSet<String> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref()?.name.clone())
        .collect();
    for name in [
        "core 0",
        "client",
        "server",
        "urgent",
        "budget of client",
        "jobs of client",
    ] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    let flows = |trace: &Trace| {
        let events = trace.packet.iter().filter_map(|p| p.track_event.as_ref());
        events.map(|event| event.flow_ids.len()).sum::<usize>()
    };
    assert_eq!(flows(&trace), 10, "five calls and their replies");
}

#[test]
fn partitions_have_tracks_with_windows_and_overruns() {
    let history = example::windows::history();
    let bytes = encode(&history, &Timeline::of(&history));
    check(&bytes).unwrap();
    let trace = Trace::decode(bytes.as_slice()).unwrap();
    let events = trace.packet.iter().filter_map(|p| p.track_event.as_ref());
    let named = |name: &str| {
        let named = events
            .clone()
            .filter(|event| event.name.as_deref() == Some(name));
        named.count()
    };
    // Windows 0, 2 and 4 of `flight` are the first ones of frames; `cabin` has windows 0 to 2.
    assert_eq!((named("window 0"), named("window 5")), (2, 1));
    assert_eq!(named("overrun"), 9);
}

#[test]
fn gates_have_tracks_with_who_is_served_who_pays_and_who_waits() {
    let history = example::gates::history(1, Protocol::McIpc);
    let bytes = encode(&history, &Timeline::of(&history));
    check(&bytes).unwrap();
    let trace = Trace::decode(bytes.as_slice()).unwrap();
    let events = trace.packet.iter().filter_map(|p| p.track_event.as_ref());
    let is_there = |name: &str| events.clone().any(|event| event.name() == name);
    for name in [
        "serves third, second pays",
        "is served, second pays",
        "waits, third is served",
        "waits without budget, second is served",
    ] {
        assert!(is_there(name), "{name}");
    }
}

#[test]
fn a_file_that_does_not_hang_together_is_noticed() {
    let history = example::history();
    let good = trace(&history, &Timeline::of(&history));
    let mut cut = good.clone();
    let is_end = |packet: &TracePacket| {
        let event = packet.track_event.as_ref();
        event.is_some_and(|event| event.r#type() == Type::SliceEnd)
    };
    let end = cut.packet.iter().position(is_end).unwrap();
    cut.packet.remove(end);
    assert!(check(&cut.encode_to_vec()).is_err());
    let mut undescribed = good;
    undescribed.packet.remove(1);
    assert!(check(&undescribed.encode_to_vec()).is_err());
}

/// The bytes by the definition of the format, not by the library that writes them: field 8 of a
/// packet, a varint, is its time; field 11, its event, has in field 47 flows of 64 bits.
#[test]
fn fields_have_the_numbers_of_the_format() {
    let event = TrackEvent {
        flow_ids: vec![5],
        r#type: Some(Type::Instant as i32),
        ..TrackEvent::default()
    };
    let packet = TracePacket {
        timestamp: Some(300),
        track_event: Some(event),
        ..TracePacket::default()
    };
    let trace = Trace {
        packet: vec![packet],
    };
    let expected = [
        &[1 << 3 | 2, 18][..],
        &[8 << 3, 0xac, 0x02],
        &[11 << 3 | 2, 13],
        &[9 << 3, 3],
        // 47 << 3 | 1 is 377.
        &[0xf9, 0x02],
        &5u64.to_le_bytes(),
    ];
    let mut expected = expected.concat();
    expected[1] = expected.len() as u8 - 2;
    expected[6] = 2 + 2 + 8;
    assert_eq!(trace.encode_to_vec(), expected);
}
