use super::*;

#[test]
fn a_part_is_a_file_or_what_is_below_a_folder() {
    for (path, is_generated) in [
        ("kernel/src/cap/slot.rs", true),
        ("kernel/src/cap/slot/inspect.rs", false),
        ("kernel/src/capital.rs", false),
        ("kernel/src/mem/slot.rs", true),
        ("kernel/src/mem/user.rs", false),
        ("kernel/src/arch/x86_64/abi/mapping.rs", true),
        ("kernel/src/arch/x86_64/abi/boot/mod.rs", false),
        ("kernel/src/arch/x86_64/entry/mod.rs", false),
        ("model/src/cap/slot.rs", false),
    ] {
        assert_eq!(is_generated_of(path), is_generated, "{path}");
    }
}

/// Else the repository's kernels would be built again after its mutants, or `core` for its mutants.
#[test]
fn packages_of_a_tree_are_others_and_share_what_is_not_ours() {
    let members = BTreeMap::from([(KERNEL.to_owned(), "kernel".to_owned())]);
    let of = |text: &str| text.parse::<toml::Table>().unwrap();
    let ours = of(&read(&workspace::root().join("Cargo.toml")).unwrap());
    let tree = of(&manifest("rules", &members, Builds::Alike).unwrap());
    let version = |of: &toml::Table| of["workspace"]["package"]["version"].clone();
    assert_ne!(version(&tree), version(&ours));
    let others = |of: &toml::Table| of["profile"]["release"]["package"]["*"].clone();
    assert_eq!(others(&tree), others(&ours));
}

/// A file that was moved must not stand in the tree twice.
#[test]
fn files_of_an_earlier_kernel_do_not_stay() {
    let root = std::env::temp_dir().join(format!("sandglass-tree-{}", std::process::id()));
    let tree = Tree {
        _lock: lock(&root).unwrap(),
        builds: Builds::Apart,
        root: root.clone(),
    };
    let source = |name: &str| Source {
        path: format!("{KERNEL_SOURCE}/{name}"),
        text: String::new(),
        found: Found::default(),
        first: 0,
    };
    let kernel = |names: &[&str]| Kernel {
        sources: names.iter().map(|name| source(name)).collect(),
    };
    let there = || names_below(&root.join(KERNEL_SOURCE)).unwrap();
    let named = |names: &[&str]| names.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
    let viability = Viability::default();
    tree.mutate(&kernel(&["lib.rs", "a.rs"]), &viability)
        .unwrap();
    assert_eq!(there(), named(&["lib.rs", "a.rs", SWITCH_FILE]));
    tree.mutate(&kernel(&["lib.rs", "a/mod.rs"]), &viability)
        .unwrap();
    assert_eq!(there(), named(&["lib.rs", "a/mod.rs", SWITCH_FILE]));
    tree.restore(&kernel(&["lib.rs"])).unwrap();
    assert_eq!(there(), named(&["lib.rs"]));
    fs::remove_dir_all(&root).unwrap();
}
