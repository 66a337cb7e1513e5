//! What a description with resources means in terms of components and endpoints.

use crate::system::spanned::Spanned;
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::sharing::Protocol;

use super::super::super::super::document::{Client, Component, Document, Endpoint, Resource, Text};
use super::super::super::text;
use super::super::mc_ipc;
use super::{entries_of, proxied, resources_of, CLOCK, PROBE, PROXIED, REMINDER};

/// Budget of a proxy's clock, µs. It needs little, but whoever has less left than [`MIN_BUDGET_US`] at an entry of the kernel
/// waits for the next replenishment.
const CLOCK_US: u64 = 2 * MIN_BUDGET_US;

/// The highest priority of a described thread; the launcher's is above.
pub const HIGHEST: i64 = 254;

/// Adds endpoints and proxies.
pub fn expand(document: &mut Document) {
    let mut endpoints: Vec<Endpoint> = document.resources.iter().map(endpoint).collect();
    let mut proxies = Vec::new();
    for (protocol, name) in PROXIED {
        let resources = resources_of(document, protocol);
        let Some(first) = resources.first() else {
            continue;
        };
        let name = Spanned::new(first.protocol.span(), name.to_owned());
        endpoints.push(requests(&name, &resources));
        proxies.push(proxy(&name, protocol, document, &resources));
    }
    document.endpoints.extend(endpoints);
    document.components.extend(proxies);
}

/// Where a resource's server receives: from the clients, or from their proxy, which gets its
/// capabilities later.
fn endpoint(resource: &Resource) -> Endpoint {
    if mc_ipc::is_gated(resource) {
        return mc_ipc::endpoint(resource);
    }
    let clients = match proxied(*resource.protocol.get_ref()) {
        None => resource.clients.clone(),
        Some(_) => Vec::new(),
    };
    Endpoint {
        name: resource.name.clone(),
        server: resource.server.clone(),
        clients,
    }
}

/// Where a proxy receives: its clients find it under the names of the resources.
fn requests(name: &Text, resources: &[&Resource]) -> Endpoint {
    let entries = entries_of(resources).into_iter().enumerate();
    let clients = entries.map(|(entry, (resource, client))| Client {
        badge: Some(Spanned::new(client.component.span(), entry as i64 + 1)),
        alias: Some(
            client
                .alias
                .clone()
                .unwrap_or_else(|| resources[resource].name.clone()),
        ),
        ..client.clone()
    });
    Endpoint {
        name: name.clone(),
        server: Some(name.clone()),
        clients: clients.collect(),
    }
}

/// The component of a proxy: of the highest priority among those who share (thesis 6.4.2), with
/// time that never runs out.
fn proxy(
    name: &Text,
    protocol: Protocol,
    document: &Document,
    resources: &[&Resource],
) -> Component {
    let highest = highest_priority(document, resources);
    let priority = (highest + 1).min(HIGHEST);
    let mut described = format!(
        "name = {name:?}\nexecutable = \"resource-proxy\"\npriority = {priority}\nmcp = {highest}\n\
         ready = true\nbudget = \"5ms\"\nperiod = \"5ms\"\n\
         [[thread]]\nname = \"{CLOCK}\"\npriority = {priority}\nbudget = {CLOCK_US}\nperiod = {tick}\n",
        name = text(name),
        tick = tick_us(document, resources),
    );
    if protocol == Protocol::BandwidthInheritance {
        described += &format!("[[thread]]\nname = \"{PROBE}\"\npriority = 0\npassive = true\n");
    }
    if protocol == Protocol::OriginalCeiling {
        described += &format!(
            "[[thread]]\nname = \"{REMINDER}\"\npriority = 0\nbudget = \"5ms\"\nperiod = \"5ms\"\n"
        );
    }
    let mut component: Component =
        toml::from_str(&described).expect("what is written here is a component");
    // For messages: what is wrong with it comes from the resource's protocol.
    component.name = Spanned::new(name.span(), text(&component.name).to_owned());
    component.executable = Spanned::new(name.span(), component.executable.get_ref().clone());
    component.priority = Spanned::new(name.span(), priority);
    component.mcp = Some(Spanned::new(name.span(), highest));
    for thread in &mut component.threads {
        thread.name = Spanned::new(name.span(), text(&thread.name).to_owned());
    }
    component
}

/// How often the proxy looks after those who have had their share of its time, µs: the shortest period among its clients, but
/// so long that the clock itself takes next to nothing.
fn tick_us(document: &Document, resources: &[&Resource]) -> u64 {
    const LEAST_US: u64 = 500;
    const MOST_US: u64 = 5_000;
    let periods = sharing(document, resources).filter_map(|component| {
        let period = component.period.as_ref()?;
        Some(period.get_ref().0)
    });
    periods.min().unwrap_or(MOST_US).clamp(LEAST_US, MOST_US)
}

/// The highest priority of those who share these resources, 0 to [`HIGHEST`].
pub fn highest_priority(document: &Document, resources: &[&Resource]) -> i64 {
    let priorities = sharing(document, resources).map(|component| *component.priority.get_ref());
    priorities.max().unwrap_or(0).clamp(0, HIGHEST)
}

/// Clients and servers of these resources; a component that is several of these comes several times.
fn sharing<'d>(
    document: &'d Document,
    resources: &'d [&Resource],
) -> impl Iterator<Item = &'d Component> {
    let names = resources.iter().flat_map(|resource| {
        let clients = resource.clients.iter().map(|client| &client.component);
        clients.chain(&resource.server)
    });
    names.filter_map(|name| {
        let mut components = document.components.iter();
        components.find(|component| text(&component.name) == text(name))
    })
}
