//! What came out of it, for the console, for the page and as data.

use maud::{html, Markup};

use super::{Outcome, EDGE};
use crate::values;

/// A line for each order of windows.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for order in ["deadlines", "priorities", "frames"] {
        let of_order = outcomes.iter().filter(|outcome| outcome.order == order);
        let Some(worst) = of_order.clone().max_by_key(|outcome| outcome.moved) else {
            continue;
        };
        let windows: usize = of_order.clone().map(|outcome| outcome.windows).sum();
        let count = of_order.count();
        text += &format!(
            "\n{count} systems by {order} with a hostile partition, {windows} windows of the others: moved by at most {} \
             instructions, where the bound is {} and `finish` {}, in system {} ({})",
            worst.moved,
            worst.bound,
            worst.finish,
            worst.seed,
            worst.attacks
        );
    }
    text + "\n"
}

/// All systems.
pub fn section(outcomes: &[Outcome]) -> Markup {
    html! {
        p {
            "Each system runs twice: with honest partitions, and with all threads of one of them replaced by hostile ones. At no \
             time has another partition had more or less of the processor than in the honest system by more than "
            code { "finish" } ", " (EDGE) " instructions, and a request of each other partition; its threads have done as many jobs, and computed the same."
        }
        table {
            tr {
                th { "system" } th.name { "windows by" } th.name { "attacks" } th { "windows of others" }
                th { "finish" } th { "moved by" } th { "bound" }
            }
            @for outcome in outcomes {
                tr {
                    td { (outcome.seed) } td.name { (outcome.order) } td.name { (outcome.attacks) } td { (outcome.windows) }
                    td { (outcome.finish) } td { (outcome.moved) } td { (outcome.bound) }
                }
            }
        }
    }
}

/// As CSV.
pub fn csv(outcomes: &[Outcome]) -> String {
    let lines = outcomes.iter().map(|outcome| {
        (
            outcome.seed,
            outcome.order,
            outcome.windows,
            outcome.finish,
            outcome.moved,
            outcome.bound,
            &outcome.attacks,
        )
    });
    let header = [
        "system", "order", "windows", "finish", "moved", "bound", "attacks",
    ];
    values::text(header, lines)
}
