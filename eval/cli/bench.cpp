// asdbench bench: how long a model's steps take here, beside what the memory would allow.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/core/json.h"
#include "eval/report/table.h"
#include "runners/kernels/isa.h"
#include "runners/kernels/read_rate.h"
#include "runners/models/models.h"

namespace asdbench::cli {
namespace {

struct BenchOptions {
  std::string model = "smollm2-135m";
  std::string engine = "auto";
  std::string activations = "float32";
  std::int32_t threads = 0;
  std::vector<std::int32_t> rows = {1, 2, 4, 8, 16};
  std::int32_t prompt = 512;
  double seconds = 1.0;
  bool json = false;
};

// Longer than any cache; every step is timed behind a prompt of this length.
constexpr std::int64_t kReadBytes = std::int64_t{512} << 20;
constexpr std::int32_t kStepPrompt = 64;
constexpr std::int32_t kMaxSteps = 400;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// MiB of memory that the process holds now, of which none is shared with a file; nullopt where the
/// system does not say.
std::optional<double> resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  }
  return std::nullopt;
}

/// A request over ids that mean nothing, spread over the vocabulary.
std::unique_ptr<Request> make_request(std::int64_t vocab, std::int32_t prompt) {
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < prompt; ++i) {
    ids.push_back(static_cast<TokenId>((i * 7919 + 11) % vocab));
  }
  return std::make_unique<Request>(
      "bench", std::move(ids), RequestLimits{.max_tokens = kMaxSteps + 1, .ignore_end_ids = true},
      std::span<const TokenId>(), Rng());
}

/// The id that continues the first row of a step; ModelError when its logits are not numbers.
TokenId chosen(const StepView& view) {
  if (view.scores.bad[0] != 0) {
    throw ModelError(
        ModelFault::kUnsupported,
        "bench: the model's logits are not finite\n  compare the file with its SHA-256");
  }
  return view.scores.choice[0];
}

/// Seconds of each step over `rows` rows, drafts thrown away, for about `seconds`.
std::vector<double> time_steps(Target& target, std::int32_t rows, double seconds) {
  // A model with few positions is timed over fewer steps; one without room for any is refused
  // below.
  const auto most = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(target.info().positions - kStepPrompt - rows - 1, 2, kMaxSteps));
  const std::int64_t positions = kStepPrompt + most + rows + 1;
  target.reserve({.requests = 1, .drafts = rows - 1, .positions = positions},
                 /*host_logits=*/false);
  const auto request = make_request(target.info().vocab, kStepPrompt);
  request->commit_first(chosen(target.prefill(*request)), positions);
  Request* live[] = {request.get()};
  std::vector<double> times;
  const auto begin = std::chrono::steady_clock::now();
  for (std::int32_t step = 0; step < most && !interrupted(); ++step) {
    if (step > 4 && seconds_since(begin) > seconds) break;
    request->draft.assign(static_cast<std::size_t>(rows - 1), request->pending());
    const auto start = std::chrono::steady_clock::now();
    Kept kept;
    kept.target_token = true;
    kept.tokens[0] = chosen(target.forward(live));
    target.keep(*request, 0);
    if (step > 0) times.push_back(seconds_since(start));  // the first allocates
    request->commit(kept, Decision());
  }
  target.release(*request);
  return times;
}

std::vector<double> time_prefills(Target& target, std::int32_t prompt, double seconds) {
  target.reserve({.requests = 1, .drafts = 0, .positions = prompt + 2}, /*host_logits=*/false);
  const auto request = make_request(target.info().vocab, prompt);
  std::vector<double> times;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2 || (i < kMaxSteps && seconds_since(begin) < seconds); ++i) {
    if (interrupted()) break;
    const auto start = std::chrono::steady_clock::now();
    target.prefill(*request);
    if (i > 0) times.push_back(seconds_since(start));
    target.release(*request);
  }
  return times;
}

struct Timed {
  std::string work;
  std::int32_t tokens;  // rows
  bool is_step;
  std::vector<double> times;
};

/// One line: median and fastest in ms, rows a second, and for a step what the memory would take for
/// the weights over what it took.
std::vector<std::string> line_of(const Timed& timed, std::optional<std::int64_t> bytes,
                                 double rate) {
  const double middle = median(timed.times);
  const double fastest = *std::min_element(timed.times.begin(), timed.times.end());
  const bool has_roof = timed.is_step && bytes;
  return {
      timed.work, decimal(1e3 * middle, 2), decimal(1e3 * fastest, 2),
      decimal(timed.tokens / middle, 0),
      has_roof ? percent(static_cast<double>(*bytes) / rate / fastest) : std::string(kUndefined)};
}

ExitCode bench(const BenchOptions& options) {
  Params params("bench", {});
  // Built-in targets take no others.
  params.set("device", "cpu", {});
  if (options.engine != "auto") params.set("engine", options.engine, {});
  if (options.threads != 0) params.set("threads", std::to_string(options.threads), {});
  if (options.activations != "float32") params.set("activations", options.activations, {});
  const Model model = make_model(options.model, params, default_paths().models);
  params.refuse_unread();
  Target& target = *model.target;
  const TargetInfo info = target.info();
  const std::optional<std::int64_t> bytes = step_bytes(options.model, default_paths().models);
  for (const std::string& warning : model.warnings) note("warning: " + warning);

  std::vector<Timed> all;
  all.push_back({fmt::format("prefill of {}", options.prompt), options.prompt, false,
                 time_prefills(target, options.prompt, options.seconds)});
  const std::optional<double> resident = resident_mib();  // before the buffer of the read rate
  std::unique_ptr<kernels::Pool> own_pool;
  if (options.threads > 0) own_pool = std::make_unique<kernels::Pool>(options.threads);
  kernels::Pool& pool = own_pool ? *own_pool : kernels::Pool::process();
  const kernels::ReadRate memory(kReadBytes);
  double rate = memory.measure(pool);
  for (const std::int32_t rows : options.rows) {
    all.push_back({fmt::format("step, {} row{}", rows, rows == 1 ? "" : "s"), rows, true,
                   time_steps(target, rows, options.seconds)});
    rate = std::max(rate, memory.measure(pool));
  }
  if (interrupted()) return ExitCode::kInterrupted;

  const std::string engine = fmt::format("{} ({}), engine {}, {} threads, {}, activations {}",
                                         info.name, info.weight_dtype, info.engine, pool.threads(),
                                         name_of(kernels::active_isa()), info.activations);
  if (options.json) {
    Json lines = Json::array();
    for (const Timed& timed : all) {
      lines.push_back({{"work", timed.work},
                       {"rows", timed.tokens},
                       {"median_s", median(timed.times)},
                       {"fastest_s", *std::min_element(timed.times.begin(), timed.times.end())},
                       {"times", timed.times.size()}});
    }
    print(Json({{"model", info.name},
                {"engine", info.engine},
                {"instruction_set", name_of(kernels::active_isa())},
                {"threads", pool.threads()},
                {"activations", info.activations},
                {"weight_bytes", bytes ? Json(*bytes) : Json(nullptr)},
                {"read_bytes_per_s", rate},
                {"resident_mib", resident ? Json(*resident) : Json(nullptr)},
                {"work", lines}})
              .dump(2) +
          "\n");
    return ExitCode::kPass;
  }
  Table table{.title = engine,
              .columns = {{"work"},
                          {"median ms", Align::kRight},
                          {"fastest ms", Align::kRight},
                          {"tokens/s", Align::kRight},
                          {"of the roofline", Align::kRight}},
              .rows = {}};
  for (const Timed& timed : all) table.rows.push_back(line_of(timed, bytes, rate));
  print(to_terminal(table));
  print(fmt::format(
      "\nSteps follow a prompt of {} tokens. The roofline is the time that {} MB of weights take "
      "at the {:.1f} GB/s\nthat the same threads read in this run; it is compared with the fastest "
      "step. Resident after the prefill: {} MiB.\n",
      kStepPrompt, bytes ? decimal(static_cast<double>(*bytes) / 1e6, 1) : std::string(kUndefined),
      rate / 1e9, decimal(resident, 0)));
  return ExitCode::kPass;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "Time the steps of a model on this CPU, beside the rate of its memory");
  command->add_option("model", options->model, "A known name, a file or a folder")
      ->capture_default_str();
  command->add_option("--engine", options->engine, "native, torch or auto")
      ->check(CLI::IsMember({"native", "torch", "auto"}))
      ->capture_default_str();
  command->add_option("--activations", options->activations, "What the native engine rounds to")
      ->check(CLI::IsMember({"float32", "bf16", "int8"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--rows", options->rows, "Rows of the steps, such as 1,2,4,8,16")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--prompt", options->prompt, "Tokens of the prefill")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "About how long each work is repeated")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Machine-readable output");
  command->footer("Example:\n  asdbench bench smollm2-135m --rows 1,8 --threads 2");
  command->callback([options, &action] { action = [options] { return bench(*options); }; });
}

}  // namespace asdbench::cli
