//! SVG graphs in a browser: texts stay inside their boxes and do not overlap.

use std::{path::PathBuf, process::Command};

use crate::support::{CUEGATE, Project, example};

/// What is measured: each text within its box, or within the picture where it has none, and off all texts of other boxes.
const MEASURE: &str = r#"<pre id="found"></pre><script>
const found = [], out = (file, what) => found.push(`${file}: ${what}`);
let texts = 0;
for (const place of document.querySelectorAll('div[data-file]')) {
  const file = place.dataset.file, picture = place.querySelector('svg'), all = picture.getBoundingClientRect();
  const boxed = [];
  for (const text of picture.querySelectorAll('text')) {
    texts += 1;
    const at = text.getBoundingClientRect(), group = text.parentElement;
    if (at.left < all.left || at.right > all.right || at.top < all.top || at.bottom > all.bottom)
      out(file, `outside: ${text.textContent}`);
    const box = group.querySelector(':scope > .shape, :scope > .behind')?.getBoundingClientRect();
    if (!box) continue;
    if (at.left < box.left - 0.5 || at.right > box.right + 0.5 || at.top < box.top - 3 || at.bottom > box.bottom + 3)
      out(file, `${at.width}×${at.height} passes ${box.width}×${box.height}: ${text.textContent}`);
    for (const [other, its, words] of boxed) {
      const wide = Math.min(at.right, its.right) - Math.max(at.left, its.left);
      const high = Math.min(at.bottom, its.bottom) - Math.max(at.top, its.top);
      if (other !== group && wide > 0.5 && high > 3) out(file, `${text.textContent} lies upon ${words}`);
    }
    boxed.push([group, at, text.textContent]);
  }
}
document.querySelectorAll('div').forEach(place => place.remove());
document.getElementById('found').textContent = `${texts} texts\n${found.join('\n')}\nend`;
</script>"#;

/// A headless browser. A test that needs one is skipped without it, with a note.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn browser() -> Option<&'static str> {
    const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|ran| ran.status.success());
    let found = NAMES.into_iter().find(is_there);
    if found.is_none() {
        eprintln!("skipped: there is no {}", NAMES.join(", "));
    }
    found
}

/// The graph of a definition, also of one with errors.
fn picture(project: &Project, path: &str) -> String {
    let ran = project.run(&["graph", path, "--format", "svg"]);
    assert!(ran.stdout.starts_with("<svg"), "{path}: {}", ran.stderr);
    ran.stdout
}

/// Unusual names and conditions.
fn hostile() -> String {
    const WORDS: [&str; 16] = [
        "WWWWMMMMWWWWMMMMWWWWMMMMWWWWMM",
        "OOOOOOOOOOOOOOOOOOOO QQQQQQQQQQQQQQ GGGGGGGGGGGGGGGG",
        "@@@@@@@@@@@@@@@@@@@@ %%%%%%%%%%%%%%%%% &&&&&&&&&&&",
        "実装が完了したのでレビューへ進みます。まだ問題があります。もう一度お願いします",
        "審査をもう一度行ってください",
        "검토를 다시 한 번 진행해 주세요 그리고 나서 계속하세요",
        "👩‍👩‍👧‍👦👩‍👩‍👧‍👦 🧪🧪🧪🧪🧪🧪🧪🧪🧪🧪🧪🧪 🇩🇪🇩🇪🇩🇪🇩🇪🇩🇪",
        "ơ̷̡͉̘̂̃́̂g̷͉̘̀́ǹ̷͉̘́ é́́́́é́́́́ Z̷̢̧̡̛̮̗̲̳̫̩̠̈́̅̌a̶̢̛l̸̨̛g̷̛̱o̵͇͗",
        "ЩЩЩЩЩЩЩЩЩЩЩЩЩЩЩЩЩЩЩЩ ЖЖЖЖЖЖЖЖЖЖЖЖ щщщщщщщщщщщщщщщщщщщщ",
        "————————————————————— ………………………………………… →→→→→→→→→→→→→→→",
        "⸻⸻⸻⸻⸻ ﷽﷽﷽﷽ 𒐫𒐫𒐫𒐫𒐫 ꧅꧅꧅꧅",
        "㈱㍿㌔㌘ ＷＷＷＷＷＷＷＷＷＷＷＷ ｱｲｳｴｵｶｷｸｹｺｻｼｽｾｿﾀﾁﾂﾃﾄ",
        "ᠮᠣᠩᠭᠣᠯ ཨོཾ་མ་ཎི་པདྨེ་ཧཱུྃ ကကကကကကကကကကကကကကကက",
        "مراجعة الكود مرة أخرى من فضلك بدقة",
        "ÆÆÆÆÆÆÆÆÆÆÆÆÆÆÆÆÆÆÆÆ ŒŒŒŒŒŒŒŒŒŒŒŒŒŒ ΩΩΩΩΩΩΩΩΩΩΩΩΩΩΩΩΩΩ",
        "a\u{202e}b\u{202c}c mmmmmmmmmmmmmmmmmmmmmm wwwwwwwwwwwwwwwwwwwww",
    ];
    let mut text = format!("name: \"{}\"\nmax_iterations: 9\nmovements:\n", WORDS[0].repeat(4));
    for (at, words) in WORDS.iter().enumerate() {
        let (next, back) = ((at + 1) % WORDS.len(), at * 7 % WORDS.len());
        let (next, back) = (WORDS[next], WORDS[back]);
        text.push_str(&format!(
            "  - name: \"{words}\"\n    instruction_template: do it\n    edit: false\n    rules:\n      - condition: \
             \"{words}\"\n        next: \"{next}\"\n      - condition: \"{back} {words}\"\n        next: \
             \"{back}\"\n      - condition: done\n        next: COMPLETE\n"
        ));
    }
    text
}

/// All pictures that there are: of what `init` writes, of the example, of real definitions and of hostile ones.
fn pictures() -> Vec<(String, String)> {
    let project = Project::example();
    let mut found = vec![("the example".to_owned(), picture(&project, "fixer"))];
    for starter in ["minimal-takt", "develop", "test-first", "review-only", "research"] {
        let project = Project::empty();
        assert_eq!(project.run(&["init", starter]).code, 0, "{starter}");
        found.push((starter.to_owned(), picture(&project, starter)));
    }
    let project = Project::empty();
    project.write("hostile.yaml", &hostile());
    found.push(("hostile".to_owned(), picture(&project, "hostile.yaml")));
    let given = std::env::var_os("CUEGATE_SHARED").map(PathBuf::from);
    let corpora = given.unwrap_or_else(|| example().join("../../../shared")).join("corpora");
    for path in [
        "takt/en/pieces/default.yaml",
        "takt/en/pieces/magi.yaml",
        "takt/en/pieces/review-only.yaml",
        "climpt/closing/iterator",
        "climpt/complete/iterator",
    ] {
        let path = corpora.join(path);
        if path.exists() {
            let path = path.display().to_string();
            found.push((path.clone(), picture(&Project::empty(), &path)));
        }
    }
    found
}

#[test]
fn graph_texts_stay_inside_their_boxes() {
    let Some(browser) = browser() else { return };
    let project = Project::empty();
    let places: String =
        pictures().iter().map(|(name, svg)| format!("<div data-file=\"{name}\">{svg}</div>\n")).collect();
    project.write("page.html", &format!("<!doctype html><meta charset=\"utf-8\"><body>{places}{MEASURE}"));
    let page = format!("file://{}", project.path().join("page.html").display());
    let data = format!("--user-data-dir={}", project.path().join("browser").display());
    // Nothing is contacted: the page is a file, and no name leads anywhere.
    let ran = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", &data, "--dump-dom", &page])
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&ran.stdout);
    let (_, found) = shown.split_once("<pre id=\"found\">").expect("the page is shown");
    let (found, _) = found.split_once("\nend</pre>").expect("all of it is measured");
    let (texts, faults) = found.split_once('\n').unwrap_or_default();
    let texts: usize = texts.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or_default();
    assert!(texts > 150, "{CUEGATE}: {texts} texts");
    assert_eq!(faults, "", "of {texts} texts");
}
