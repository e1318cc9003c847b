//! Python: pytest if it is configured or would find tests, else Django, tox or nox.

use super::{DetectedCommand, languages::has_section, root::DetectionFolder};

pub(super) fn detect_python_test(root: &DetectionFolder) -> Option<DetectedCommand> {
    let (runs, source) = pytest_configured(root)
        .map(|file| ("pytest", file.to_owned()))
        .or_else(|| find_django_runner(root))
        .or_else(|| pytest_would_find(root))
        .or_else(|| find_environment_runner(root))?;
    Some(DetectedCommand::new(in_environment(root, runs), source))
}

/// The file that configures pytest.
fn pytest_configured(root: &DetectionFolder) -> Option<&'static str> {
    let always = ["pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"];
    if let Some(file) = root.first(&always) {
        return Some(file);
    }
    let sections = [("pyproject.toml", "tool.pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")];
    let configured = sections
        .into_iter()
        .find(|(file, section)| root.text(file).is_some_and(|text| has_section(&text, section)));
    configured.map(|(file, _)| file).or_else(|| root.first(&["conftest.py"]))
}

fn find_django_runner(root: &DetectionFolder) -> Option<(&'static str, String)> {
    let manage = root.text("manage.py")?;
    manage.contains("django").then(|| ("manage.py test", "manage.py of Django".to_owned()))
}

/// Files in a Python project that pytest collects by name.
fn pytest_would_find(root: &DetectionFolder) -> Option<(&'static str, String)> {
    let project =
        root.first(&["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini"])?;
    let is_test = |name: &str| {
        name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
    };
    let here = root.names().iter().any(|name| is_test(name) && root.file(name));
    let folder = ["tests", "test"].into_iter().find(|folder| root.holds(folder, is_test));
    match (folder, here) {
        (Some(folder), _) => Some(("pytest", format!("{project} and tests in {folder}/"))),
        (None, true) => Some(("pytest", format!("{project} and tests beside it"))),
        (None, false) => None,
    }
}

fn find_environment_runner(root: &DetectionFolder) -> Option<(&'static str, String)> {
    let tox = root.text("tox.ini").is_some_and(|text| has_section(&text, "testenv"));
    if tox {
        return Some(("tox", "tox.ini".to_owned()));
    }
    root.file("noxfile.py").then(|| ("nox", "noxfile.py".to_owned()))
}

/// The command, run through the package manager of the project's lock file.
pub(super) fn in_environment(root: &DetectionFolder, runs: &str) -> String {
    // tox and nox create their own environments.
    if matches!(runs, "tox" | "nox") {
        return runs.to_owned();
    }
    let locks = [("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile", "pipenv")];
    let manager = locks.into_iter().find(|(lock, _)| root.lock(lock)).map(|(_, manager)| manager);
    match (manager, runs) {
        (Some(manager), tool) if !tool.starts_with("manage.py") => format!("{manager} run {tool}"),
        (Some(manager), script) => format!("{manager} run python {script}"),
        // Run as a module, pytest finds the project's packages and belongs to this Python version.
        (None, "pytest") => "python3 -m pytest".to_owned(),
        (None, script) if script.starts_with("manage.py") => format!("python3 {script}"),
        (None, tool) => tool.to_owned(),
    }
}
