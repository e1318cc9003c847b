//! Renders the Markdown of agents. Their HTML is shown as text, and links lead only to web pages.

use cuegate_view::is_unsafe;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The longest text that is rendered, in bytes: a browser takes seconds to lay out the tables of a longer one.
pub(crate) const TEXT_MAX: usize = 96 << 10;

/// Renders a text as HTML without scripts, styles, images, frames, forms or handlers, whatever it contains.
pub(crate) fn render_html(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(TEXT_MAX)];
    let text = remove_unsafe_characters(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut ignored_links = Vec::new();
    let events = Parser::new_ext(&text, options).filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        // An image would be a request to another host. Its text remains.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        Event::Start(Tag::Link { dest_url, link_type, .. }) => {
            let is_page = ["https://", "http://"].iter().any(|scheme| dest_url.starts_with(scheme));
            ignored_links.push(!is_page);
            is_page.then_some({
                Event::Start(Tag::Link {
                    dest_url,
                    link_type,
                    title: CowStr::Borrowed(""),
                    id: CowStr::Borrowed(""),
                })
            })
        }
        Event::End(TagEnd::Link) => {
            (!ignored_links.pop().unwrap_or(true)).then_some(Event::End(TagEnd::Link))
        }
        // Names for anchors and classes could be those of the page.
        Event::Start(Tag::Heading { level, .. }) => {
            Some(Event::Start(Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() }))
        }
        // Also what an entity stands for.
        Event::Text(text) => Some(Event::Text(remove_unsafe_characters(&text).into())),
        Event::Code(text) => Some(Event::Code(remove_unsafe_characters(&text).into())),
        event => Some(event),
    });
    let mut rendered = String::new();
    html::push_html(&mut rendered, events);
    rendered.replace("<a href=", "<a rel=\"noopener noreferrer\" target=\"_blank\" href=")
}

/// Without characters that control how others are shown.
fn remove_unsafe_characters(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unsafe(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::render_html;

    #[test]
    fn markdown_is_rendered() {
        let html = render_html("# A\n\n- [x] *b* `c`\n\n| d |\n|---|\n| e |\n\n[f](https://f.test) ~~g~~\n");
        for part in ["<h1>A</h1>", "<em>b</em>", "<code>c</code>", "<td>e</td>", "<del>g</del>"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(
            html.contains("<a rel=\"noopener noreferrer\" target=\"_blank\" href=\"https://f.test\">f</a>")
        );
    }

    #[test]
    fn nothing_of_an_agent_is_active() {
        for (text, wanted) in [
            ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
            ("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n"),
            ("![pixel](https://evil.test/x.png)", "<p>pixel</p>\n"),
            ("[a](javascript:alert(1))", "<p>a</p>\n"),
            ("[a](JaVaScRiPt:alert(1))", "<p>a</p>\n"),
            ("[a](data:text/html,x)", "<p>a</p>\n"),
            ("[a](/api/v1/runs)", "<p>a</p>\n"),
            ("<javascript:alert(1)>", "<p>javascript:alert(1)</p>\n"),
            (
                "[a](https://e.test \"x\\\" onclick=alert(1)\")",
                "<p><a rel=\"noopener noreferrer\" target=\"_blank\" href=\"https://e.test\">a</a></p>\n",
            ),
            ("# a {#b .c onclick=d}", "<h1>a {#b .c onclick=d}</h1>\n"),
            (
                "```x\" onclick=\"y\n<b>\n```",
                "<pre><code class=\"language-x&quot;\">&lt;b&gt;\n</code></pre>\n",
            ),
            ("a\u{202e}b\u{1b}[31m", "<p>ab[31m</p>\n"),
            ("a&#x202e;b `c&#27;d`", "<p>ab <code>c&amp;#27;d</code></p>\n"),
            ("<style>*{display:none}</style>", "<p>&lt;style&gt;*{display:none}&lt;/style&gt;</p>\n"),
        ] {
            assert_eq!(render_html(text), wanted, "{text}");
        }
    }
}
