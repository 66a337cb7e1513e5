//! Who serves and who handles: what a timeout policy wants of both.

use super::super::super::super::document::{self, Resource, SharingProtocol};
use super::super::super::super::findings::Finding;
use super::super::super::names::{help_with, ThreadIndex};
use super::super::super::{text, Checker};
use super::super::sharing::proxied;

impl<'a> Checker<'a> {
    /// The resource that a component serves behind a proxy.
    pub(super) fn proxied_resource(&self, server: usize) -> Option<&'a Resource> {
        let document = self.document;
        document.resources.iter().find(|resource| {
            let name = resource.server.as_ref();
            let serves = name.and_then(|name| self.names.component(text(name))) == Some(server);
            serves && proxied(*resource.protocol.get_ref()).is_some()
        })
    }

    /// A handler answers the client; behind a proxy that is the proxy, which waits for the server.
    pub(super) fn policed_behind_proxy(
        &mut self,
        described: &document::TimeoutPolicy,
        resource: &Resource,
        server: usize,
    ) {
        let bandwidth = *resource.protocol.get_ref() == SharingProtocol::BandwidthInheritance;
        if bandwidth && self.document.components[server].timeout_handler.is_some() {
            // That it has two handlers is said by the rules of its protocol.
            return;
        }
        let name = text(&described.server);
        self.found(
            Finding::new(
                described.server.span(),
                format!("`{name}` serves behind a proxy"),
            )
            .label(if bandwidth {
                "the proxy handles its timeouts"
            } else {
                "the proxy would not be told that a request was ended"
            })
            .related(resource.protocol.span(), "the protocol that uses a proxy")
            .help("remove the policy, or choose `ceiling`, which works with timeout policies"),
        );
    }

    /// Whether the server can be sent back at all.
    pub(super) fn policed_server(
        &mut self,
        described: &document::TimeoutPolicy,
        server: ThreadIndex,
    ) {
        let thread = &self.threads[server.component][server.thread];
        let (passive, time) = (thread.passive, thread.time);
        let name = text(&described.server).to_owned();
        let span = described.server.span();
        if !passive || server.thread != 0 {
            self.found(
                Finding::new(span, format!("`{name}` has time of its own"))
                    .label("must be a passive server")
                    .help("only a server that runs on its clients' time can run out of it: `passive = true`"),
            );
        } else if time.budget_us != time.period_us {
            self.found(
                Finding::new(
                    span,
                    format!("`{name}` starts on a budget that can run out"),
                )
                .label("the server restarts on it after a timeout")
                .help("leave its `budget` and `period` out, or make them equal"),
            );
        }
    }

    /// Whether an endpoint has no server, or one that there is not.
    fn some_server_is_unknown(&self) -> bool {
        let mut servers = self
            .document
            .endpoints
            .iter()
            .map(|endpoint| &endpoint.server);
        servers.any(|server| {
            let known = server
                .as_ref()
                .and_then(|server| self.names.component(text(server)));
            known.is_none()
        })
    }

    /// The endpoint whose requests are at stake.
    pub(super) fn policed_endpoint(
        &mut self,
        described: &document::TimeoutPolicy,
        server: usize,
    ) -> Option<&'a str> {
        let served: Vec<&'a str> = self.served[server].iter().map(|(_, name)| *name).collect();
        let name = text(&described.server);
        match (&described.endpoint, served.as_slice()) {
            (None, [only]) => Some(only),
            // Perhaps it is the server that another finding misses.
            (None, []) if self.some_server_is_unknown() => None,
            (None, []) => {
                self.found(
                    Finding::new(
                        described.server.span(),
                        format!("`{name}` serves no endpoint"),
                    )
                    .label("no client's time can run out in it")
                    .help("add an `[[endpoint]]` with this `server`"),
                );
                None
            }
            (None, several) => {
                self.found(
                    Finding::new(
                        described.server.span(),
                        format!("`{name}` serves several endpoints"),
                    )
                    .label("which one the policy is for is not known")
                    .help(format!("add `endpoint`, one of {}", several.join(", "))),
                );
                None
            }
            (Some(endpoint), served) => {
                let found = served.iter().find(|name| **name == text(endpoint)).copied();
                if found.is_none() {
                    let help = help_with("endpoint", text(endpoint), served.iter().copied());
                    self.found(
                        Finding::new(
                            endpoint.span(),
                            format!("`{name}` does not serve `{}`", text(endpoint)),
                        )
                        .label("not one of its endpoints")
                        .help(help),
                    );
                }
                found
            }
        }
    }

    /// The thread that handles, which must be where the server's timeouts go.
    pub(super) fn policing_handler(
        &mut self,
        described: &document::TimeoutPolicy,
        server: ThreadIndex,
    ) -> Option<ThreadIndex> {
        let handler = self.find_thread(&described.handler)?;
        let goes_to = &self.document.components[server.component].timeout_handler;
        let owner = text(&self.document.components[handler.component].name);
        let span = described.handler.span();
        if goes_to.as_ref().map(text) != Some(owner) {
            let server = text(&described.server);
            let finding = Finding::new(
                span,
                format!(
                    "timeouts in `{server}` do not go to `{}`",
                    text(&described.handler)
                ),
            )
            .help(format!(
                "send them to it: `timeout-handler = \"{owner}\"` of `{server}`"
            ));
            self.found(match goes_to {
                Some(other) => finding.related(other.span(), "they are sent here"),
                None => finding
                    .label("they are not sent anywhere: the server waits for its next refill"),
            });
            return None;
        }
        let made = &self.threads[handler.component][handler.thread];
        if made.passive {
            self.found(
                Finding::new(
                    span,
                    format!("`{}` has no time of its own", text(&described.handler)),
                )
                .label("a timeout fault lends it none")
                .help("give it a `budget` and a `period`, or name an active thread"),
            );
            return None;
        }
        if made.ready.is_none() {
            self.found(
                Finding::new(
                    span,
                    format!(
                        "`{}` does not signal when it is ready",
                        text(&described.handler)
                    ),
                )
                .label("a handler must, before the first timeout")
                .help("add `ready = true`"),
            );
            return None;
        }
        Some(handler)
    }

    /// A handler that its clients can hinder is none.
    pub(super) fn handler_priority(
        &mut self,
        described: &document::TimeoutPolicy,
        handler: ThreadIndex,
        server: ThreadIndex,
        clients: &[ThreadIndex],
    ) {
        let priority = |thread: ThreadIndex| self.threads[thread.component][thread.thread].priority;
        let mine = priority(handler);
        let above = clients
            .iter()
            .copied()
            .find(|client| priority(*client) >= mine);
        let name = text(&described.handler);
        let finding = if priority(server) > mine {
            Some(format!("the server, priority {}", priority(server)))
        } else {
            above.map(|client| format!("`{}`, priority {}", self.path(client), priority(client)))
        };
        if let Some(other) = finding {
            self.found(
                Finding::new(
                    described.handler.span(),
                    format!("the priority of `{name}`, {mine}, is too low"),
                )
                .label(format!("it can be delayed by {other}"))
                .help("a handler's priority is at least the server's, and above all clients'"),
            );
        }
    }
}
