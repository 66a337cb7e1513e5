//! The thesis's multiprocessor benchmarks scale as they must, and encrypt what they should.

use std::process::Command;

#[test]
fn one_server_serialises_and_a_server_for_each_core_scales() {
    let folder = std::env::temp_dir().join(format!("sandglass-multicore-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_sandglass"))
        .args(["experiment", "multicore", "--quick", "--report"])
        .arg(&folder)
        .output()
        .expect("the command of this package starts");
    let page = std::fs::read_to_string(folder.join("index.html"));
    let data = std::fs::read_to_string(folder.join("points.csv"));
    let _ = std::fs::remove_dir_all(&folder);
    let console = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{console}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = page.expect("there is a page");
    assert_eq!(
        page.matches("<svg").count(),
        3,
        "servers, and pairs by source"
    );
    let data = data.expect("there are data");
    for source in ["QEMU", "hosted"] {
        // Two cipher scenarios and six of pairs, on 1 to 4 cores.
        let points = data.lines().filter(|line| line.starts_with(source));
        assert_eq!(points.count(), 4 * 8, "{source}");
    }
}
