// Conformance of drafters: recorded rounds of greedy chain speculation, and folders to be refused.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "eval/cli/conformance/conformance.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/checkpoint/mapped_file.h"
#include "runners/checkpoint/safetensors.h"
#include "runners/decoder.h"
#include "runners/drafters/common/block_drafter.h"
#include "runners/drafters/common/fitted_drafter.h"
#include "runners/models/models.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

// Tolerances of the fixtures (their README).
constexpr double kLogit = 1e-3;
constexpr double kConfidence = 1e-4;
constexpr double kNearTie = 1e-3;

Json read_json(const fs::path& path) {
  const MappedFile file(path);
  return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

void check_fields(const Json& entry, const std::set<std::string>& known, const std::string& id,
                  ConformanceReport& report) {
  for (const auto& [field, value] : entry.items()) {
    if (!known.contains(field)) report.fail(id, "known fields only", "field \"" + field + "\"");
  }
}

std::vector<TokenId> ids_of(const Json& list) { return list.get<std::vector<TokenId>>(); }

/// "" when all values agree within `allowed`, else the first that does not.
std::string difference(std::span<const float> got, std::span<const float> expected,
                       double allowed) {
  if (got.size() != expected.size()) {
    return fmt::format("{} values instead of {}", got.size(), expected.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i])) <= allowed)) {
      return fmt::format("value {}: {} instead of {}", i, got[i], expected[i]);
    }
  }
  return "";
}

// ---- what a pass did

struct Round {
  std::vector<std::vector<float>> draft_rows;   // [K][vocab]
  std::vector<std::vector<float>> target_rows;  // [K + 1][vocab]
  std::vector<float> confidence;
};

/// The strict rule, but that drafts of given places are accepted whatever the target chose. Keeps
/// the rows that it was shown.
class ForcedRule final : public Verifier {
 public:
  VerifierInfo info() const override {
    return {.name = "forced", .needs_draft_logits = true, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    seen_ = {};
    for (std::int64_t i = 0; i < block.target.rows; ++i) {
      const auto row = block.target.row(i);
      seen_.target_rows.emplace_back(row.begin(), row.end());
    }
    for (std::size_t i = 0; i < block.draft.size(); ++i) {
      const auto row = block.draft_logits->row(static_cast<std::int64_t>(i));
      seen_.draft_rows.emplace_back(row.begin(), row.end());
    }
    Decision decision;
    const auto drafts = static_cast<std::int32_t>(block.draft.size());
    for (; decision.accepted < drafts; ++decision.accepted) {
      const auto at = static_cast<std::size_t>(decision.accepted);
      const bool matches = block.draft[at] == block.scores.choice[at];
      if (!matches && !forced_.contains(decision.accepted)) break;
      if (!matches) {
        decision.exceptions.push_back({.position = decision.accepted,
                                       .draft = block.draft[at],
                                       .choice = block.scores.choice[at]});
      }
    }
    decision.target_token = block.scores.choice[static_cast<std::size_t>(decision.accepted)];
    return decision;
  }

  void force(std::set<std::int32_t> places) { forced_ = std::move(places); }
  const Round& seen() const { return seen_; }

 private:
  std::set<std::int32_t> forced_;  // places in the block, from 0
  mutable Round seen_;
};

/// Passes everything on to a target, and keeps the hidden states on their way to the drafter.
class ListenedTarget final : public Target, public HiddenListener {
 public:
  explicit ListenedTarget(Target& target) : target_(target) {}
  TargetInfo info() const override { return target_.info(); }
  void listen(const HiddenSelection& selection, HiddenListener* listener) override {
    drafter_ = listener;
    width_ = static_cast<std::int64_t>(selection.taps.size());
    target_.listen(selection, listener == nullptr ? nullptr : this);
  }
  void reserve(const BatchLimits& limits, bool host_logits) override {
    target_.reserve(limits, host_logits);
  }
  StepView prefill(const Request& request) override {
    hidden.clear();
    return target_.prefill(request);
  }
  StepView forward(std::span<Request* const> live) override {
    hidden.clear();
    return target_.forward(live);
  }
  void keep(const Request& request, std::int32_t drafts) override { target_.keep(request, drafts); }
  void release(const Request& request) override { target_.release(request); }

  void on_taps(const Request& request, std::int64_t position, std::int64_t rows,
               const float* data) override {
    record(rows, data, width_ * hidden_size);
    drafter_->on_taps(request, position, rows, data);
  }
  void on_final_norm(const Request& request, std::int64_t position, std::int64_t rows,
                     const float* data) override {
    record(rows, data, hidden_size);
    drafter_->on_final_norm(request, position, rows, data);
  }

  std::int64_t hidden_size = 0;
  std::vector<float> hidden;  // of the last call; empty when it lies on a device

 private:
  void record(std::int64_t rows, const float* data, std::int64_t width) {
    if (target_.info().device != "cpu") return;
    hidden.insert(hidden.end(), data, data + rows * width);
  }

  Target& target_;
  HiddenListener* drafter_ = nullptr;
  std::int64_t width_ = 0;
};

// ---- a folder with golden.json

class DrafterCase {
 public:
  DrafterCase(const fs::path& folder, const Json& golden, const ConformanceOptions& options,
              ConformanceReport& report)
      : folder_(folder),
        golden_(golden),
        values_(SafetensorsFile::open(folder / "golden.safetensors")),
        report_(report),
        name_(folder.filename().string()) {
    const auto checkpoint = open_checkpoint(folder / golden.at("target").get<std::string>());
    EngineOptions engine;
    if (!options.engine.empty()) engine.engine = options.engine;
    engine.device = options.device;
    target_ = load_target(*checkpoint, {.name = name_}, engine).target;
    hidden_size_ = checkpoint->config().hidden;
    const auto drafter = open_drafter(folder, pickle_reader());
    target_ids_ = drafter->target_ids();
    report_.expect(name_ + " kind", golden.at("kind") == name_of(drafter->drafter().method),
                   golden.at("kind"), std::string(name_of(drafter->drafter().method)));
    const std::vector<std::int64_t> taps = fit_drafter(*drafter, checkpoint->config());
    if (golden.contains("taps_R")) {
      report_.expect(name_ + " taps_R", golden.at("taps_R") == Json(taps),
                     golden.at("taps_R").dump(), Json(taps).dump());
    }
  }

  void run() {
    for (const Json& run : golden_.at("runs")) {
      const std::string id = name_ + " " + run.at("name").get<std::string>();
      check_fields(run,
                   {"name", "prompt", "K", "block_length", "confidence_threshold", "stop_ids",
                    "prefill", "output", "mean_accepted", "rounds"},
                   id, report_);
      try {
        check_run(run, id);
      } catch (const Error& error) {
        report_.fail(id, "a run", error.what());
      }
    }
  }

 private:
  std::unique_ptr<Drafter> make(const Json& run) {
    const auto kind = golden_.at("kind").get<std::string>();
    Params params(kind, {.file = name_});
    params.set("path", folder_.string(), {});
    const Json& drafts = run.contains("K") ? run.at("K") : golden_.at("K");
    params.set("K", drafts.dump(), {});
    if (run.contains("block_length")) params.set("block", run.at("block_length").dump(), {});
    if (run.contains("confidence_threshold")) {
      params.set("confidence", run.at("confidence_threshold").dump(), {});
    }
    for (const DrafterFactory& factory : drafter_factories()) {
      if (factory.name != kind) continue;
      auto drafter = factory.make(params, {*target_});
      params.refuse_unread();
      return drafter;
    }
    throw ConfigError("no drafter " + kind);
  }

  void check_run(const Json& run, const std::string& id) {
    const std::unique_ptr<Drafter> drafter = make(run);
    const auto output = ids_of(run.at("output"));
    std::vector<TokenId> ends;
    if (run.contains("stop_ids")) ends = ids_of(run.at("stop_ids"));
    std::sort(ends.begin(), ends.end());
    ListenedTarget target(*target_);
    target.hidden_size = hidden_size_;
    ForcedRule rule;
    const std::int32_t drafts = drafter->info().drafts;
    Decoder decoder(target, *drafter, rule,
                    {.drafts = drafts, .requests = 1, .positions = target.info().positions});
    Request request(id, ids_of(run.at("prompt")),
                    {.max_tokens = static_cast<std::int32_t>(output.size())}, ends, Rng());
    decoder.start(request);
    check_prefill(run, id, rule.seen(), request);
    const bool has_arrays = run.at("name") == "strict";
    if (has_arrays) expect_hidden(id, "prompt", target.hidden);

    const auto* block = dynamic_cast<const BlockDrafter*>(drafter.get());
    std::size_t number = 0;
    for (const Json& expected : run.at("rounds")) {
      const std::string round = fmt::format("{} round {}", id, number);
      if (request.finished()) {
        report_.fail(round, "a round", "finished: " + request.error());
        break;
      }
      std::set<std::int32_t> forced;
      for (const Json& each : expected.value("forced", Json::array())) {
        forced.insert(each.at("draft_index").get<std::int32_t>() - 1);
      }
      rule.force(std::move(forced));
      const auto before = request.history().size();
      Request* const live[] = {&request};
      decoder.pass(live);
      Round seen = rule.seen();
      if (block != nullptr) {
        const auto confidence = block->confidences(request.slot);
        seen.confidence.assign(confidence.begin(), confidence.end());
      }
      check_round(expected, round, request, before, seen);
      if (has_arrays && number < 2) expect_rows(id, number, seen);
      if (has_arrays && number == 0) expect_hidden(id, "round0", target.hidden);
      ++number;
    }
    const auto got = request.output();
    report_.expect(id + " output", std::equal(got.begin(), got.end(), output.begin(), output.end()),
                   fmt::format("{}", fmt::join(output, " ")),
                   fmt::format("{}", fmt::join(got, " ")));
    expect_mean(run, id, request);
    decoder.finish(request);
  }

  void check_prefill(const Json& run, const std::string& id, const Round& seen,
                     const Request& request) {
    const Json& prefill = run.at("prefill");
    report_.expect(id + " prefill", prefill.at("token") == request.pending(),
                   prefill.at("token").dump(), std::to_string(request.pending()));
    expect_row(id + " prefill", seen.target_rows.at(0), prefill.at("top"), prefill.at("gap"),
               prefill.at("second"));
  }

  void expect_mean(const Json& run, const std::string& id, const Request& request) {
    double sum = 0;
    for (const PassRecord& pass : request.passes()) sum += pass.accepted;
    const double mean =
        sum / static_cast<double>(std::max<std::size_t>(request.passes().size(), 1));
    report_.expect(id + " mean_accepted",
                   std::abs(mean - run.at("mean_accepted").get<double>()) < 1e-4,
                   run.at("mean_accepted").dump(), fmt::format("{}", mean));
  }

  void check_round(const Json& expected, const std::string& id, const Request& request,
                   std::size_t before, const Round& seen) {
    check_fields(expected,
                 {"s", "pending", "drafted", "draft_second", "draft_gap", "draft_top", "confidence",
                  "block_drafted", "target_argmax", "target_second", "target_gap", "target_top",
                  "forced", "accepted", "bonus", "committed", "ended_by_stop"},
                 id, report_);
    const auto expect = [&](const char* what, const Json& wanted, const Json& got) {
      report_.expect(fmt::format("{} {}", id, what), wanted == got, wanted.dump(), got.dump());
    };
    const std::span<const TokenId> history = request.history();
    expect("s", expected.at("s"), before - 1);
    expect("pending", expected.at("pending"), history[before - 1]);
    expect("drafted", expected.at("drafted"), request.draft);
    const PassRecord& pass = request.passes().back();
    expect("accepted", expected.at("accepted"), pass.accepted);
    const std::vector<TokenId> committed(history.begin() + static_cast<std::ptrdiff_t>(before),
                                         history.end());
    expect("committed", expected.at("committed"), committed);
    expect("ended_by_stop", expected.value("ended_by_stop", false),
           request.finish() == FinishReason::kEos);
    const Json bonus = pass.committed > pass.kept ? Json(history.back()) : Json();
    expect("bonus", expected.at("bonus"), bonus);
    for (std::size_t i = 0; i < seen.draft_rows.size(); ++i) {
      expect_row(fmt::format("{} draft {}", id, i), seen.draft_rows[i],
                 expected.at("draft_top").at(i), expected.at("draft_gap").at(i),
                 expected.at("draft_second").at(i));
    }
    expect_target_rows(expected, id, seen);
    expect_confidence(expected, id, seen);
  }

  void expect_target_rows(const Json& expected, const std::string& id, const Round& seen) {
    const auto accepted = expected.at("accepted").get<std::size_t>();
    for (std::size_t i = 0; i < seen.target_rows.size(); ++i) {
      const std::vector<float>& row = seen.target_rows[i];
      const auto argmax =
          static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
      const bool near_tie = i > accepted && expected.at("target_gap").at(i) < kNearTie;
      report_.expect(fmt::format("{} target_argmax {}", id, i),
                     near_tie || expected.at("target_argmax").at(i) == argmax,
                     expected.at("target_argmax").at(i).dump(), std::to_string(argmax));
      expect_row(fmt::format("{} target {}", id, i), row, expected.at("target_top").at(i),
                 expected.at("target_gap").at(i), expected.at("target_second").at(i));
    }
  }

  void expect_confidence(const Json& expected, const std::string& id, const Round& seen) {
    if (!expected.contains("confidence")) return;
    const auto all = expected.at("confidence").get<std::vector<float>>();
    // Only as many rows are computed as are needed: those proposed, and the one that cut them.
    const std::size_t least = std::min(all.size(), seen.draft_rows.size());
    report_.expect(id + " confidences", seen.confidence.size() >= least,
                   fmt::format("at least {}", least), std::to_string(seen.confidence.size()));
    const std::size_t count = std::min(all.size(), seen.confidence.size());
    const std::string found = difference(std::span(seen.confidence).first(count),
                                         std::span(all).first(count), kConfidence);
    report_.expect(id + " confidence", found.empty(), "within the tolerance", found);
  }

  /// Best logit, its distance to the second, and which the second is.
  void expect_row(const std::string& id, const std::vector<float>& row, double top, double gap,
                  TokenId second) {
    std::vector<float> sorted(row);
    std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
    const double got_gap = static_cast<double>(sorted[0]) - static_cast<double>(sorted[1]);
    const double behind = static_cast<double>(sorted[1]) -
                          static_cast<double>(row.at(static_cast<std::size_t>(second)));
    const bool ok = std::abs(static_cast<double>(sorted[0]) - top) <= kLogit &&
                    std::abs(got_gap - gap) <= 2 * kLogit && behind <= 2 * kLogit;
    report_.expect(id + " logits", ok, fmt::format("top {}, gap {}, second {}", top, gap, second),
                   fmt::format("top {}, gap {}, second {} lower", sorted[0], got_gap, behind));
  }

  // ---- arrays of the strict run

  std::optional<std::vector<float>> array(const std::string& name) const {
    for (const SafetensorsEntry& entry : values_.entries()) {
      if (entry.name != name) continue;
      const Tensor tensor = values_.weights(entry);
      std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
      dequantise(tensor, values);
      return values;
    }
    return std::nullopt;
  }

  void expect_hidden(const std::string& id, const std::string& part,
                     const std::vector<float>& hidden) {
    auto expected = array("strict." + part + ".taps");
    if (!expected) expected = array("strict." + part + ".hidden");
    if (!expected) {
      report_.fail(fmt::format("{} {}", id, part), "hidden states in golden.safetensors", "none");
      return;
    }
    if (hidden.empty()) return;  // on a device
    // Of a prompt the final norm is computed for its last row alone.
    std::span<const float> wanted = *expected;
    if (golden_.at("kind") == "medusa" && part == "prompt") wanted = wanted.last(hidden.size());
    const std::string found = difference(hidden, wanted, kLogit);
    report_.expect(fmt::format("{} {} hidden states", id, part), found.empty(),
                   "within the tolerance", found);
  }

  void expect_rows(const std::string& id, std::size_t round, const Round& seen) {
    const auto compare = [&](const char* what, const std::vector<std::vector<float>>& rows,
                             const std::vector<TokenId>& order) {
      const std::string name = fmt::format("strict.round{}.{}", round, what);
      const auto expected = array(name);
      if (!expected) {
        if (round == 0 || std::string_view(what) == "draft_logits") {
          report_.fail(fmt::format("{} {}", id, name), "in golden.safetensors", "absent");
        }
        return;
      }
      std::vector<float> got;
      for (const std::vector<float>& row : rows) {
        if (order.empty()) got.insert(got.end(), row.begin(), row.end());
        for (const TokenId token : order) got.push_back(row[static_cast<std::size_t>(token)]);
      }
      const std::string found = difference(got, *expected, kLogit);
      report_.expect(fmt::format("{} {}", id, name), found.empty(), "within the tolerance", found);
    };
    compare("draft_logits", seen.draft_rows, target_ids_);
    compare("target_logits", seen.target_rows, {});
  }

  fs::path folder_;
  const Json& golden_;
  SafetensorsFile values_;
  ConformanceReport& report_;
  std::string name_;
  std::unique_ptr<Target> target_;
  std::int64_t hidden_size_ = 0;
  std::vector<TokenId> target_ids_;
};

void check_drafter(const fs::path& folder, const Json& golden, const ConformanceOptions& options,
                   ConformanceReport& report) {
  check_fields(
      golden,
      {"format", "kind", "layout", "oracle", "oracle_source", "oracle_note", "target",
       "weights_dtype", "compute_dtype", "K", "block_length", "taps_R", "trained", "plain_greedy",
       "runs", "draft_vocab_size", "medusa_num_heads", "medusa_num_layers"},
      folder.filename().string(), report);
  try {
    DrafterCase(folder, golden, options, report).run();
  } catch (const Error& error) {
    report.fail(folder.filename().string(), "a drafter that loads", error.what());
  }
}

// ---- folders that have to be refused

std::string outcome_of_loading(const fs::path& base, const Json& entry,
                               const ConformanceOptions& options) {
  const auto name = entry.at("name").get<std::string>();
  const std::string method = name.substr(0, name.find('_'));
  try {
    const auto checkpoint = open_checkpoint(base / entry.at("target").get<std::string>());
    EngineOptions engine;
    if (!options.engine.empty()) engine.engine = options.engine;
    engine.device = options.device;
    const auto target = load_target(*checkpoint, {.name = name}, engine).target;
    Params params(method, {.file = name});
    params.set("path", (base / entry.at("drafter").get<std::string>()).string(), {});
    for (const auto& [key, value] : entry.at("options").items()) params.set(key, value.dump(), {});
    for (const DrafterFactory& factory : drafter_factories()) {
      if (factory.name == method) factory.make(params, {*target});
    }
  } catch (const ModelError&) {
    return "ModelError";
  } catch (const ConfigError&) {
    return "ConfigError";
  } catch (const std::exception& error) {
    return error.what();
  }
  return "loaded";
}

void check_errors(const fs::path& path, const ConformanceOptions& options,
                  ConformanceReport& report) {
  for (const Json& entry : read_json(path)) {
    const std::string id = "errors " + entry.at("name").get<std::string>();
    check_fields(entry, {"name", "drafter", "target", "options", "category", "kind", "detail"}, id,
                 report);
    const std::string outcome =
        outcome_of_loading(path.parent_path().parent_path(), entry, options);
    report.expect(id, entry.at("kind") == outcome, entry.at("kind"), outcome);
  }
}

}  // namespace

void conformance_drafter(const ConformanceOptions& options, ConformanceReport& report) {
  for (const fs::path& path : find_cases(options.path, "golden.json")) {
    const Json golden = read_json(path);
    // Goldens of targets lie in files of the same name; they are a kind of their own.
    if (golden.contains("runs")) check_drafter(path.parent_path(), golden, options, report);
  }
  for (const fs::path& path : find_cases(options.path, "errors.json")) {
    check_errors(path, options, report);
  }
}

}  // namespace asdbench
