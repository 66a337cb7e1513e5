//! Named mutants: single defects, written down in `assurance/mutants/*.toml`, each with the rule that it breaks
//! and what must notice it. All of a catalogue are built into one kernel, in a scratch workspace;
//! which one is on is decided when it runs.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use object::{Object, ObjectSection, ObjectSymbol};
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::tree::{self, Tree};
use crate::arch::Arch;
use crate::kernel::{self, KernelOptions, Variant};
use crate::workspace;

/// The switch, a module of the mutated kernel: its files.
const SWITCH: &[(&str, &str)] = &[
    (
        "kernel/src/mutants/mod.rs",
        "#[cfg_attr(target_os = \"none\", path = \"bare.rs\")]\nmod hosted;\npub use hosted::on;\n",
    ),
    (
        "kernel/src/mutants/bare.rs",
        include_str!("switch_bare.rs.in"),
    ),
    ("kernel/src/mutants/hosted.rs", tree::SWITCH),
];
const KERNEL_ROOT: &str = "kernel/src/lib.rs";
/// The kernel's word that says which mutant is on.
const SYMBOL: &str = "SANDGLASS_MUTANT";
/// Tells a hosted kernel which mutant is on.
pub const VARIABLE: &str = "SANDGLASS_MUTANT";

/// A catalogue of named mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Set {
    /// Kernels that break a rule.
    Rules,
    /// Kernels for aarch64 that break one, in code of that architecture.
    Aarch64,
    /// Kernels of another profile that break one of what that adds.
    Profile,
    /// Kernels that set a piece of the processor's state wrong.
    State,
    /// Kernels for aarch64 that do.
    StateAarch64,
    /// The kernel that could panic, which does not link.
    Panics,
}

impl Set {
    pub const ALL: [Self; 6] = [
        Self::Rules,
        Self::Aarch64,
        Self::Profile,
        Self::State,
        Self::StateAarch64,
        Self::Panics,
    ];

    /// Of its file and its scratch workspace.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Aarch64 => "aarch64",
            Self::Profile => "profile",
            Self::State => "state",
            Self::StateAarch64 => "state-aarch64",
            Self::Panics => "panics",
        }
    }

    /// That of the kernels that break a rule.
    pub const fn of_rules(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self::Rules,
            Arch::Aarch64 => Self::Aarch64,
        }
    }

    /// That of the kernels that set a piece of the processor's state wrong.
    pub const fn of_state(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self::State,
            Arch::Aarch64 => Self::StateAarch64,
        }
    }

    /// Its file, in the repository.
    pub fn path(self) -> String {
        format!("assurance/mutants/{}.toml", self.name())
    }
}

/// A kernel that is wrong in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// The section of the ABI, or the rule itself where no section has it.
    pub rule: String,
    /// What the wrong kernel does.
    pub breaks: String,
    /// What must notice it.
    pub caught_by: String,
    /// The test on the host that must notice it, or the module of which one must, if the host has what it changes.
    pub on_host: Option<String>,
    /// Which one it is, from 1 on.
    pub number: u32,
    changes: Vec<Change>,
}

/// The text `stands` of a file gives way to `instead`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    file: String,
    /// Only in the function of this name.
    function: Option<String>,
    stands: String,
    #[serde(default)]
    instead: String,
    /// Needed of changes that are always there.
    #[serde(default)]
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Changes that all kernels of the catalogue have.
    #[serde(default)]
    always: Vec<Change>,
    /// Source that only these kernels have.
    #[serde(default)]
    file: Vec<Addition>,
    /// Where `insert` puts its statements: before the text that stands there.
    place: Option<Change>,
    #[serde(default)]
    mutant: Vec<Entry>,
}

/// The file `from` of the repository stands at `path` in the scratch workspace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Addition {
    path: String,
    from: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    rule: String,
    breaks: String,
    caught_by: String,
    on_host: Option<String>,
    #[serde(default)]
    change: Vec<Change>,
    insert: Option<String>,
}

/// A catalogue, as it was read.
pub struct Catalogue {
    set: Set,
    always: Vec<Change>,
    additions: Vec<Addition>,
    pub mutants: Vec<Named>,
}

impl Catalogue {
    /// Reads the catalogue of this repository.
    ///
    /// # Errors
    /// It cannot be read, is malformed, or two of its mutants have one name.
    pub fn read(set: Set) -> Result<Self> {
        let path = workspace::root().join(set.path());
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", set.path()))?;
        Self::parse(set, &text).with_context(|| format!("in {}", set.path()))
    }

    fn parse(set: Set, text: &str) -> Result<Self> {
        let document: Document = toml::from_str(text)?;
        for change in &document.always {
            ensure!(
                !change.why.trim().is_empty(),
                "the change of {} that is always there needs a reason, in `why`",
                change.file
            );
        }
        let mut mutants: Vec<Named> = Vec::new();
        for (entry, number) in document.mutant.into_iter().zip(1..) {
            ensure!(
                mutants.iter().all(|other| other.name != entry.name),
                "two mutants are called `{}`: a name says which one is meant",
                entry.name
            );
            let changes = changes(&entry, document.place.as_ref())?;
            mutants.push(Named {
                name: entry.name,
                rule: entry.rule,
                breaks: entry.breaks,
                caught_by: entry.caught_by,
                on_host: entry.on_host,
                number,
                changes,
            });
        }
        Ok(Self {
            set,
            always: document.always,
            additions: document.file,
            mutants,
        })
    }

    /// The mutant of this name.
    ///
    /// # Errors
    /// There is none; the message has the names that there are.
    pub fn find(&self, name: &str) -> Result<&Named> {
        let found = self.mutants.iter().find(|mutant| mutant.name == name);
        found.with_context(|| {
            let names: Vec<&str> = self.mutants.iter().map(|it| it.name.as_str()).collect();
            format!(
                "no mutant of {} is called `{name}`; there are {}",
                self.set.path(),
                names.join(", ")
            )
        })
    }

    /// The files of the kernel with all of its mutants that differ from the repository's, by their
    /// paths.
    ///
    /// # Errors
    /// A file cannot be read; or the text of a change does not stand exactly once where it must: with
    /// all such changes, since whoever rearranges the kernel meets several.
    pub fn sources(&self) -> Result<BTreeMap<String, String>> {
        let mut edits: BTreeMap<&str, Vec<Edit>> = BTreeMap::new();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        for addition in &self.additions {
            texts.insert(addition.path.clone(), read(&addition.from)?);
        }
        let switched = self.mutants.iter().flat_map(|mutant| {
            let changes = mutant.changes.iter();
            changes.map(move |change| (Some(mutant), change))
        });
        let always = self.always.iter().map(|change| (None, change));
        let mut misfits = Vec::new();
        for (mutant, change) in always.chain(switched) {
            if !texts.contains_key(&change.file) {
                texts.insert(change.file.clone(), read(&change.file)?);
            }
            let whose = || match mutant {
                Some(mutant) => format!("the mutant `{}` of {}", mutant.name, self.set.path()),
                None => format!("a change of {} that is always there", self.set.path()),
            };
            let number = mutant.map(|mutant| mutant.number);
            match change.edit(&texts[&change.file], number) {
                Ok(edit) => edits.entry(&change.file).or_default().push(edit),
                Err(error) => misfits.push(format!("{:#}", error.context(whose()))),
            }
        }
        ensure!(misfits.is_empty(), "{}", misfits.join("\n"));
        for (file, edits) in edits {
            let text = texts.get_mut(file).context("it was read above")?;
            *text = apply(text, edits).with_context(|| format!("in {file}"))?;
        }
        let root = match texts.remove(KERNEL_ROOT) {
            Some(text) => text,
            None => read(KERNEL_ROOT)?,
        };
        // Choices have parentheses that they may not need.
        let root = root.replacen("#![no_std]", "#![no_std]\n#![allow(warnings)]", 1);
        texts.insert(KERNEL_ROOT.to_owned(), root + "\npub mod mutants;\n");
        // Their numbers begin with 1.
        let count = (self.mutants.len() + 1).to_string();
        for &(path, text) in SWITCH {
            texts.insert(path.to_owned(), text.replace("@COUNT@", &count));
        }
        Ok(texts)
    }
}

/// What is wrong with the catalogues, with the kernel as it is.
pub fn findings() -> Vec<String> {
    let wrong = |set: Set| Catalogue::read(set).and_then(|it| it.sources()).err();
    let errors = Set::ALL.into_iter().filter_map(wrong);
    errors.map(|error| format!("{error:#}")).collect()
}

fn read(path: &str) -> Result<String> {
    tree::read(&workspace::root().join(path))
}

/// The changes of an entry.
fn changes(entry: &Entry, place: Option<&Change>) -> Result<Vec<Change>> {
    let mut changes = entry.change.clone();
    if let Some(statements) = &entry.insert {
        let place = place.with_context(|| {
            format!(
                "`{}` has an `insert`, but no `[place]` says where",
                entry.name
            )
        })?;
        changes.push(Change {
            instead: format!("{statements}\n{}", place.stands),
            ..place.clone()
        });
    }
    ensure!(
        !changes.is_empty(),
        "`{}` changes nothing: it needs a `[[mutant.change]]`",
        entry.name
    );
    Ok(changes)
}

/// Bytes of a text give way to others.
type Edit = (Range<usize>, String);

impl Change {
    /// The edit of `text`, the content of the file; one that the mutant `number` switches on, if there
    /// is a number.
    fn edit(&self, text: &str, number: Option<u32>) -> Result<Edit> {
        let place = self.place(text)?;
        let Some(number) = number else {
            return Ok((place, self.instead.clone()));
        };
        let on = format!("crate::mutants::on({number})");
        let (original, instead) = (&text[place.clone()], self.instead.trim());
        if is_expression(original) && is_expression(instead) {
            let choice = format!("(if {on} {{ {instead} }} else {{ {original} }})");
            return Ok((place, choice));
        }
        Ok(match kept(instead, &self.stands) {
            Some(kept) if kept.end == instead.len() => {
                let inserted = &instead[..kept.start];
                (
                    place.start..place.start,
                    format!("if {on} {{ {inserted} }} "),
                )
            }
            Some(kept) if kept.start == 0 => {
                let inserted = &instead[kept.end..];
                (place.end..place.end, format!(" if {on} {{ {inserted} }}"))
            }
            _ => {
                let choice = format!("if {on} {{ {instead} }} else {{ {original} }}");
                (place, choice)
            }
        })
    }

    /// Where the text stands in `text`, the content of the file.
    fn place(&self, text: &str) -> Result<Range<usize>> {
        let (within, inside) = match &self.function {
            Some(function) => {
                let range =
                    function_named(text, function).with_context(|| format!("in {}", self.file))?;
                (range, format!("the function `{function}` of {}", self.file))
            }
            None => (0..text.len(), self.file.clone()),
        };
        let places = places(&text[within.clone()], &self.stands);
        match places.as_slice() {
            [place] => Ok(within.start + place.start..within.start + place.end),
            [] => bail!(
                "the text that it changes does not stand in {inside} any more; say what stands there \
                 now, or in which file:\n{}",
                self.stands.trim()
            ),
            _ => bail!(
                "the text that it changes stands {} times in {inside}; name its function, or more of \
                 the text around it:\n{}",
                places.len(),
                self.stands.trim()
            ),
        }
    }
}

/// Where `instead` has the text that it replaces, if it has.
fn kept(instead: &str, stands: &str) -> Option<Range<usize>> {
    places(instead, stands).into_iter().next()
}

fn is_expression(text: &str) -> bool {
    syn::parse_str::<syn::Expr>(text).is_ok()
}

/// Where `wanted` stands in `text`, whatever the white space, and not as a part of longer words.
fn places(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let visible = |text: &str| -> Vec<(usize, char)> {
        text.char_indices()
            .filter(|(_, c)| !c.is_whitespace())
            .collect()
    };
    let (all, wanted) = (visible(text), visible(wanted));
    let (Some(&(_, first)), Some(&(_, last))) = (wanted.first(), wanted.last()) else {
        return Vec::new();
    };
    let of_word = |c: char| c.is_alphanumeric() || c == '_';
    let cuts = |inner: char, outer: Option<char>| of_word(inner) && outer.is_some_and(of_word);
    all.windows(wanted.len())
        .filter(|window| window.iter().zip(&wanted).all(|(a, b)| a.1 == b.1))
        .map(|window| {
            let (end, c) = window[window.len() - 1];
            window[0].0..end + c.len_utf8()
        })
        .filter(|place| {
            !cuts(first, text[..place.start].chars().next_back())
                && !cuts(last, text[place.end..].chars().next())
        })
        .collect()
}

/// The bytes of the function of this name, of which there is one.
fn function_named(text: &str, name: &str) -> Result<Range<usize>> {
    struct Functions<'n> {
        name: &'n str,
        found: Vec<Range<usize>>,
    }
    impl Functions<'_> {
        fn see(&mut self, signature: &syn::Signature, whole: &impl Spanned) {
            if signature.ident == self.name {
                self.found.push(whole.span().byte_range());
            }
        }
    }
    impl<'a> Visit<'a> for Functions<'_> {
        fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
            self.see(&item.sig, item);
            visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
            self.see(&item.sig, item);
            visit::visit_impl_item_fn(self, item);
        }
    }
    let mut functions = Functions {
        name,
        found: Vec::new(),
    };
    functions.visit_file(&syn::parse_file(text)?);
    match functions.found.as_slice() {
        [range] => Ok(range.clone()),
        found => bail!(
            "there must be one function `{name}`, but there are {}",
            found.len()
        ),
    }
}

/// `text` after all `edits`. Several may insert at one place: they come in their order.
fn apply(text: &str, mut edits: Vec<Edit>) -> Result<String> {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for (range, by) in edits {
        ensure!(
            range.start >= at,
            "two mutants change the same text: `{}`",
            &text[range]
        );
        result.push_str(&text[at..range.start]);
        result.push_str(&by);
        at = range.end;
    }
    result.push_str(&text[at..]);
    Ok(result)
}

/// Writes the scratch workspace in which all mutants of `set` are built in. As long as the result is
/// there, nobody else writes it.
///
/// # Errors
/// As for [`Catalogue::sources`]; or something cannot be written.
pub fn tree(set: Set) -> Result<Tree> {
    let sources = Catalogue::read(set)?.sources()?;
    Tree::changed(set.name(), &sources)
}

/// Builds the release kernel for one core with the mutant of this name, of [`Set::Rules`], on.
///
/// # Errors
/// There is none, or the kernel does not build.
pub fn kernel(arch: Arch, name: &str) -> Result<PathBuf> {
    let set = Set::of_rules(arch);
    let catalogue = Catalogue::read(set)?;
    let mutant = catalogue.find(name)?;
    let options = KernelOptions::new(Variant::Release).for_arch(arch);
    let built = kernel::build(&options.with_user_timer().with_mutants(set))?;
    switch_on(&built, Some(mutant))
}

/// Copies `kernel`, which was built with a catalogue, with `mutant` on, or none.
///
/// # Errors
/// It has no switch, or the copy cannot be written.
pub fn switch_on(kernel: &Path, mutant: Option<&Named>) -> Result<PathBuf> {
    let reading = || format!("cannot read {}", kernel.display());
    let mut image = fs::read(kernel).with_context(reading)?;
    let place = place_of_switch(&image).with_context(|| format!("in {}", kernel.display()))?;
    let number = mutant.map_or(0, |mutant| mutant.number);
    image[place].copy_from_slice(&number.to_le_bytes());
    let name = mutant.map_or("none", |mutant| &mutant.name);
    let path = kernel.with_extension(format!("{name}.elf"));
    // A QEMU that is reading the file must see it whole: it is replaced, not rewritten.
    let fresh = path.with_extension("new");
    fs::write(&fresh, &image)
        .and_then(|()| fs::rename(&fresh, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Where the word stands in a kernel's file.
fn place_of_switch(image: &[u8]) -> Result<Range<usize>> {
    let file = object::File::parse(image)?;
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(SYMBOL))
        .with_context(|| format!("there is no `{SYMBOL}`: no mutant was built in"))?;
    let section = symbol.section_index().context("it is in no section")?;
    let section = file.section_by_index(section)?;
    let (start, size) = section
        .file_range()
        .context("the file has no place for it")?;
    let offset = symbol.address() - section.address();
    ensure!(offset + 4 <= size, "it is outside of its section");
    let start = usize::try_from(start + offset)?;
    ensure!(start + 4 <= image.len(), "it is outside of the file");
    Ok(start..start + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(stands: &str, instead: &str) -> Change {
        Change {
            file: "a.rs".to_owned(),
            function: None,
            stands: stands.to_owned(),
            instead: instead.to_owned(),
            why: String::new(),
        }
    }

    /// `text` with the change built in as mutant 1, with short names.
    fn changed(text: &str, stands: &str, instead: &str) -> String {
        let edit = change(stands, instead).edit(text, Some(1)).unwrap();
        apply(text, vec![edit])
            .unwrap()
            .replace("crate::mutants::", "")
    }

    #[test]
    fn every_catalogue_applies_to_the_kernel_as_it_is() {
        for set in Set::ALL {
            for (path, text) in Catalogue::read(set).unwrap().sources().unwrap() {
                if let Err(error) = syn::parse_file(&text) {
                    panic!("{path} of {}: {error}", set.path());
                }
            }
        }
    }

    #[test]
    fn all_changes_that_do_not_fit_are_told() {
        let entry = |name: &str, stands: &str| {
            format!(
                "[[mutant]]\nname = '{name}'\nrule = 'r'\nbreaks = 'b'\ncaught_by = 'c'\n\
                 [[mutant.change]]\nfile = '{KERNEL_ROOT}'\nstands = '{stands}'\n"
            )
        };
        let text = [entry("a", "no_such_text_a"), entry("b", "no_such_text_b")].concat();
        let error = Catalogue::parse(Set::Rules, &text).unwrap().sources();
        let said = format!("{:#}", error.unwrap_err());
        assert!(
            said.contains("no_such_text_a") && said.contains("no_such_text_b"),
            "{said}"
        );
    }

    #[test]
    fn an_expression_becomes_a_choice() {
        assert_eq!(
            changed("fn f() { g(a\n    .b()) }", "a.b()", "a.b() as u32"),
            "fn f() { g((if on(1) { a.b() as u32 } else { a\n    .b() })) }"
        );
    }

    #[test]
    fn what_keeps_the_text_is_an_insertion() {
        let text = "fn f() { let a = b; c }";
        assert_eq!(
            changed(text, "let a = b;", "return d; let a = b;"),
            "fn f() { if on(1) { return d;  } let a = b; c }"
        );
        assert_eq!(
            changed(text, "let a = b;", "let a = b; d();"),
            "fn f() { let a = b; if on(1) {  d(); } c }"
        );
    }

    #[test]
    fn statements_become_branches() {
        assert_eq!(
            changed("fn f() { a(); b() }", "a();", ""),
            "fn f() { if on(1) {  } else { a(); } b() }"
        );
    }

    #[test]
    fn text_that_does_not_stand_there_exactly_once_is_an_error() {
        let said = |text: &str, stands: &str, function: Option<&str>| {
            let change = Change {
                function: function.map(str::to_owned),
                ..change(stands, "b")
            };
            format!("{:#}", change.edit(text, Some(1)).unwrap_err())
        };
        let text = "fn f() { a() } fn g() { a(); aa() }";
        assert!(said(text, "c", None).contains("does not stand in a.rs any more"));
        assert!(said(text, "a()", None).contains("stands 2 times in a.rs"));
        assert!(said(text, "aa()", Some("f")).contains("in the function `f` of a.rs"));
        assert!(said(text, "a()", Some("h")).contains("one function `h`"));
        let in_f = Change {
            function: Some("f".to_owned()),
            ..change("a()", "b")
        };
        assert_eq!(in_f.place(text).unwrap(), 9..12);
    }

    #[test]
    fn mutants_may_insert_at_one_place_but_not_overlap() {
        let insertions = vec![(1..1, "x".to_owned()), (1..1, "y".to_owned())];
        assert_eq!(apply("ab", insertions).unwrap(), "axyb");
        let changes = vec![(0..2, "x".to_owned()), (1..2, "y".to_owned())];
        assert!(apply("ab", changes).is_err());
    }

    #[test]
    fn a_catalogue_says_what_it_needs() {
        let parse = |text: &str| match Catalogue::parse(Set::Rules, text) {
            Ok(_) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        let head = "[[mutant]]\nname = 'a'\nrule = 'r'\nbreaks = 'b'\ncaught_by = 'c'\n";
        let change = "[[mutant.change]]\nfile = 'f'\nstands = 's'\n";
        assert_eq!(parse(&format!("{head}{change}")), "");
        assert!(parse(head).contains("changes nothing"));
        assert!(parse(&format!("{head}insert = 'i'\n")).contains("no `[place]`"));
        assert!(parse(&format!("{head}{change}{head}{change}")).contains("two mutants"));
    }
}
