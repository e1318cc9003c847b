//! The declared parameters of a definition as options of `run`.

use std::{collections::BTreeMap, ffi::OsString};

use clap::{Arg, ArgAction, ArgMatches, Command};
use cuegate_flow::model::{Flow, Param, ParamType};
use cuegate_formats::RunSettings;

use crate::Failure;

/// The words after one of these verbs that can name the definition: all words that are not options.
pub(super) fn find_path_candidates(args: &[OsString], verbs: &[&str]) -> Vec<String> {
    let words: Vec<String> = args.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if !words.first().is_some_and(|verb| verbs.contains(&verb.as_str())) {
        return Vec::new();
    }
    words.into_iter().skip(1).filter(|word| !word.starts_with('-')).collect()
}

/// The names given with `--set`; they count as declared parameters.
pub(super) fn set_names(args: &[OsString]) -> Vec<String> {
    let words: Vec<String> = args.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let apart = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair[1].as_str());
    let joined = words.iter().filter_map(|word| word.strip_prefix("--set="));
    apart.chain(joined).filter_map(|pair| pair.split_once('=')).map(|(name, _)| name.to_owned()).collect()
}

/// The clap id of a parameter's option.
fn arg_id_of_param(param: &Param) -> String {
    format!("param {}", param.name)
}

/// The option's name without dashes, if it is valid and not taken.
fn option_name_of_param(param: &Param, taken: &[String]) -> Option<String> {
    let long = param.flag.strip_prefix("--")?;
    let usable = !long.is_empty() && !long.contains(|c: char| c.is_whitespace() || c == '=');
    (usable && !taken.iter().any(|own| own == long)).then(|| long.to_owned())
}

/// Rewrites `--flag true` and `--flag false` of boolean parameters to `--flag=true` and `--flag=false`: a boolean flag
/// must not consume any other following word.
pub(super) fn join_boolean_flags(args: &[OsString], params: &[Param]) -> Vec<OsString> {
    let is_boolean = |word: &OsString| {
        params
            .iter()
            .any(|param| param.kind == ParamType::Boolean && *word == *param.flag && *param.flag != *"")
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(args.len());
    let mut open = true;
    for word in args {
        open &= word != "--";
        match joined.last_mut() {
            Some(flag) if open && is_boolean(flag) && (word == "true" || word == "false") => {
                flag.push("=");
                flag.push(word);
            }
            _ => joined.push(word.clone()),
        }
    }
    joined
}

/// Adds an option for each parameter that can have one, and the definition's title and description to the help text.
pub(super) fn add_param_options(command: Command, params: &[Param], settings: &RunSettings) -> Command {
    let global: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    command.mut_subcommand("run", |mut run| {
        let about = match settings.description.trim() {
            "" => format!("Run {}", settings.title),
            description => format!("Run {}: {description}", settings.title),
        };
        run = run.about(about.clone()).long_about(about);
        let mut taken: Vec<String> =
            run.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
        taken.extend(["help".to_owned(), "version".to_owned()]);
        taken.extend(global);
        for param in params {
            let Some(long) = option_name_of_param(param, &taken) else { continue };
            taken.push(long.clone());
            let mut arg = Arg::new(arg_id_of_param(param))
                .long(long)
                .help(param.description.to_string())
                .help_heading("Parameters of the definition")
                .value_name(match param.kind {
                    ParamType::Text => "TEXT",
                    ParamType::Number => "NUMBER",
                    ParamType::Boolean => "true|false",
                    ParamType::List => "TEXT,…",
                })
                .action(match param.kind {
                    ParamType::List => ArgAction::Append,
                    ParamType::Text | ParamType::Number | ParamType::Boolean => ArgAction::Set,
                })
                .allow_negative_numbers(param.kind == ParamType::Number);
            if param.kind == ParamType::Boolean {
                arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
            }
            run = run.arg(arg);
        }
        run
    })
}

/// The values of all parameters, with defaults.
///
/// # Errors
/// When a value is of the wrong kind, a required one is missing, or `--set` is not `NAME=VALUE`.
pub(crate) fn collect_param_values(
    flow: &Flow,
    matches: Option<&ArgMatches>,
    set: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut given = BTreeMap::new();
    for pair in set {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Failure::usage(
                format!("`--set {pair}` is not `NAME=VALUE`"),
                "write `--set NAME=VALUE`",
            ));
        };
        match flow.params.iter().find(|param| is_same_param(&param.name, name)) {
            Some(param) => {
                given.insert(param.name.to_string(), value.to_owned());
            }
            None => {
                given.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    for param in &flow.params {
        let flag = matches
            .and_then(|matches| matches.try_get_many::<String>(&arg_id_of_param(param)).ok().flatten());
        if let Some(values) = flag {
            let values: Vec<&str> = values.map(String::as_str).collect();
            given.insert(param.name.to_string(), values.join(","));
        } else if let (Some(default), false) = (&param.default, given.contains_key(&*param.name)) {
            given.insert(param.name.to_string(), default.to_string());
        }
    }
    for param in flow.params.iter() {
        match given.get(&*param.name) {
            Some(value) if matches.is_some() => {
                check_param_value(param, value, &format!("{} VALUE", param.flag))?
            }
            // Without a command line, parameters have no flags.
            Some(value) => check_param_value(param, value, &format!("--set {}=VALUE", param.name))?,
            None if param.required => {
                return Err(Failure::usage(
                    format!("parameter `{}` is required: {}", param.name, param.description),
                    format!("give it with `{} VALUE` or `--set {}=VALUE`", param.flag, param.name),
                ));
            }
            None => {}
        }
    }
    Ok(given)
}

/// Whether two spellings name the same parameter: `iterateMax` and `iterate-max` do.
pub(crate) fn is_same_param(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    a == b || plain(a) == plain(b)
}

/// Checks a value against the type and rule of its parameter; `way` is the option that the hint names.
///
/// # Errors
/// When the value has the wrong type or breaks the parameter's rule.
pub(super) fn check_param_value(param: &Param, value: &str, way: &str) -> Result<(), Failure> {
    right_kind(param, value, way)?;
    match param.rule.complaint(value) {
        None => Ok(()),
        Some(why) => Err(Failure::usage(
            format!("the value `{value}` of `{}` {why}", param.name),
            format!("give another value with `{way}`"),
        )),
    }
}

fn right_kind(param: &Param, value: &str, way: &str) -> Result<(), Failure> {
    let (fits, kind) = match param.kind {
        ParamType::Text | ParamType::List => (true, "text"),
        ParamType::Number => (value.parse::<f64>().is_ok_and(f64::is_finite), "a number"),
        ParamType::Boolean => (matches!(value, "true" | "false"), "`true` or `false`"),
    };
    if fits {
        return Ok(());
    }
    Err(Failure::usage(
        format!("`{}` is {kind}, not `{value}`", param.name),
        format!("give another value with `{way}`"),
    ))
}
