//! Who starts when: servers that say when they are ready before their clients, so that a client's
//! first request is served, and handlers between the two. Else the file's order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::super::document::Component;
use super::super::findings::Finding;
use super::{text, Checker};

/// Components of a circle that are named.
const MOST_SHOWN: usize = 20;

/// The numbers below `count` in their order, except that each comes after those that are `before` it. Those in a
/// circle, and behind one, are left out. Takes O((count + pairs) log count) steps.
pub(super) fn ordered(count: usize, before: &[(usize, usize)]) -> Vec<usize> {
    let mut awaited = vec![0u32; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(first, then) in before {
        awaited[then] += 1;
        after[first].push(then);
    }
    let free = (0..count).filter(|&index| awaited[index] == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(next)) = free.pop() {
        order.push(next);
        for &then in &after[next] {
            awaited[then] -= 1;
            if awaited[then] == 0 {
                free.push(Reverse(then));
            }
        }
    }
    order
}

impl Checker<'_> {
    /// Decides the order of the start.
    pub(super) fn order(&mut self) {
        let count = self.document.components.len();
        let before = self.constraints();
        let mut order = ordered(count, &before);
        let started: HashSet<usize> = order.iter().copied().collect();
        let stuck: Vec<usize> = (0..count).filter(|i| !started.contains(i)).collect();
        if !stuck.is_empty() {
            self.circle(&before, &stuck);
            order.extend(stuck);
        }
        self.position = vec![0; count];
        for (position, index) in (0..).zip(order) {
            self.position[index] = position;
        }
    }

    /// Pairs of components of which the first starts before the second.
    fn constraints(&self) -> Vec<(usize, usize)> {
        let document = self.document;
        let find = |name| self.names.component(text(name));
        let mut before = Vec::new();
        let handlers = |index: usize| {
            let component = &document.components[index];
            let others = component
                .threads
                .iter()
                .filter_map(|t| t.timeout_handler.as_ref());
            component
                .timeout_handler
                .iter()
                .chain(others)
                .filter_map(find)
                .filter(move |handler| *handler != index)
                .collect::<Vec<_>>()
        };
        for index in 0..document.components.len() {
            before.extend(handlers(index).into_iter().map(|handler| (index, handler)));
        }
        for endpoint in &document.endpoints {
            let Some(server) = endpoint.server.as_ref().and_then(find) else {
                continue;
            };
            if !says_when_ready(&document.components[server]) {
                continue;
            }
            let clients = endpoint.clients.iter().filter_map(|c| find(&c.component));
            for client in clients.filter(|client| *client != server) {
                before.push((server, client));
                let handlers = handlers(server).into_iter();
                before.extend(handlers.filter(|h| *h != client).map(|h| (h, client)));
            }
        }
        // A request that comes before its server waits would be lost behind a proxy. Servers among
        // themselves ask only when they are asked.
        let servers = document.resources.iter().map(|r| r.server.as_ref());
        let servers: Vec<Option<usize>> = servers.map(|s| s.and_then(find)).collect();
        let serving: HashSet<usize> = servers.iter().copied().flatten().collect();
        for (resource, server) in document.resources.iter().zip(&servers) {
            let Some(server) = *server else { continue };
            let clients = resource.clients.iter().filter_map(|c| find(&c.component));
            let clients = clients.filter(|client| !serving.contains(client));
            before.extend(clients.map(|client| (server, client)));
        }
        // So that all that is logged at the start is written then, if there is time for it.
        if let Some(writer) = self.writer {
            let others = (0..document.components.len()).filter(|index| *index != writer);
            before.extend(others.map(|other| (writer, other)));
        }
        before
    }

    /// Reports components that wait for each other.
    fn circle(&mut self, before: &[(usize, usize)], stuck: &[usize]) {
        // From any of them, going back to what it waits for ends in a circle.
        let waiting: HashSet<usize> = stuck.iter().copied().collect();
        let mut previous: HashMap<usize, usize> = HashMap::new();
        for (first, then) in before.iter().filter(|(first, _)| waiting.contains(first)) {
            previous.entry(*then).or_insert(*first);
        }
        let mut path = vec![stuck[0]];
        let mut places = HashMap::from([(stuck[0], 0)]);
        let circle = loop {
            let Some(&previous) = previous.get(&path[path.len() - 1]) else {
                return;
            };
            if let Some(&start) = places.get(&previous) {
                break path.split_off(start);
            }
            places.insert(previous, path.len());
            path.push(previous);
        };
        let shown = &circle[..circle.len().min(MOST_SHOWN)];
        let names: Vec<String> = shown
            .iter()
            .chain(&circle[..1])
            .map(|&index| format!("`{}`", text(&self.document.components[index].name)))
            .collect();
        let span = self.document.components[circle[0]].name.span();
        self.found(
            Finding::new(
                span,
                format!(
                    "components wait for each other's start: {}",
                    names.join(" needs ")
                ),
            )
            .label("waits for a server that waits for it")
            .help(
                "a server that is `passive` or `ready` starts before its clients; give one of them \
                 a reservation of its own, without `ready = true`",
            ),
        );
    }
}

fn says_when_ready(component: &Component) -> bool {
    component.ready
        || component
            .passive
            .as_ref()
            .is_some_and(|passive| *passive.get_ref())
}

#[cfg(test)]
mod tests {
    use super::ordered;

    #[test]
    fn the_order_is_the_files_where_nothing_else_is_asked_for() {
        assert_eq!(ordered(4, &[]), [0, 1, 2, 3]);
        assert_eq!(ordered(4, &[(3, 0), (3, 0)]), [1, 2, 3, 0]);
        assert_eq!(ordered(4, &[(2, 1), (1, 0)]), [2, 1, 0, 3]);
        assert_eq!(ordered(3, &[(0, 1), (1, 0), (1, 2)]), [0usize; 0]);
    }
}
