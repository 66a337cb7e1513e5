//! What components share: endpoints, notifications, memory, files.

use std::collections::HashMap;
use std::fs;

use sandglass_abi::rights::Rights;
use sandglass_description::{Grant, Map, Memory, MemorySource, Object, Signal};

use super::super::document::{self, ClientRights, Integer, MapRights, Text};
use super::super::findings::{Finding, Span};
use super::names::ThreadIndex;
use super::{text, Checker, Content, FixedMap, PackedFile};

const PAGE: u64 = sandglass_description::archive::PAGE as u64;
/// Where a description may fix addresses: above any executable, below what the launcher chooses.
const FIRST_FIXED: u64 = 0x1000_0000;
const LAST_FIXED: u64 = 0x10_0000_0000;
const MAX_MEMORY: u64 = 1 << 36;

impl<'a> Checker<'a> {
    pub(super) fn new_endpoint(&mut self) -> u32 {
        self.endpoints += 1;
        self.endpoints - 1
    }

    pub(super) fn new_notification(&mut self) -> u32 {
        self.notifications += 1;
        self.notifications - 1
    }

    pub(super) fn endpoints(&mut self) {
        for endpoint in &self.document.endpoints {
            if self.names.is_repeated(&endpoint.name) {
                continue;
            }
            let index = self.new_endpoint();
            self.server(endpoint, index);
            self.clients(endpoint, index);
        }
    }

    fn server(&mut self, endpoint: &'a document::Endpoint, index: u32) {
        let name = &endpoint.name;
        let Some(server) = &endpoint.server else {
            self.found(
                Finding::new(
                    name.span(),
                    format!("the endpoint `{}` has no server", name.get_ref()),
                )
                .label("its clients would wait for ever")
                .help("name the component that receives from it: `server = \"...\"`"),
            );
            return;
        };
        if let Some(component) = self.find_component(server) {
            self.give_served_endpoint(component, text(name), index, server);
            self.served[component].push((index, text(name)));
        }
    }

    /// Gives a component an endpoint to receive from, and its reply object.
    pub(super) fn give_served_endpoint(
        &mut self,
        component: usize,
        name: &str,
        index: u32,
        place: &Text,
    ) {
        let span = place.span();
        let equipment = &mut self.equipment[component];
        let endpoint = Grant {
            name: name.to_owned(),
            object: Object::Endpoint(index),
            rights: Rights::READ.raw(),
            badge: 0,
            calls_only: false,
        };
        equipment.add_grant(endpoint, &span, &mut self.findings);
        let reply = format!("{name}.reply");
        equipment.add_capability(&reply, Object::Reply(index), &span, &mut self.findings);
    }

    fn clients(&mut self, endpoint: &'a document::Endpoint, index: u32) {
        let mut badges = Badges::default();
        for client in &endpoint.clients {
            let badge = self.badge(client.badge.as_ref(), &client.component, &mut badges);
            let rights = match client.rights {
                ClientRights::Call | ClientRights::Handler => {
                    Rights::WRITE.union(Rights::GRANT_REPLY)
                }
                ClientRights::Send => Rights::WRITE,
                ClientRights::Grant => Rights::WRITE.union(Rights::GRANT),
            };
            if !client.rights.is_call() {
                self.check_sender(endpoint, client);
            }
            if let Some(longest) = client.longest.as_ref().filter(|us| us.get_ref().0 == 0) {
                self.found(
                    Finding::new(longest.span(), "a request of 0 µs")
                        .label("must be above 0: the longest time of one request"),
                );
            }
            let name = client.alias.as_ref().unwrap_or(&endpoint.name);
            if let Some(component) = self.find_component(&client.component) {
                let grant = Grant {
                    name: text(name).to_owned(),
                    object: Object::Endpoint(index),
                    rights: rights.raw(),
                    badge,
                    calls_only: client.rights.is_call(),
                };
                let span = client.component.span();
                self.equipment[component].add_grant(grant, &span, &mut self.findings);
            }
        }
    }

    /// A message that is no call must not reach a passive server: it brings no time.
    fn check_sender(&mut self, endpoint: &document::Endpoint, client: &document::Client) {
        let Some(server) = &endpoint.server else {
            return;
        };
        let components = &self.document.components;
        let served_by = self.names.component(text(server));
        let passive = served_by.and_then(|server| components[server].passive.as_ref());
        let Some(passive) = passive.filter(|passive| *passive.get_ref()) else {
            return;
        };
        self.found(
            Finding::new(
                client.component.span(),
                format!("`{}` may send to a passive server", text(&client.component)),
            )
            .label("a message that is not a call brings no time: the server would never run again")
            .related(passive.span(), "it has no time of its own")
            .help("remove `rights`, to allow calls; or give the server a budget"),
        );
    }

    /// A badge, which must differ from those of the other holders.
    fn badge(&mut self, badge: Option<&Integer>, holder: &Text, badges: &mut Badges) -> u64 {
        let value = self.in_range("badge", badge, 0..=i64::MAX, 0) as u64;
        let span = badge.map_or(holder.span(), Integer::span);
        if let Some(first) = badges.0.get(&value) {
            self.found(
                Finding::new(span, format!("the badge {value} is used twice"))
                    .label("the receiver cannot tell them apart")
                    .related(first.clone(), "the first")
                    .help("give each a badge of its own: `badge = N`"),
            );
        } else {
            badges.0.insert(value, span);
        }
        value
    }

    pub(super) fn notifications(&mut self) {
        for notification in &self.document.notifications {
            if self.names.is_repeated(&notification.name) {
                continue;
            }
            let index = self.new_notification();
            let name = text(&notification.name);
            if let Some(component) = self.find_component(&notification.waiter) {
                let grant = Grant {
                    name: notification.alias.as_ref().map_or(name, text).to_owned(),
                    object: Object::Notification(index),
                    rights: Rights::READ.raw(),
                    badge: 0,
                    calls_only: false,
                };
                let span = notification.waiter.span();
                self.equipment[component].add_grant(grant, &span, &mut self.findings);
            }
            let mut badges = Badges::default();
            for signaller in &notification.signallers {
                let badge = self.badge(signaller.badge.as_ref(), &signaller.component, &mut badges);
                if signaller.at.is_some() {
                    self.end_signal(signaller, index, badge);
                    continue;
                }
                let Some(component) = self.find_component(&signaller.component) else {
                    continue;
                };
                let grant = Grant {
                    name: signaller.alias.as_ref().map_or(name, text).to_owned(),
                    object: Object::Notification(index),
                    rights: Rights::WRITE.raw(),
                    badge,
                    calls_only: false,
                };
                let span = signaller.component.span();
                self.equipment[component].add_grant(grant, &span, &mut self.findings);
            }
        }
    }

    /// Lets the launcher signal when a thread ends.
    fn end_signal(&mut self, signaller: &document::Signaller, notification: u32, badge: u64) {
        let Some(thread) = self.find_thread(&signaller.component) else {
            return;
        };
        if let Some(alias) = &signaller.alias {
            self.found(
                Finding::new(alias.span(), "`as` has no effect here".to_owned())
                    .label("the launcher signals when the thread ends, not the component")
                    .help("remove `as` or `at`"),
            );
        }
        let signal = Signal {
            notification,
            badge,
        };
        self.tell_of_end(thread, signal);
    }

    /// Lets the launcher signal when a thread ends.
    pub(super) fn tell_of_end(&mut self, thread: ThreadIndex, signal: Signal) {
        self.threads[thread.component][thread.thread]
            .end_signals
            .push(signal);
    }

    pub(super) fn memory(&mut self) {
        for memory in &self.document.memory {
            if self.names.is_repeated(&memory.name) {
                continue;
            }
            let source = self.memory_source(memory);
            let index = self.memory.len() as u32;
            self.memory.push(Memory {
                name: text(&memory.name).to_owned(),
                source,
            });
            for map in &memory.maps {
                self.map(memory, index, source.bytes(), map);
            }
        }
    }

    fn memory_source(&mut self, memory: &document::Memory) -> MemorySource {
        let bytes = memory.size.get_ref().0;
        if bytes == 0 || !bytes.is_multiple_of(PAGE) || bytes > MAX_MEMORY {
            self.found(
                Finding::new(
                    memory.size.span(),
                    format!("memory `{}` of {bytes} bytes", memory.name.get_ref()),
                )
                .label(format!(
                    "must be a multiple of the page size, {PAGE} bytes, up to 64 GiB"
                )),
            );
        }
        let bytes = bytes.min(MAX_MEMORY).next_multiple_of(PAGE);
        let Some(physical) = &memory.physical else {
            return MemorySource::New { bytes };
        };
        let address = self.page_address("physical address", physical, 0, 1 << 47);
        MemorySource::Device {
            physical: address,
            bytes,
        }
    }

    /// An address of a page from `first` on and below `end`.
    fn page_address(&mut self, what: &str, address: &Integer, first: u64, end: u64) -> u64 {
        let value = u64::try_from(*address.get_ref()).unwrap_or(u64::MAX);
        if (first..end).contains(&value) && value.is_multiple_of(PAGE) {
            return value;
        }
        self.found(
            Finding::new(
                address.span(),
                format!("{what} {:#x} cannot be used", address.get_ref()),
            )
            .label(format!(
                "must be a multiple of {PAGE:#x} from {first:#x} on and below {end:#x}"
            )),
        );
        first
    }

    fn map(&mut self, memory: &document::Memory, index: u32, bytes: u64, map: &document::Map) {
        let component = self.find_component(&map.component);
        let address = match &map.address {
            Some(address) => {
                let start = self.page_address("address", address, FIRST_FIXED, LAST_FIXED);
                if let Some(component) = component {
                    self.fix(component, start, bytes, address.span());
                }
                Some(start)
            }
            None => None,
        };
        if let Some(component) = component {
            let lowered = Map {
                memory: index,
                writable: map.rights == MapRights::ReadWrite,
                address,
            };
            let (name, span) = (text(&memory.name), map.component.span());
            self.equipment[component].add_map(name, lowered, &span, &mut self.findings);
        }
    }

    /// Notes a fixed mapping, which must not overlap another of the same component.
    fn fix(&mut self, component: usize, start: u64, bytes: u64, span: Span) {
        let end = start + bytes;
        let fixed = FixedMap {
            component,
            start,
            end,
            span: span.clone(),
        };
        if end > LAST_FIXED {
            self.found(
                Finding::new(span.clone(), format!("the memory would end at {end:#x}"))
                    .label(format!("must end at {LAST_FIXED:#x} or below")),
            );
        }
        let overlapping = self
            .fixed_maps
            .iter()
            .find(|other| other.component == component && other.start < end && start < other.end)
            .map(|other| (other.span.clone(), other.start, other.end));
        if let Some((other, other_start, other_end)) = overlapping {
            self.found(
                Finding::new(
                    span,
                    format!("addresses {start:#x} to {end:#x} overlap other memory"),
                )
                .label("overlaps")
                .related(other, format!("{other_start:#x} to {other_end:#x}"))
                .help("move one of them, or leave `address` out: the launcher then chooses one"),
            );
        }
        self.fixed_maps.push(fixed);
    }

    pub(super) fn files(&mut self) {
        for file in &self.document.files {
            if self.names.is_repeated(&file.name) {
                continue;
            }
            let path = self.source.folder.join(text(&file.path));
            let len = match fs::metadata(&path) {
                Ok(data) if data.is_file() && data.len() > 0 => data.len(),
                Ok(data) => {
                    let what = if data.is_file() {
                        "is empty"
                    } else {
                        "is not a file"
                    };
                    self.bad_file(file, what);
                    continue;
                }
                Err(error) => {
                    self.bad_file(file, &format!("cannot be read: {error}"));
                    continue;
                }
            };
            let name = text(&file.name);
            let index = self.packed_file(name, Content::Path(path), len, file.path.span());
            for reader in &file.components {
                if let Some(component) = self.find_component(reader) {
                    self.show_file(component, name, index, &reader.span());
                }
            }
        }
    }

    /// A file of `len` bytes that the image will hold; returns its index among the memories.
    pub(super) fn packed_file(
        &mut self,
        name: &str,
        content: Content,
        len: u64,
        span: Span,
    ) -> u32 {
        let index = self.memory.len();
        self.memory.push(Memory {
            name: name.to_owned(),
            source: MemorySource::File(sandglass_description::Blob { offset: 0, len }),
        });
        self.files.push(PackedFile {
            content,
            memory: index,
            span,
        });
        index as u32
    }

    /// Lets a component find the packed file `memory` under `name`, read-only.
    pub(super) fn show_file(&mut self, component: usize, name: &str, memory: u32, span: &Span) {
        let map = Map {
            memory,
            writable: false,
            address: None,
        };
        self.equipment[component].add_map(name, map, span, &mut self.findings);
    }

    fn bad_file(&mut self, file: &document::File, what: &str) {
        let path = self.source.folder.join(text(&file.path));
        self.found(
            Finding::new(
                file.path.span(),
                format!("the file `{}` {what}", path.display()),
            )
            .label("must be a file that is not empty")
            .help("paths are relative to the folder of the description"),
        );
    }
}

/// Who has which badge.
#[derive(Default)]
struct Badges(HashMap<u64, Span>);
