//! Judging mutants: each is switched on under the tests that reach it, until one fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use wait_timeout::ChildExt;

use crate::test::harness::Harness;

/// Tests that run at the same time.
const JOBS: usize = 2;
/// A test that takes so many times as long as without a mutant hangs. The host's time judges
/// nothing else.
const PATIENCE: u32 = 10;
/// No test is given up earlier: the host may have something else to do.
const LEAST_PATIENCE: Duration = Duration::from_secs(3);
/// Tests that do not judge, as they take minutes: the lock step's long run, whose seeds judge one
/// by one.
const NO_JUDGES: &[&str] = &["lockstep::the_kernel_does_what_is_specified"];
/// Memory of a test, in KiB: what a mutant makes endless ends here.
const MEMORY_KIB: u32 = 4 << 20;

/// Tests of one program.
pub struct Suite {
    pub harness: Harness,
    /// The modules whose tests judge, each with the `::` behind it; all if none is named.
    pub modules: &'static [&'static str],
}

impl Suite {
    fn judges(&self, test: &str) -> bool {
        let is_in = |module: &&str| test.starts_with(module);
        (self.modules.is_empty() || self.modules.iter().any(is_in)) && !NO_JUDGES.contains(&test)
    }
}

/// A test.
pub struct Case {
    /// `debug::kernel::cores::a_name`.
    pub name: String,
    test: String,
    executable: PathBuf,
    folder: PathBuf,
    /// The executable's content and the test's name, as a number.
    fingerprint: u64,
    /// Without a mutant.
    time: Duration,
    reaches: BTreeSet<u32>,
    /// Mutants that it caught.
    catches: AtomicU64,
}

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// This test failed.
    Caught(String),
    /// This test did not end.
    Hung(String),
    Survived,
    /// No test runs the code that it changes.
    Unreached,
}

impl Verdict {
    /// The test that caught it.
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Caught(by) | Self::Hung(by) => Some(by),
            Self::Survived | Self::Unreached => None,
        }
    }
}

/// Whether the test `name` is `test`, or one of that module's.
pub fn is_of(name: &str, test: &str) -> bool {
    let rest = name.strip_prefix(test);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// How a test ended under a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    Hung,
}

/// The tests, and what is known of how they ended.
pub struct Judge {
    cases: Vec<Case>,
    memory: Mutex<Memory>,
}

/// Ends of tests under mutants, kept in a file: a run that is interrupted goes on where it was.
struct Memory {
    ends: HashMap<(u64, u32), End>,
    file: File,
}

impl Judge {
    /// Lists the tests of `suites` that are `wanted` by their names, and runs each without a mutant to see
    /// which it reaches. What is found out is kept in the folder `known`. `say` is told of each test.
    ///
    /// # Errors
    /// A test fails without a mutant.
    pub fn new(
        suites: &[Suite],
        wanted: &dyn Fn(&str) -> bool,
        known: &Path,
        say: &(dyn Fn() + Sync),
    ) -> Result<Self> {
        let mut cases = Vec::new();
        for suite in suites {
            cases.extend(list(suite)?);
        }
        cases.retain(|case| wanted(&case.name));
        let traces = known.join("traces");
        fs::create_dir_all(&traces).context("cannot make a folder for traces")?;
        let cases = in_parallel(cases, |mut case| {
            case.trace(&traces)?;
            say();
            Ok(case)
        })?;
        Ok(Self {
            cases,
            memory: Mutex::new(Memory::open(known)?),
        })
    }

    /// A judge of the mutant `id`, which is always on in `suites`: they hold the same tests, and
    /// each may reach it.
    ///
    /// # Errors
    /// They cannot be listed.
    pub fn for_one(&self, suites: &[Suite], id: u32, known: &Path) -> Result<Self> {
        let mut cases = Vec::new();
        for suite in suites {
            cases.extend(list(suite)?);
        }
        for case in &mut cases {
            case.reaches.insert(id);
            if let Some(known) = self.cases.iter().find(|known| known.name == case.name) {
                case.time = known.time;
                case.catches = AtomicU64::new(known.catches.load(Relaxed));
            }
        }
        Ok(Self {
            cases,
            memory: Mutex::new(Memory::open(known)?),
        })
    }

    /// Judges the mutants `ids`; `say` is told of each when it is done.
    ///
    /// # Errors
    /// A test cannot be run.
    pub fn judge(
        &self,
        ids: &[u32],
        say: &(dyn Fn(u32, &Verdict) + Sync),
    ) -> Result<BTreeMap<u32, Verdict>> {
        let verdicts = in_parallel(ids.to_vec(), |id| {
            let verdict = self.judge_one(id, &|_| true)?;
            say(id, &verdict);
            Ok((id, verdict))
        })?;
        Ok(verdicts.into_iter().collect())
    }

    /// Judges each of the mutants by the test of this name alone, or by those of the module of this name; `say` is told of each when it is done.
    ///
    /// # Errors
    /// There is no such test, or it cannot be run.
    pub fn judge_by(
        &self,
        mutants: &[(u32, &str)],
        say: &(dyn Fn() + Sync),
    ) -> Result<BTreeMap<u32, Verdict>> {
        let verdicts = in_parallel(mutants.to_vec(), |(id, test)| {
            if !self.cases.iter().any(|case| is_of(&case.name, test)) {
                bail!("there is no test `{test}`, and no module with tests, which is to notice a mutant");
            }
            let verdict = self.judge_one(id, &|case| is_of(&case.name, test))?;
            say();
            Ok((id, verdict))
        })?;
        Ok(verdicts.into_iter().collect())
    }

    /// Judges a mutant by the tests that are `asked` and reach it.
    fn judge_one(&self, id: u32, asked: &dyn Fn(&Case) -> bool) -> Result<Verdict> {
        let reaching = |case: &&Case| case.reaches.contains(&id) && asked(case);
        let mut cases: Vec<&Case> = self.cases.iter().filter(reaching).collect();
        if cases.is_empty() {
            return Ok(Verdict::Unreached);
        }
        cases.sort_by_cached_key(|case| case.price());
        // What is known already costs nothing.
        for case in &cases {
            match self.remembered(case, id) {
                Some(End::Failed) => return Ok(Verdict::Caught(case.name.clone())),
                Some(End::Hung) => return Ok(Verdict::Hung(case.name.clone())),
                Some(End::Passed) | None => {}
            }
        }
        for case in cases {
            if self.remembered(case, id).is_some() {
                continue;
            }
            let end = case.run_under(id)?;
            self.memory
                .lock()
                .expect("no worker panics")
                .add(case, id, end)?;
            if end != End::Passed {
                case.catches.fetch_add(1, Relaxed);
                let name = case.name.clone();
                return Ok(match end {
                    End::Hung => Verdict::Hung(name),
                    _ => Verdict::Caught(name),
                });
            }
        }
        Ok(Verdict::Survived)
    }

    fn remembered(&self, case: &Case, id: u32) -> Option<End> {
        let memory = self.memory.lock().expect("no worker panics");
        memory.ends.get(&(case.fingerprint, id)).copied()
    }
}

impl Case {
    /// What it costs to try it: time for each mutant that it will catch, as far as the past tells.
    fn price(&self) -> Duration {
        let catches = u32::try_from(self.catches.load(Relaxed)).unwrap_or(u32::MAX);
        self.time / catches.saturating_add(1)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -v {MEMORY_KIB} -c 0; exec \"$0\" \"$@\""))
            .arg(&self.executable)
            .args(["--exact", &self.test, "--test-threads", "1"])
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env_remove("RUST_BACKTRACE")
            // Random cases are the same in every run, and failing ones need not be made small.
            .env("PROPTEST_RNG_SEED", "1")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Finds out how long the test takes without a mutant, and what it reaches; `known` is the
    /// folder of what was found out before.
    fn trace(&mut self, known: &Path) -> Result<()> {
        let path = known.join(format!("{:016x}", self.fingerprint));
        if !path.exists() {
            self.run_traced(&path)?;
        }
        let reading = || format!("cannot read {}", path.display());
        let text = fs::read_to_string(&path).with_context(reading)?;
        let (reached, time) = text.trim_end().rsplit_once('\n').unwrap_or(("", &text));
        let (time, _) = time.split_once(' ').with_context(reading)?;
        self.time = Duration::from_micros(time.parse().with_context(reading)?);
        self.reaches = reached.lines().filter_map(|id| id.parse().ok()).collect();
        Ok(())
    }

    /// Writes what the test reaches to the file `path`, with the time in µs and the name as
    /// the last line.
    fn run_traced(&self, path: &Path) -> Result<()> {
        let partial = path.with_extension("partial");
        let writing = || format!("cannot write {}", partial.display());
        let mut file = File::create(&partial).with_context(writing)?;
        let run = |command: &mut Command| -> Result<u128> {
            let begin = Instant::now();
            let status = command
                .status()
                .with_context(|| format!("cannot run {}", self.name))?;
            if !status.success() {
                bail!("{} fails without a mutant: {status}", self.name);
            }
            Ok(begin.elapsed().as_micros())
        };
        // Tracing takes time of its own.
        let time = run(&mut self.command())?;
        run(self.command().env("SANDGLASS_MUTANT_TRACE", &partial))?;
        file.seek(SeekFrom::End(0)).with_context(writing)?;
        writeln!(file, "{time} {}", self.name).with_context(writing)?;
        fs::rename(&partial, path).with_context(writing)
    }

    fn run_under(&self, id: u32) -> Result<End> {
        let mut child = self
            .command()
            .env("SANDGLASS_MUTANT", id.to_string())
            .spawn()
            .with_context(|| format!("cannot run {}", self.name))?;
        let patience = (self.time * PATIENCE).max(LEAST_PATIENCE);
        Ok(match wait(&mut child, patience)? {
            None => End::Hung,
            Some(status) if status.success() => End::Passed,
            Some(_) => End::Failed,
        })
    }
}

/// Waits for `child`; kills it after `patience`.
fn wait(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let status = child
        .wait_timeout(patience)
        .context("cannot wait for a test")?;
    if status.is_none() {
        child.kill().context("cannot end a test")?;
        child.wait().context("cannot wait for a test")?;
    }
    Ok(status)
}

/// The tests of a harness.
fn list(suite: &Suite) -> Result<Vec<Case>> {
    let harness = &suite.harness;
    let running = || format!("cannot list the tests of {}", harness.executable.display());
    let content = fs::read(&harness.executable).with_context(running)?;
    let output = Command::new(&harness.executable)
        .args(["--list", "--format", "terse"])
        .output()
        .with_context(running)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let tests = tests.filter(|test| suite.judges(test));
    let case = |test: &str| {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        test.hash(&mut hasher);
        Case {
            name: harness.full_name(test),
            test: test.to_owned(),
            executable: harness.executable.clone(),
            folder: harness.folder.clone(),
            fingerprint: hasher.finish(),
            time: Duration::ZERO,
            reaches: BTreeSet::new(),
            catches: AtomicU64::new(0),
        }
    };
    Ok(tests.map(case).collect())
}

impl Memory {
    fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("ends");
        let mut ends = HashMap::new();
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            // A line that was cut off by an interruption is none.
            if let Some((case, id, end)) = parse(line) {
                ends.insert((case, id), end);
            }
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { ends, file })
    }

    fn add(&mut self, case: &Case, id: u32, end: End) -> Result<()> {
        let word = match end {
            End::Passed => "passed",
            End::Failed => "failed",
            End::Hung => "hung",
        };
        let line = format!("{:016x} {id} {word}\n", case.fingerprint);
        self.file
            .write_all(line.as_bytes())
            .context("cannot keep the result of a test")
    }
}

/// A line of the memory's file.
fn parse(line: &str) -> Option<(u64, u32, End)> {
    let mut words = line.split(' ');
    let case = u64::from_str_radix(words.next()?, 16).ok()?;
    let id = words.next()?.parse().ok()?;
    let end = match words.next()? {
        "passed" => End::Passed,
        "failed" => End::Failed,
        "hung" => End::Hung,
        _ => return None,
    };
    Some((case, id, end))
}

/// Does `work` for each of `items`, as many at a time as there are jobs; the results in their
/// order, or the first error.
fn in_parallel<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let items: Vec<Mutex<Option<T>>> = items
        .into_iter()
        .map(|item| Mutex::new(Some(item)))
        .collect();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::default();
    let run = || -> Result<()> {
        loop {
            let i = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(i) else {
                return Ok(());
            };
            let item = item.lock().expect("nobody else has it").take();
            let result = work(item.context("an item is taken once")?);
            if result.is_err() {
                // Nobody begins another.
                next.store(items.len(), Relaxed);
            }
            results.lock().expect("no worker panics").push((i, result?));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..JOBS).map(|_| scope.spawn(run)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?)
    })?;
    let mut results = results.into_inner().expect("no worker panics");
    results.sort_by_key(|(i, _)| *i);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_ends_all() {
        let doubled = in_parallel((0..100).collect(), |i: u32| Ok(2 * i)).unwrap();
        assert_eq!(doubled, (0..100).map(|i| 2 * i).collect::<Vec<_>>());
        assert!(in_parallel((0..100).collect(), |i: u32| (i != 5)
            .then_some(i)
            .context("five"))
        .is_err());
    }

    #[test]
    fn a_test_is_of_its_name_and_of_its_modules() {
        for (test, is) in [
            ("a::b::c", true),
            ("a::b", true),
            ("a::b::", false),
            ("a::b::d", false),
        ] {
            assert_eq!(is_of("a::b::c", test), is, "{test}");
        }
        assert!(!is_of("a::bc", "a::b"));
    }

    #[test]
    fn a_line_that_was_cut_off_is_none() {
        assert_eq!(parse("00000000000000ff 7 hung"), Some((255, 7, End::Hung)));
        for line in ["", "ff", "ff 7", "ff 7 pas", "x 7 passed"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
