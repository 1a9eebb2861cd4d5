// Conformance of whole models: logits, greedy tokens, windows and hidden states against goldens.
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
#include "runners/models/models.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

Json read_json(const fs::path& path) {
  const MappedFile file(path);
  return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

// One failure for every field of `entry` that this build does not know.
void check_fields(const Json& entry, const std::set<std::string>& known, const std::string& id,
                  ConformanceReport& report) {
  for (const auto& [field, value] : entry.items()) {
    if (!known.contains(field)) report.fail(id, "known fields only", "field \"" + field + "\"");
  }
}

std::vector<TokenId> ids_of(const Json& list) { return list.get<std::vector<TokenId>>(); }

// "within the tolerance", or the first value outside of it.
std::string compare(std::span<const float> got, std::span<const float> expected, double absolute,
                    double relative) {
  if (got.size() != expected.size()) {
    return fmt::format("{} values instead of {}", got.size(), expected.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double allowed = absolute + relative * std::abs(expected[i]);
    if (!(std::abs(static_cast<double>(got[i]) - expected[i]) <= allowed)) {
      return fmt::format("value {}: {} instead of {}", i, got[i], expected[i]);
    }
  }
  return "within the tolerance";
}

// A request that is advanced by hand: what follows is the case's choice, not a rule's.
class Walk {
 public:
  Walk(Target& target, std::vector<TokenId> prompt)
      : target_(target),
        positions_(target.info().positions),
        request_("case", std::move(prompt), {.max_tokens = static_cast<std::int32_t>(positions_)},
                 {}, Rng()) {}
  ~Walk() { target_.release(request_); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // The rows of this call are valid until the next one.
  LogitsView prefill() { return target_.prefill(request_).logits; }
  void commit_first(TokenId token) { request_.commit_first(token, positions_); }
  LogitsView step(std::span<const TokenId> drafts) {
    request_.draft.assign(drafts.begin(), drafts.end());
    Request* live[] = {&request_};
    return target_.forward(live).logits;
  }
  void commit(TokenId token) {
    target_.keep(request_, 0);
    Kept kept;
    kept.target_token = true;
    kept.tokens[0] = token;
    request_.commit(kept, Decision());
  }

 private:
  Target& target_;
  std::int64_t positions_;
  Request request_;
};

struct Best {
  TokenId id = 0;      // lowest id among equal maxima
  TokenId second = 0;  // likewise, among the others
  double gap = 0;      // best minus second logit
};

Best best_of(std::span<const float> row) {
  Best best;
  best.id = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  best.second = best.id == 0 ? 1 : 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (static_cast<TokenId>(i) != best.id && row[i] > row[static_cast<std::size_t>(best.second)]) {
      best.second = static_cast<TokenId>(i);
    }
  }
  best.gap = static_cast<double>(row[static_cast<std::size_t>(best.id)]) -
             row[static_cast<std::size_t>(best.second)];
  return best;
}

// ---- tiny models: a folder with golden.json, golden.bin and the model

// Hidden states of the rows since the last clear, by index (runners/models/engine.h).
using HiddenStates = std::map<std::int64_t, std::vector<float>>;

class TinyModel {
 public:
  TinyModel(const fs::path& folder, const Json& golden, const std::string& config,
            const ConformanceOptions& options, ConformanceReport& report)
      : golden_(golden), values_(folder / golden.at("bin").get<std::string>()), report_(report) {
    name_ = golden.at("name").get<std::string>();
    if (config != "config.json") name_ += " " + config;
    const fs::path path =
        golden.contains("file") ? folder / golden.at("file").get<std::string>() : folder;
    const auto checkpoint = open_checkpoint(path, config);
    if (golden.contains("parameters")) {
      expect("parameters", checkpoint->parameters(), golden.at("parameters"));
      expect("tensor_bytes", checkpoint->tensor_bytes(), golden.at("tensor_bytes"));
    }
    EngineOptions engine;
    if (!options.engine.empty()) engine.engine = options.engine;
    engine.device = options.device;
    engine.tap = [this](std::int64_t index, std::span<const float> values) {
      hidden_[index].insert(hidden_[index].end(), values.begin(), values.end());
    };
    target_ = load_target(*checkpoint, {.name = name_}, engine).target;
    expect("vocab_size", target_->info().vocab, golden.at("vocab_size"));
    expect("hidden_size", checkpoint->config().hidden, golden.at("hidden_size"));
    expect("layers", checkpoint->config().layers, golden.at("layers"));
    for (const Json& array : golden.at("arrays")) {
      arrays_.emplace(array.at("name").get<std::string>(), read_array(array));
    }
  }

  void run() {
    target_->reserve({.requests = 1, .drafts = kMaxDraft, .positions = target_->info().positions},
                     /*host_logits=*/true);
    for (const Json& prompt : golden_.at("prompts")) {
      const std::string id = name_ + " " + prompt.at("id").get<std::string>();
      // bfloat16 computation is another dtype of the cell than float32, which is what this build
      // has.
      check_fields(prompt,
                   {"id", "ids", "last_logits", "last_logits_bf16", "argmax", "greedy", "gaps",
                    "window", "taps"},
                   id, report_);
      check_greedy(prompt, id);
      if (prompt.contains("window")) check_window(prompt, id);
      if (prompt.contains("taps")) check_taps(prompt, id);
    }
  }

 private:
  void expect(const char* what, std::int64_t got, const Json& expected) {
    report_.expect(name_ + " " + what, expected == got, expected.dump(), std::to_string(got));
  }

  std::vector<float> read_array(const Json& array) const {
    std::size_t count = 1;
    for (const Json& size : array.at("shape")) count *= size.get<std::size_t>();
    const auto offset = array.at("offset").get<std::size_t>();
    if (offset > values_.bytes().size() ||
        count > (values_.bytes().size() - offset) / sizeof(float)) {
      throw DataError(fmt::format("{}: array {} reaches beyond golden.bin", name_,
                                  array.at("name").get<std::string>()));
    }
    std::vector<float> values(count);
    std::memcpy(values.data(), values_.bytes().data() + offset, count * sizeof(float));
    return values;
  }

  void expect_near(const std::string& id, std::span<const float> got,
                   std::span<const float> expected) {
    const std::string found = compare(got, expected, 2e-4, 1e-4);
    report_.expect(id, found == "within the tolerance", "within the tolerance", found);
  }

  void check_greedy(const Json& prompt, const std::string& id) {
    Walk walk(*target_, ids_of(prompt.at("ids")));
    std::span<const float> row = walk.prefill().row(0);
    expect_near(id + " last_logits", row, arrays_.at(prompt.at("last_logits").get<std::string>()));
    Best best = best_of(row);
    report_.expect(id + " argmax", prompt.at("argmax") == best.id, prompt.at("argmax").dump(),
                   std::to_string(best.id));
    const std::vector<TokenId> expected = ids_of(prompt.at("greedy"));
    std::vector<TokenId> greedy;
    std::vector<float> gaps;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      greedy.push_back(best.id);
      gaps.push_back(static_cast<float>(best.gap));
      if (i == 0) {
        walk.commit_first(best.id);
      } else {
        walk.commit(best.id);
      }
      best = best_of(walk.step({}).row(0));
    }
    report_.expect(id + " greedy", greedy == expected, fmt::format("{}", fmt::join(expected, " ")),
                   fmt::format("{}", fmt::join(greedy, " ")));
    // A gap is the difference of two logits, each within its tolerance.
    const std::string found =
        compare(gaps, prompt.at("gaps").get<std::vector<float>>(), 5e-4, 1e-3);
    report_.expect(id + " gaps", found == "within the tolerance", "within the tolerance", found);
  }

  // The rows of the window in one verify step: prompt up to its start, then its ids as drafts.
  void check_window(const Json& prompt, const std::string& id) {
    const Json& window = prompt.at("window");
    const std::vector<TokenId> ids = ids_of(prompt.at("ids"));
    const auto start = window.at("start").get<std::size_t>();
    const auto count = window.at("count").get<std::size_t>();
    if (start == 0 || count == 0 || start + count > ids.size()) {
      throw DataError(id + ": the window does not lie inside the prompt");
    }
    const std::span<const TokenId> all = ids;
    Walk walk(*target_, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(start)});
    walk.prefill();
    walk.commit_first(ids[start]);
    const LogitsView rows = walk.step(all.subspan(start + 1, count - 1));
    expect_near(id + " window", {rows.data, count * static_cast<std::size_t>(rows.vocab)},
                arrays_.at(window.at("logits").get<std::string>()));
  }

  // The first id by prefill, the others in one step: every row is a scored one, so that h has all.
  void check_taps(const Json& prompt, const std::string& id) {
    const std::vector<TokenId> ids = ids_of(prompt.at("ids"));
    const std::span<const TokenId> all = ids;
    hidden_.clear();
    Walk walk(*target_, {ids.at(0)});
    walk.prefill();
    walk.commit_first(ids.at(1));
    walk.step(all.subspan(2));
    const auto layers = golden_.at("layers").get<std::int64_t>();
    for (const auto& [tap, array] : prompt.at("taps").items()) {
      const std::int64_t index =
          tap == "h" ? layers + 1 : parse_integer(std::string_view(tap).substr(1)).value_or(-1);
      expect_near(fmt::format("{} tap {}", id, tap), hidden_[index],
                  arrays_.at(array.get<std::string>()));
    }
  }

  const Json& golden_;
  MappedFile values_;
  ConformanceReport& report_;
  std::string name_;
  std::map<std::string, std::vector<float>, std::less<>> arrays_;
  HiddenStates hidden_;
  std::unique_ptr<Target> target_;
};

void check_tiny_model(const fs::path& folder, const Json& golden, const ConformanceOptions& options,
                      ConformanceReport& report) {
  // inv_freq, min_gap and max_abs_logit describe the values that are compared; tokenizer belongs to
  // kind tokenizer, bf16_compute to another dtype.
  check_fields(
      golden,
      {"name",       "arch",         "stored_dtype", "compute",       "config_style", "alt_configs",
       "parameters", "tensor_bytes", "vocab_size",   "hidden_size",   "layers",       "inv_freq",
       "prompts",    "bf16_compute", "min_gap",      "max_abs_logit", "bin",          "arrays",
       "tokenizer",  "file",         "note"},
      golden.at("name"), report);
  std::vector<std::string> configs = {"config.json"};
  if (golden.contains("alt_configs")) {
    for (const Json& config : golden.at("alt_configs")) configs.push_back(config);
  }
  for (const std::string& config : configs) {
    try {
      TinyModel(folder, golden, config, options, report).run();
    } catch (const ModelError& error) {
      report.fail(golden.at("name").get<std::string>() + " " + config, "a model that loads",
                  error.what());
    }
  }
}

// ---- folders that have to be refused, and unusual ones that must load

void check_bad_models(const fs::path& cases, ConformanceReport& report) {
  for (const Json& entry : read_json(cases)) {
    const std::string id = "bad " + entry.at("id").get<std::string>();
    check_fields(entry,
                 {"id", "path", "kind", "error", "also_ok", "why", "rule", "reference_reader"}, id,
                 report);
    std::string outcome = "ok";
    try {
      open_checkpoint(cases.parent_path() / entry.at("path").get<std::string>());
    } catch (const ModelError& error) {
      outcome = name_of(error.fault());
    } catch (const std::exception& error) {
      outcome = error.what();
    }
    std::vector<std::string> allowed;
    const auto allow = [&](const Json& value) {
      allowed.push_back(value.is_null() ? "ok" : value.get<std::string>());
    };
    allow(entry.at("error"));
    for (const Json& value : entry.at("also_ok")) allow(value);
    const bool ok = std::find(allowed.begin(), allowed.end(), outcome) != allowed.end();
    report.expect(id, ok, fmt::format("{}", fmt::join(allowed, " or ")), outcome);
  }
}

// ---- SmolLM2: the real file, prompts from GSM8K

void check_prompt(Model& model, const Json& prompt, double near_tie, const std::string& id,
                  ConformanceReport& report) {
  check_fields(
      prompt,
      {"row", "prompt_ids", "tokens", "gaps", "second", "finish", "top10", "first_near_tie"}, id,
      report);
  const std::vector<TokenId> expected = ids_of(prompt.at("tokens"));
  const auto expected_gaps = prompt.at("gaps").get<std::vector<double>>();
  const std::vector<TokenId> expected_second = ids_of(prompt.at("second"));
  const std::size_t compared = prompt.at("first_near_tie").is_null()
                                   ? expected.size()
                                   : prompt.at("first_near_tie").get<std::size_t>();
  Walk walk(*model.target, ids_of(prompt.at("prompt_ids")));
  std::span<const float> row = walk.prefill().row(0);

  std::string top = "within the tolerance";
  const Json& top10 = prompt.at("top10");
  for (std::size_t i = 0; i < top10.at("ids").size(); ++i) {
    const auto at = top10.at("ids")[i].get<std::size_t>();
    const auto wanted = top10.at("logits")[i].get<double>();
    if (at >= row.size() || !(std::abs(row[at] - wanted) <= 2e-3)) {
      top = fmt::format("id {}: {} instead of {}", at, at < row.size() ? row[at] : 0, wanted);
    }
  }
  report.expect(id + " top10", top == "within the tolerance", "within the tolerance", top);

  std::string tokens = "equal", gaps = "within the tolerance", second = "equal";
  for (std::size_t i = 0; i < compared; ++i) {
    const Best best = best_of(row);
    if (best.id != expected[i]) {
      tokens = fmt::format("token {} is {} instead of {}", i, best.id, expected[i]);
      break;  // another history from here on
    }
    if (!(std::abs(best.gap - expected_gaps[i]) <= 2e-3)) {
      gaps = fmt::format("gap {} is {} instead of {}", i, best.gap, expected_gaps[i]);
    }
    // Two runners-up that nearly tie may change places.
    const double behind = static_cast<double>(row[static_cast<std::size_t>(best.second)]) -
                          row[static_cast<std::size_t>(expected_second[i])];
    if (behind > near_tie) {
      second = fmt::format("runner-up {} is {} instead of {}", i, best.second, expected_second[i]);
    }
    if (i == 0) {
      walk.commit_first(best.id);
    } else {
      walk.commit(best.id);
    }
    if (i + 1 < compared) row = walk.step({}).row(0);
  }
  report.expect(id + " tokens", tokens == "equal", "equal", tokens);
  report.expect(id + " gaps", gaps == "within the tolerance", "within the tolerance", gaps);
  report.expect(id + " second", second == "equal", "equal", second);
  if (compared == expected.size()) {
    const std::vector<TokenId> ends = model.target->info().end_ids;
    const bool ended = std::binary_search(ends.begin(), ends.end(), expected.back());
    report.expect(id + " finish", prompt.at("finish") == (ended ? "eos" : "length"),
                  prompt.at("finish").dump(), ended ? "eos" : "length");
  }
}

void check_chat(const Model& model, const Json& chat, ConformanceReport& report) {
  const auto id = chat.at("id").get<std::string>();
  check_fields(chat, {"id", "messages", "rendered", "ids"}, id, report);
  Prompt prompt;
  for (const Json& message : chat.at("messages")) {
    const Role roles[] = {Role::kSystem, Role::kUser, Role::kAssistant};
    const auto role = std::find_if(std::begin(roles), std::end(roles),
                                   [&](Role each) { return message.at("role") == name_of(each); });
    if (role == std::end(roles))
      throw DataError(id + ": unknown role " + message.at("role").dump());
    prompt.messages.push_back({*role, message.at("content")});
  }
  std::string rendered;
  const std::vector<TokenId> ids = model.prompt_ids(prompt, &rendered);
  report.expect(id + " rendered", chat.at("rendered") == rendered, chat.at("rendered").dump(),
                Json(rendered).dump());
  report.expect(id + " ids", ids_of(chat.at("ids")) == ids, chat.at("ids").dump(),
                Json(ids).dump());
}

// The prompts of the golden rendered from the official questions; a note when they are not there.
void check_questions(const Model& model, const Json& golden, const ConformanceOptions& options,
                     ConformanceReport& report) {
  std::vector<fs::path> files;
  if (!options.data_dir.empty() && fs::exists(options.data_dir)) {
    for (const fs::path& file : find_cases(options.data_dir, "test.jsonl")) {
      if (file.parent_path().filename() == "gsm8k") files.push_back(file);
    }
  }
  if (files.empty()) {
    report.note(fmt::format(
        "no gsm8k/test.jsonl below {}: prompts are taken as ids, their rendering is not checked",
        options.data_dir.string()));
    return;
  }
  const MappedFile file(files.front());
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (const Json& prompt : golden.at("prompts")) {
    const auto row = prompt.at("row").get<std::size_t>();
    const std::string id = fmt::format("row {} prompt_ids", row);
    if (row >= lines.size()) {
      report.fail(id, "a question",
                  fmt::format("only {} rows in {}", lines.size(), files.front().string()));
      continue;
    }
    const Prompt question = {.messages = {{Role::kUser, parse_json(lines[row]).at("question")}}};
    const std::vector<TokenId> ids = model.prompt_ids(question, nullptr);
    report.expect(id, ids_of(prompt.at("prompt_ids")) == ids, prompt.at("prompt_ids").dump(),
                  Json(ids).dump());
  }
}

void check_smollm2(const Json& golden, const ConformanceOptions& options,
                   ConformanceReport& report) {
  check_fields(golden,
               {"model", "model_bytes", "model_sha256", "data", "compute", "max_new_tokens",
                "near_tie", "prompts", "chat"},
               "smollm2", report);
  Params params("smollm2-135m", {});
  if (!options.engine.empty()) params.set("engine", options.engine, {});
  params.set("device", options.device, {});
  Model model = make_model("smollm2-135m", params, options.models_dir);
  report.expect("smollm2 model_sha256", golden.at("model_sha256") == model.target->info().sha256,
                golden.at("model_sha256"), model.target->info().sha256);
  model.target->reserve({.requests = 1, .drafts = 0, .positions = 1024}, /*host_logits=*/true);
  check_questions(model, golden, options, report);
  for (const Json& prompt : golden.at("prompts")) {
    check_prompt(model, prompt, golden.at("near_tie"), "row " + prompt.at("row").dump(), report);
  }
  for (const Json& chat : golden.at("chat")) check_chat(model, chat, report);
}

}  // namespace

void conformance_model(const ConformanceOptions& options, ConformanceReport& report) {
  for (const fs::path& path : find_cases(options.path, "golden.json")) {
    const Json golden = read_json(path);
    // Goldens of drafters lie in files of the same name; they are a kind of their own.
    if (golden.contains("model_sha256")) {
      check_smollm2(golden, options, report);
    } else if (golden.contains("arrays") && golden.contains("prompts")) {
      check_tiny_model(path.parent_path(), golden, options, report);
    }
  }
  for (const fs::path& path : find_cases(options.path, "cases.json")) {
    // Damaged GGUF files have cases of the same name; they are a kind of their own.
    const Json cases = read_json(path);
    if (!cases.empty() && cases.is_array() && cases.front().contains("path")) {
      check_bad_models(path, report);
    }
  }
}

}  // namespace asdbench
