// Batched greedy decoding with recorded hidden states; one safetensors file a reply.
#include "runners/train/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "runners/checkpoint/safetensors_writer.h"
#include "runners/decoder.h"
#include "runners/kernels/half.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

template <typename Factory>
const Factory& factory_of(const std::vector<Factory>& table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Factory& f) { return f.name == name; });
  ASDBENCH_CHECK(found != table.end(), std::string(name) + " is built in");
  return *found;
}

void append_bf16(std::span<const float> values, std::vector<std::uint16_t>& out) {
  const std::size_t size = out.size();
  out.resize(size + values.size());
  std::transform(values.begin(), values.end(), out.begin() + static_cast<std::ptrdiff_t>(size),
                 kernels::float_to_bf16);
}

/// A request in flight with what it has recorded.
struct Job {
  const TrainingPrompt* prompt;
  Request request;
  TapRecorder::Rows rows;
};

void write_reply(const fs::path& file, const Job& job, const TapPlan& plan) {
  const std::span<const TokenId> tokens = job.request.history();
  const auto length = static_cast<std::int64_t>(tokens.size());
  const auto reply = static_cast<std::int64_t>(job.request.output().size());
  const std::int64_t prompt_tokens = length - reply;
  const auto hidden_bytes = [&](const std::vector<std::uint16_t>& rows, std::int64_t expected) {
    ASDBENCH_CHECK(static_cast<std::int64_t>(rows.size()) == expected * plan.hidden,
                   fmt::format("{} values for {} rows", rows.size(), expected));
    return std::as_bytes(std::span(rows));
  };
  std::vector<SafetensorsEntry> entries = {
      {"prompt_tokens", "I64", {1}, std::as_bytes(std::span(&prompt_tokens, 1))},
      {"tokens", "I32", {length}, std::as_bytes(tokens)}};
  for (std::size_t i = 0; i < plan.indices.size(); ++i) {
    entries.push_back({fmt::format("hidden.{}", plan.indices[i]),
                       "BF16",
                       {length - 1, plan.hidden},
                       hidden_bytes(job.rows.taps[i], length - 1)});
  }
  entries.push_back(
      {"hidden.final", "BF16", {reply, plan.hidden}, hidden_bytes(job.rows.final_hidden, reply)});
  write_safetensors(file, entries);
}

const SafetensorsEntry& entry_of(const SafetensorsFile& file, const std::string& name,
                                 std::string_view dtype, const std::vector<std::int64_t>& shape,
                                 const fs::path& path) {
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name == name && entry.dtype == dtype && entry.shape == shape) return entry;
  }
  throw DataError(
      fmt::format("{}: no tensor {} of {} [{}]\n  the file is not a reply kept for this drafter: "
                  "move it away and run again",
                  path.string(), name, dtype, fmt::join(shape, ", ")));
}

}  // namespace

TapPlan default_taps(const ModelConfig& config) {
  const std::int64_t layers = config.layers;
  TapPlan plan{.indices = {2, layers / 2, layers - 3}, .layers = layers, .hidden = config.hidden};
  std::sort(plan.indices.begin(), plan.indices.end());
  const bool distinct =
      std::adjacent_find(plan.indices.begin(), plan.indices.end()) == plan.indices.end() &&
      plan.indices.front() >= 0;
  if (!distinct) {
    throw ModelError(ModelFault::kUnsupported,
                     fmt::format("a target of {} layers has no three different layers 2, n / 2 and "
                                 "n - 3 to tap; expected 3 layers, or 7 or more",
                                 layers));
  }
  return plan;
}

TapRecorder::TapRecorder(TapPlan plan) : plan_(std::move(plan)) {}

HiddenTap TapRecorder::tap() {
  return [this](std::int64_t index, std::span<const float> values) { receive(index, values); };
}

TapRecorder::Rows TapRecorder::new_rows() const {
  Rows rows;
  rows.taps.resize(plan_.indices.size());
  return rows;
}

void TapRecorder::receive(std::int64_t index, std::span<const float> values) {
  if (owners_.empty()) return;
  const bool final_norm = index == plan_.layers + 1;
  const auto wanted = std::find(plan_.indices.begin(), plan_.indices.end(), index);
  if (!final_norm && wanted == plan_.indices.end()) return;
  const auto place = static_cast<std::size_t>(wanted - plan_.indices.begin());
  const auto buffer = [&](Rows& rows) -> std::vector<std::uint16_t>& {
    return final_norm ? rows.final_hidden : rows.taps[place];
  };
  if (owners_.size() == 1) return append_bf16(values, buffer(*owners_.front()));
  const auto width = static_cast<std::size_t>(plan_.hidden);
  ASDBENCH_CHECK(values.size() == owners_.size() * width, "one row for each request");
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    append_bf16(values.subspan(i * width, width), buffer(*owners_[i]));
  }
}

Reply Reply::open(const fs::path& file, const TrainingPrompt& prompt, const TapPlan& plan) {
  Reply reply;
  reply.file_ = std::make_shared<const SafetensorsFile>(SafetensorsFile::open(file));
  const auto entry = [&](const std::string& name, std::string_view dtype,
                         const std::vector<std::int64_t>& shape) -> const SafetensorsEntry& {
    return entry_of(*reply.file_, name, dtype, shape, file);
  };
  const auto prompt_tokens = static_cast<std::int64_t>(prompt.ids.size());
  std::memcpy(&reply.prompt_tokens_, entry("prompt_tokens", "I64", {1}).bytes.data(),
              sizeof reply.prompt_tokens_);
  const auto found = std::find_if(reply.file_->entries().begin(), reply.file_->entries().end(),
                                  [](const auto& each) { return each.name == "tokens"; });
  const std::int64_t length =
      found == reply.file_->entries().end() || found->shape.size() != 1 ? 0 : found->shape.front();
  const SafetensorsEntry& tokens = entry("tokens", "I32", {length});
  reply.tokens_.resize(static_cast<std::size_t>(length));
  if (length > 0) std::memcpy(reply.tokens_.data(), tokens.bytes.data(), tokens.bytes.size());
  if (reply.prompt_tokens_ != prompt_tokens || length <= prompt_tokens ||
      !std::equal(prompt.ids.begin(), prompt.ids.end(), reply.tokens_.begin())) {
    throw DataError(
        fmt::format("{}: the reply to another prompt than {}\n  move it away and run "
                    "again",
                    file.string(), prompt.id));
  }
  const auto rows = [&](const std::string& name, std::int64_t count) {
    return reinterpret_cast<const std::uint16_t*>(
        entry(name, "BF16", {count, plan.hidden}).bytes.data());
  };
  for (const std::int64_t index : plan.indices) {
    reply.taps_.push_back(rows(fmt::format("hidden.{}", index), length - 1));
  }
  reply.final_hidden_ = rows("hidden.final", length - prompt_tokens);
  return reply;
}

fs::path reply_file(const CorpusOptions& options, const TrainingPrompt& prompt) {
  return options.folder / (sha256_tokens(prompt.ids) + ".safetensors");
}

namespace {

/// The loop of generate_replies: slots that take the next prompt as soon as they are free.
class Generation {
 public:
  Generation(Target& target, TapRecorder& recorder, const CorpusOptions& options,
             const CorpusCallbacks& callbacks, std::int64_t longest_prompt)
      : recorder_(recorder),
        options_(options),
        callbacks_(callbacks),
        end_ids_(target.info().end_ids),
        drafter_(factory_of(drafter_factories(), "none")
                     .make(Params(), DrafterContext{.target = target})),
        verifier_(factory_of(verifier_factories(), "strict").make(Params())),
        decoder_(
            target, *drafter_, *verifier_,
            {.drafts = 0,
             .requests = options.batch,
             .positions = std::min(target.info().positions, longest_prompt + options.max_tokens)}),
        jobs_(static_cast<std::size_t>(options.batch)) {}

  /// False when it was interrupted.
  bool run(std::deque<const TrainingPrompt*> waiting, CorpusProgress progress) {
    waiting_ = std::move(waiting);
    progress_ = progress;
    while (!callbacks_.interrupted()) {
      for (std::size_t slot = 0; slot < jobs_.size(); ++slot) fill(slot);
      if (!pass()) return true;
    }
    return false;
  }

 private:
  void fill(std::size_t slot) {
    while (jobs_[slot] == nullptr && !waiting_.empty()) {
      const TrainingPrompt& prompt = *waiting_.front();
      waiting_.pop_front();
      jobs_[slot] = std::make_unique<Job>(Job{
          .prompt = &prompt,
          .request =
              Request(prompt.id, prompt.ids, {.max_tokens = options_.max_tokens}, end_ids_, Rng()),
          .rows = recorder_.new_rows()});
      Job& job = *jobs_[slot];
      job.request.slot = static_cast<std::int32_t>(slot);
      recorder_.set_owners({&job.rows});
      decoder_.start(job.request);
      if (job.request.finished()) finish(jobs_[slot]);
    }
  }

  /// False when no request is left.
  bool pass() {
    std::vector<Request*> live;
    std::vector<TapRecorder::Rows*> owners;
    for (const auto& job : jobs_) {
      if (job == nullptr) continue;
      live.push_back(&job->request);
      owners.push_back(&job->rows);
    }
    if (live.empty()) return false;
    recorder_.set_owners(std::move(owners));
    decoder_.pass(live);
    for (auto& job : jobs_) {
      if (job != nullptr && job->request.finished()) finish(job);
    }
    return true;
  }

  void finish(std::unique_ptr<Job>& job) {
    decoder_.finish(job->request);
    if (!job->request.error().empty()) {
      throw DataError(fmt::format("{}: {}", job->prompt->id, job->request.error()));
    }
    write_reply(reply_file(options_, *job->prompt), *job, recorder_.plan());
    ++progress_.done;
    progress_.tokens += static_cast<std::int64_t>(job->request.output().size());
    callbacks_.progress(progress_);
    job.reset();
  }

  TapRecorder& recorder_;
  const CorpusOptions& options_;
  const CorpusCallbacks& callbacks_;
  std::vector<TokenId> end_ids_;
  std::unique_ptr<Drafter> drafter_;
  std::unique_ptr<Verifier> verifier_;
  Decoder decoder_;
  std::vector<std::unique_ptr<Job>> jobs_;  // by slot
  std::deque<const TrainingPrompt*> waiting_;
  CorpusProgress progress_;
};

}  // namespace

bool generate_replies(Target& target, TapRecorder& recorder,
                      std::span<const TrainingPrompt> prompts, const CorpusOptions& options,
                      const CorpusCallbacks& callbacks) {
  CorpusProgress progress{
      .done = 0, .total = static_cast<std::int64_t>(prompts.size()), .tokens = 0};
  std::deque<const TrainingPrompt*> waiting;
  std::size_t longest = 1;
  for (const TrainingPrompt& prompt : prompts) {
    if (fs::exists(reply_file(options, prompt))) {
      ++progress.done;
    } else {
      waiting.push_back(&prompt);
      longest = std::max(longest, prompt.ids.size());
    }
  }
  callbacks.progress(progress);
  if (waiting.empty()) return true;
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) {
    throw DataError(
        fmt::format("{}: cannot be made: {}", options.folder.string(), error.message()));
  }
  return Generation(target, recorder, options, callbacks, static_cast<std::int64_t>(longest))
      .run(std::move(waiting), progress);
}

}  // namespace asdbench
