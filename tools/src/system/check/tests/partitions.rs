//! `[partitions]`, `[[partition]]` and `[[frame]]`: what they stand for, and what can be wrong with them.

use sandglass_description::policy::partitions::{Form, Kind, Partitions, Sender, MOST_WINDOWS};
use sandglass_description::policy::timers::SERVICE;

use sandglass_description::policy::Table;

use super::super::Content;
use super::{described, findings, one_finding, Description};

/// Two partitions by deadline, one of which calls a server.
const DEADLINES: &str = r#"
name = "test"
machine = { memory = 64 }

[partitions]
name = "windows"
order = "deadlines"
priority = 150
finish = "100us"

[[partition]]
name = "flight"
period = "5ms"
budget = "2ms"
threads = [
  { component = "a", kind = "periodic", priority = 3, period = "10ms", offset = "2ms" },
  { component = "b", kind = "sporadic", priority = 2, interval = "4ms", arrivals = ["reporter"] },
]

[[partition]]
name = "cabin"
period = "20ms"
deadline = "15ms"
budget = "4ms"
threads = [{ component = "c", kind = "best-effort" }]

[[component]]
name = "a"
executable = "hello-visitor"
priority = 100

[[component]]
name = "b"
executable = "hello-visitor"
priority = 90

[[component]]
name = "c"
executable = "hello-visitor"
priority = 80

[[component]]
name = "server"
executable = "hello-visitor"
priority = 120
passive = true

[[component]]
name = "reporter"
executable = "hello-visitor"
priority = 200
budget = "1ms"
period = "10ms"

[[endpoint]]
name = "work"
server = "server"
clients = [{ component = "c", badge = 1 }]
"#;

/// The same partitions, with windows in a frame, and no server.
const FRAMES: &str = r#"
name = "test"
machine = { memory = 64 }

[partitions]
name = "windows"
order = "frames"
priority = 150

[[partition]]
name = "flight"
threads = [{ component = "a", kind = "best-effort" }]

[[partition]]
name = "cabin"
threads = [{ component = "b", kind = "best-effort" }]

[[frame]]
name = "cruise"
length = "20ms"
windows = [
  { partition = "flight", at = "0ms", length = "5ms" },
  { partition = "cabin", at = "5ms", length = "8ms" },
  { partition = "flight", at = "15ms", length = "3ms" },
]

[[component]]
name = "a"
executable = "hello-visitor"
priority = 100

[[component]]
name = "b"
executable = "hello-visitor"
priority = 100
"#;

/// The scheduler's table. The timer service has one, too.
fn table_of(description: &Description) -> Partitions {
    let memory = &description.system.memory;
    let mut files = description.files.iter();
    let file = files.find(|file| memory[file.memory].name == Partitions::NAME);
    match &file.unwrap().content {
        Content::Bytes(bytes) => Partitions::decode(bytes).unwrap(),
        Content::Path(_) => panic!("a file in place of a table"),
    }
}

#[test]
fn the_table_is_what_is_written() {
    let table: Partitions = table_of(&described(DEADLINES));
    let [flight, cabin] = table.partitions.as_slice() else {
        panic!("two partitions");
    };
    assert_eq!((table.form, table.bound_us), (Form::Deadlines, Some(100)));
    let times = |of: &sandglass_description::policy::partitions::Partition| {
        (of.period_us, of.deadline_us, of.budget_us, of.calls_servers)
    };
    assert_eq!(times(flight), (5_000, 5_000, 2_000, false));
    assert_eq!(times(cabin), (20_000, 15_000, 4_000, true));
    assert_ne!(flight.badge, cabin.badge);
    let kinds: Vec<Kind> = flight.threads.iter().map(|thread| thread.kind).collect();
    let periodic = Kind::Periodic {
        priority: 3,
        period_us: 10_000,
        offset_us: 2_000,
    };
    let sporadic = Kind::Sporadic {
        priority: 2,
        interval_us: 4_000,
    };
    assert_eq!(kinds, [periodic, sporadic]);
}

#[test]
fn windows_in_frames_are_what_is_written() {
    let table: Partitions = table_of(&described(FRAMES));
    let Form::Frames(frames) = table.form else {
        panic!("a frame");
    };
    let windows = frames[0].windows.iter();
    let windows = windows.map(|window| (window.partition, window.at_us, window.length_us));
    let expected = [(0, 0, 5_000), (1, 5_000, 8_000), (0, 15_000, 3_000)];
    assert_eq!(windows.collect::<Vec<_>>(), expected);
}

#[test]
fn the_scheduler_is_below_the_timer_service_and_its_watcher_above_the_threads() {
    let system = described(DEADLINES).system;
    let find = |name: &str| {
        let mut components = system.components.iter();
        components.find(|component| component.name == name).unwrap()
    };
    assert_eq!(find("windows").threads[0].priority, 150);
    assert_eq!(find("windows").threads[1].priority, 101);
    assert_eq!(find(SERVICE).threads[0].priority, 151);
    let badge = |component: &str, name: &str| {
        let mut grants = find(component).grants.iter();
        Sender::of(grants.find(|grant| grant.name == name).unwrap().badge)
    };
    assert_eq!(badge("c", "partition"), Sender::Done(2));
    assert_eq!(badge("reporter", "b.arrivals"), Sender::Arrival(1));
}

#[test]
fn what_partitions_lack_or_have_too_much_of_is_said() {
    let wrong = |old, new, said: &[&str]| {
        one_finding(DEADLINES, old, new, said);
    };
    let flight = "name = \"flight\"\nperiod = \"5ms\"\nbudget = \"2ms\"";
    wrong(
        flight,
        "name = \"flight\"\nperiod = \"5ms\"",
        &["`flight` has no budget", "order = \"frames\""],
    );
    wrong(
        flight,
        "name = \"flight\"\nperiod = \"5ms\"\nbudget = \"6ms\"",
        &["a budget of 6000 µs within 5000 µs", "at most the deadline"],
    );
    wrong(
        "deadline = \"15ms\"",
        "deadline = \"25ms\"",
        &["a deadline of 25000 µs", "the period, 20000 µs"],
    );
    wrong(
        flight,
        "name = \"flight\"\nperiod = \"5ms\"\nbudget = \"4ms\"",
        &["the partitions need 108.6 %", "must be at most 100 %"],
    );
    wrong(
        "period = \"20ms\"",
        "period = \"20003us\"",
        &["multiples of 1 µs", "must be at most 1024 times as long"],
    );
    wrong(
        "name = \"cabin\"\n",
        "name = \"cabin\"\npriority = 3\n",
        &[
            "the priority of `cabin` has no effect",
            "order = \"priorities\"",
        ],
    );
    wrong(
        "name = \"cabin\"",
        "name = \"flight\"",
        &["there are two partitions `flight`"],
    );
}

#[test]
fn priorities_are_admitted_by_their_responses() {
    let text = DEADLINES.replace("\"deadlines\"", "\"priorities\"");
    let text = text.replace("name = \"flight\"", "name = \"flight\"\npriority = 2");
    let text = text.replace("name = \"cabin\"", "name = \"cabin\"\npriority = 1");
    let table: Partitions = table_of(&described(&text));
    assert_eq!(table.form, Form::Priorities);
    // With 9 ms, 100 µs and the 2 ms of each of three periods it has 15.1 ms.
    let said = [
        "`cabin` may not get its budget before its deadline",
        "the deadline is 15000 µs",
    ];
    one_finding(&text, "budget = \"4ms\"", "budget = \"9ms\"", &said);
}

#[test]
fn what_is_wrong_with_a_thread_is_said() {
    let wrong = |old, new, said: &[&str]| {
        one_finding(DEADLINES, old, new, said);
    };
    wrong(
        "kind = \"periodic\", priority = 3, period = \"10ms\"",
        "kind = \"periodic\", priority = 3",
        &["`a` has no `period`", "a thread that is periodic has one"],
    );
    wrong(
        "kind = \"best-effort\"",
        "kind = \"best-effort\", priority = 1",
        &["a thread that is of best effort has no `priority`"],
    );
    wrong(
        "kind = \"best-effort\" }",
        "kind = \"best-effort\" }, { component = \"a\", kind = \"best-effort\" }",
        &["`a` is a thread of partitions twice"],
    );
    wrong(
        "arrivals = [\"reporter\"]",
        "arrivals = [\"reportr\"]",
        &["no component is called `reportr`", "reporter"],
    );
    wrong(
        "name = \"a\"\nexecutable = \"hello-visitor\"\npriority = 100",
        "name = \"a\"\nexecutable = \"hello-visitor\"\npriority = 100\nbudget = \"1ms\"\nperiod = \"2ms\"",
        &["`a` runs on the time of its partition", "must not be here"],
    );
    wrong(
        "priority = 90",
        "priority = 150",
        &["`b` would delay its scheduler", "must be below 150"],
    );
    wrong(
        "finish = \"100us\"\n",
        "",
        &[
            "a request of `c` may be in service when its window ends",
            "finish = \"100us\"",
        ],
    );
    wrong(
        "priority = 120",
        "priority = 101",
        &[
            "`server` serves threads of partitions",
            "must be above 101, and below 150",
        ],
    );
}

#[test]
fn what_is_wrong_with_a_frame_is_said() {
    let wrong = |old, new, said: &[&str]| {
        one_finding(FRAMES, old, new, said);
    };
    wrong(
        "at = \"5ms\", length = \"8ms\"",
        "at = \"4ms\", length = \"8ms\"",
        &["the window begins at 4000 µs", "must be 5000 µs or later"],
    );
    wrong(
        "at = \"15ms\", length = \"3ms\"",
        "at = \"18ms\", length = \"3ms\"",
        &["the window ends at 21000 µs", "must end by 20000 µs"],
    );
    wrong(
        "partition = \"cabin\"",
        "partition = \"cabn\"",
        &["no partition is called `cabn`", "cabin"],
    );
    let second = "[[frame]]\nname = \"landing\"\nlength = \"20ms\"\nwindows = [{ partition = \"cabin\", at = 0, length = \"5ms\" }]\n\n[[frame]]";
    wrong(
        "[[frame]]",
        second,
        &["there is a frame already", "would never take effect"],
    );
    wrong(
        "order = \"frames\"",
        "order = \"frames\"\nslice = \"7200s\"",
        &["a slice of 7200000000 µs", "must be from 20"],
    );
    wrong(
        "name = \"flight\"\n",
        "name = \"flight\"\nperiod = \"5ms\"\n",
        &[
            "the windows of `flight` are in frames",
            "order = \"deadlines\"",
        ],
    );
}

#[test]
fn partitions_without_a_scheduler_are_refused() {
    let table = "[partitions]\nname = \"windows\"\norder = \"frames\"\npriority = 150\n";
    let text = FRAMES.replace(
        "priority = 100",
        "priority = 100\nbudget = \"5ms\"\nperiod = \"5ms\"",
    );
    one_finding(
        &text,
        table,
        "",
        &["there is no `[partitions]`", "add `[partitions]`"],
    );
}

/// What supplies a scheduler of partitions with time.
const MANAGER: &str = r#"
[time-manager]
name = "time"
priority = 140
clients = [{ component = "windows", share = "81%" }, { component = "other" }]

[partitions]
time = "time""#;

/// Another client.
const OTHER: &str = r#"
[[component]]
name = "other"
executable = "hello-visitor"
priority = 50
"#;

/// Frames in the time that a time manager supplies.
fn in_supplied_time(frames: &str) -> String {
    let frames = frames.replace("[partitions]", MANAGER);
    frames.replace("priority = 100", "priority = 139") + OTHER
}

fn supplied() -> String {
    in_supplied_time(FRAMES)
}

#[test]
fn time_that_is_supplied_is_asked_for_by_the_main_thread_and_handed_on_by_another() {
    let system = described(&supplied()).system;
    let find = |name: &str| {
        let mut components = system.components.iter();
        components.find(|component| component.name == name).unwrap()
    };
    let threads = &find("windows").threads;
    let priorities: Vec<u8> = threads.iter().map(|thread| thread.priority).collect();
    assert_eq!(priorities, [137, 150, 139]);
    let ends = |thread: &sandglass_description::Thread| {
        let handler = thread.timeout_handler.as_ref();
        handler.map(|handler| Sender::of(handler.badge))
    };
    assert_eq!(ends(&find("a").threads[0]), Some(Sender::Ended(0)));
    assert_eq!(ends(&find("b").threads[0]), Some(Sender::Ended(1)));
    assert_eq!(ends(&threads[2]), Some(Sender::Ended(2)));
    assert_eq!(ends(&threads[1]), None);
    let table = table_of(&described(&supplied()));
    assert_eq!(table.manager.as_deref(), Some("time"));
}

#[test]
fn what_is_wrong_with_time_that_is_supplied_is_said() {
    let supplied = supplied();
    let wrong = |old, new, said: &[&str]| {
        one_finding(&supplied, old, new, said);
    };
    wrong(
        "time = \"time\"",
        "time = \"tine\"",
        &["no time manager is called `tine`", "did you mean `time`?"],
    );
    wrong(
        "{ component = \"windows\", share = \"81%\" }, ",
        "",
        &[
            "`windows` is no client of it",
            "add it: `{ component = \"windows\"",
        ],
    );
    wrong(
        ", share = \"81%\"",
        "",
        &["a frame needs a share of its own", "give it one"],
    );
    // 16 ms and 100 µs in 20 ms.
    wrong(
        "81%",
        "80%",
        &["the frame needs 16100 µs in 20000 µs", "is less"],
    );
    wrong(
        "name = \"time\"\npriority = 140",
        "name = \"time\"\npriority = 140\nshortest-period = \"21ms\"",
        &["a frame of 20000 µs", "must be at least 21000 µs"],
    );
    wrong(
        "order = \"frames\"\npriority = 150",
        "order = \"frames\"\npriority = 140",
        &[
            "its switches would wait for the time manager",
            "must be above 140",
        ],
    );
    wrong(
        "name = \"a\"\nexecutable = \"hello-visitor\"\npriority = 139",
        "name = \"a\"\nexecutable = \"hello-visitor\"\npriority = 138",
        &["`a` runs in the time manager's turns", "must be 139"],
    );
    wrong(
        "time = \"time\"",
        "time = \"time\"\nfinish = \"100us\"",
        &[
            "no request may be in service when a window ends",
            "must not be here",
        ],
    );
    // Beside what a frame lacks then.
    let report = findings(&supplied, "order = \"frames\"", "order = \"deadlines\"");
    let shown = report.to_string();
    assert!(shown.contains("must be \"frames\""), "{shown}");
    wrong(
        "component = \"a\", kind = \"best-effort\"",
        "component = \"a\", kind = \"best-effort\", arrivals = [\"b\"]",
        &["`b` reports arrivals in a window", "must not be here"],
    );
}

/// A server would stand still when a window ends, and a thread that serves runs outside of its windows.
#[test]
fn threads_whose_time_is_supplied_neither_call_servers_nor_serve() {
    let supplied = supplied() + "# more";
    let wrong = |new, said: &[&str]| {
        one_finding(&supplied, "# more", new, said);
    };
    wrong(
        "[[timer]]\nname = \"tick\"\ncomponent = \"a\"\nevery = \"1ms\"",
        &[
            "`a` calls `timers`",
            "must call no servers",
            "remove its `[[timer]]`",
        ],
    );
    // Nothing is said of `finish`, which must not be there.
    wrong(
        "[[endpoint]]\nname = \"work\"\nserver = \"other\"\nclients = [{ component = \"a\" }]",
        &["`a` calls `other`", "must call no servers"],
    );
    wrong(
        "[[endpoint]]\nname = \"work\"\nserver = \"a\"\nclients = [{ component = \"other\" }]",
        &[
            "`a` serves, and is a thread of a partition",
            "outside its windows",
        ],
    );
    wrong(
        "fault-handler = \"a\"",
        &[
            "`a` handles faults, and is a thread of a partition",
            "outside its windows",
        ],
    );
}

/// As many as the time manager says of that nobody runs in them.
#[test]
fn a_frame_in_time_that_is_supplied_has_so_many_windows() {
    let frame = |count: usize| {
        let window = |index| {
            let at = 100 * index;
            format!("{{ partition = \"cabin\", at = \"{at}us\", length = \"100us\" }},")
        };
        let windows: String = (0..count).map(window).collect();
        let (before, rest) = FRAMES.split_once("windows = [").unwrap();
        let (_, after) = rest.split_once(']').unwrap();
        in_supplied_time(&format!("{before}windows = [{windows}]{after}"))
    };
    let most = described(&frame(MOST_WINDOWS));
    assert_eq!(table_of(&most).manager.as_deref(), Some("time"));
    one_finding(
        &frame(MOST_WINDOWS + 1),
        "length = \"20ms\"",
        "length = \"20ms\"",
        &["65 windows", "a frame can have 64"],
    );
}

/// The end of its window, and `finish`, end a request: the policy has something to do.
#[test]
fn a_timeout_policy_acts_on_the_time_of_partitions() {
    let warned = |text: &str| {
        let description = described(text);
        let warnings = description.outlook.warnings.iter();
        warnings
            .filter(|warning| warning.message.contains("never runs out"))
            .count()
    };
    let handled = DEADLINES.replace(
        "passive = true\n",
        "passive = true\ntimeout-handler = \"server\"\n\n[[component.thread]]\nname = \"handler\"\npriority = 130\n\
         budget = 1000\nperiod = 1000\nready = true\n\n[[timeout-policy]]\nserver = \"server\"\n\
         handler = \"server/handler\"\n",
    );
    assert_eq!(warned(&handled), 0);
}
