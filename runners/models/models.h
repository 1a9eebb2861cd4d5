// Targets by name or file: what the configuration calls `target`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/params.h"
#include "eval/core/sample.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/models/engine.h"
#include "runners/target.h"
#include "runners/text/chat.h"
#include "runners/text/tokenizer.h"

namespace asdbench {

/// A target with what is needed to talk to it. Built-in targets (toy, planted) have a tokenizer of
/// their own.
struct Model {
  std::unique_ptr<Target> target;
  std::shared_ptr<const Tokenizer> tokenizer;  // null for targets that take ids only
  std::optional<ChatFamily> chat;              // absent: ids only, or a raw byte vocabulary
  ChatOptions chat_options;
  std::string template_sha256;  // of the file's own chat template; "" when it has none
  std::vector<std::string> warnings;

  /// Prompt ids of a chat or a plain text; `rendered` (may be null) receives the text that they
  /// stand for. Targets that take ids only are given the bytes of the messages, modulo their
  /// vocabulary.
  std::vector<TokenId> prompt_ids(const Prompt& prompt, std::string* rendered) const;
  /// Text of an output, without the end token. Ids of a target without tokenizer become printable
  /// ASCII.
  std::string text(std::span<const TokenId> output) const;
};

/// Makes the target that `name` and `params` describe: "toy", "planted", a known model name, a
/// .gguf file, a folder with one, or a folder in HF's layout. Options of files: device (auto | cpu
/// | cuda), dtype (float32), engine (auto | native | torch), threads (0: one per core), activations
/// (float32 | bf16 | int8),
/// strict_template (refuse a chat template that is not known), thinking (Qwen3). `tap` receives the
/// hidden states of a file's target; built-in ones have none. ConfigError, ModelError, DeviceError.
Model make_model(const std::string& name, const Params& params,
                 const std::filesystem::path& models_dir, HiddenTap tap = {});

/// The file or folder that `name` means to make_model. ModelError when it is not there, or when the
/// folder holds no single checkpoint.
std::filesystem::path find_checkpoint(const std::string& name,
                                      const std::filesystem::path& models_dir);

/// The tokenizer that belongs to `name`: of a file or folder as in make_model, or a tokenizer.json
/// itself. ModelError.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& name,
                                                const std::filesystem::path& models_dir);

/// Bytes of weights that one step of `name` reads, from its file's header alone; nullopt for
/// built-in targets. ModelError.
std::optional<std::int64_t> step_bytes(const std::string& name,
                                       const std::filesystem::path& models_dir);

/// The target of a checkpoint alone, without tokenizer and template; `info` brings what the weights
/// do not say (name, sha256). ConfigError when this build lacks the engine; DeviceError.
LoadedTarget load_target(const Checkpoint& checkpoint, TargetInfo info,
                         const EngineOptions& options);

/// Names that make_model knows.
std::vector<std::string> known_models();

}  // namespace asdbench
