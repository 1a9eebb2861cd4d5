// The tokenizer that a GGUF file carries, as the tokenizer's own description.
#pragma once

#include "runners/checkpoint/gguf.h"
#include "runners/text/tokenizer.h"

namespace asdbench {

/// Converts the `tokenizer.ggml.*` metadata (specs: targets, section 10.2).
///
/// Types 3 (control) and 4 (user-defined) become added tokens, special and not; type 5 (unused)
/// stays out, since no text leads to it and it stands for none. Nothing is prepended unless
/// `add_bos_token` says so or is absent for a Llama-3 vocabulary.
/// Errors: ModelError kUnsupported for another tokenizer model, pre-tokenizer or a prefix space;
/// kBadConfig for absent keys, lists that do not fit each other, and merges without one blank. What
/// a merge refers to is checked by Tokenizer.
TokenizerSpec gguf_tokenizer_spec(const GgufFile& file);

}  // namespace asdbench
