//! Checks model names.

use cuegate_flow::diagnostics::Diagnostic;

use crate::codes;
use crate::suggest::{find_nearest_name, quote_names};
use crate::values::json::Fields;

/// The models that the format names (the runner reference).
const MODELS: [&str; 3] = ["sonnet", "opus", "haiku"];

/// The model that a key names. Any other name is passed to the provider unchanged, because users write the names of
/// their own provider. It is still reported, because it may be a typing error.
pub(crate) fn model_of<'j>(fields: &Fields<'j, '_>, key: &'static str) -> Option<&'j str> {
    let model = fields.filled(key)?;
    if !MODELS.contains(&model.text) {
        let message = format!("`{}` in `{key}` is none of the models that the format names", model.text);
        let hint = match find_nearest_name(model.text, MODELS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of {}, or an agent that knows it", quote_names(&MODELS)),
        };
        fields.push(Diagnostic::warning(codes::UNKNOWN_MODEL, model.span, message).hint(hint));
    }
    Some(model.text)
}
